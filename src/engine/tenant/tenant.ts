import type { Tenant } from '../engine.ts';
import { createDocumentMethods } from './tenant-documents.ts';
import { createErasure } from './tenant-erasure.ts';
import { createJobMethods } from './tenant-jobs.ts';
import { createLinkMethods } from './tenant-links.ts';
import { createMemoryMethods } from './tenant-memories.ts';
import type { TenantOptions } from './tenant-options.ts';
import { createQueryMethods } from './tenant-queries.ts';
import { createReembedMethods } from './tenant-reembed.ts';
import { createReflectionMethods } from './tenant-reflections.ts';
import { createStatsMethods } from './tenant-stats.ts';
import { createUploadMethods } from './tenant-uploads.ts';

/**
 * Makes a tenant, which reads on this thread's own connection and writes through the writer. Nothing is opened until
 * one of its methods is called.
 */
export function createTenant(options: TenantOptions): Tenant {
  const erasure = createErasure(options);
  const documents = createDocumentMethods(options, erasure);
  return {
    id: options.id,
    ...createMemoryMethods(options, erasure, documents.deleteDocument),
    ...createLinkMethods(options),
    ...createQueryMethods(options),
    ...createUploadMethods(options),
    ...documents,
    ...createJobMethods(options, erasure),
    ...createReflectionMethods(options),
    ...createReembedMethods(options),
    ...createStatsMethods(options),
  };
}

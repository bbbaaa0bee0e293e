import type { Tenant } from '../engine.ts';
import { listAudit } from '../store/audit-chain.ts';
import { createBatchReceiptMethods } from './tenant-batch-receipts.ts';
import { createConsolidationMethods } from './tenant-consolidations.ts';
import { createDiffMethods } from './tenant-diff.ts';
import { createDocumentMethods } from './tenant-documents.ts';
import { createErasure } from './tenant-erasure.ts';
import { createErasureMethods } from './tenant-erasures.ts';
import { createEvalMethods } from './tenant-evals.ts';
import { createLearningMethods } from './tenant-learning.ts';
import { createEventMethods } from './tenant-events.ts';
import { createItemMethods } from './tenant-items.ts';
import { createJobMethods } from './tenant-jobs.ts';
import { createLinkMethods } from './tenant-links.ts';
import { createListMethods } from './tenant-lists.ts';
import { createMemoryMethods } from './tenant-memories.ts';
import type { Writer } from '../writer/writer.ts';
import { createSessionLogMethods } from './tenant-session-logs.ts';
import type { TenantOptions } from './tenant-options.ts';
import { createPortableMethods } from './tenant-portable.ts';
import { createPrivacyMethods } from './tenant-privacy.ts';
import { createQueryMethods } from './tenant-queries.ts';
import { createRecallMethods } from './tenant-recalls.ts';
import { createReembedMethods } from './tenant-reembed.ts';
import { createReflectionMethods } from './tenant-reflections.ts';
import { createStandingMethods } from './tenant-standing.ts';
import { createProviderCallMethods } from './tenant-provider-calls.ts';
import { createUpkeepMethods } from './tenant-upkeep.ts';
import type { TenantState } from './tenant-state.ts';
import { createUploadMethods } from './tenant-uploads.ts';

/**
 * Makes the object of a tenant, with some 25 KB of methods. It reads on a connection of this thread or on reader
 * threads, and writes through the writer. Its file is not opened until one of its methods is called. It may be dropped
 * while its methods run, and made anew, since what must exist once is in `state`.
 * @param keyId id of the API key in whose name it reads and writes; null for none
 * @param viewOf returns the tenant's object for an API key
 */
export function createTenant(
  options: TenantOptions,
  {
    state,
    keyId,
    viewOf,
  }: { readonly state: TenantState; readonly keyId: string | null; readonly viewOf: (keyId: string) => Tenant },
): Tenant {
  return tenantFor(keyId === null ? options : optionsFor(options, keyId), state, viewOf);
}

function tenantFor(options: TenantOptions, state: TenantState, viewOf: (keyId: string) => Tenant): Tenant {
  const erasure = createErasure(options);
  const documents = createDocumentMethods(options, erasure);
  const queries = createQueryMethods(options);
  return {
    id: options.id,
    as: viewOf,
    whileAdmitted: (check) => tenantFor({ ...options, writer: checkedWriter(options.writer, check) }, state, viewOf),
    stats: () => options.readers.read(options.path, 'stats', {}),
    listAudit: (filter, signal) =>
      listAudit(filter, (part) => options.readers.read(options.path, 'readAuditSlice', part, signal), signal),
    recordAction: (action, detail) => options.writer.write(options.path, 'recordAction', { action, detail }),
    ...createMemoryMethods(options, erasure, documents),
    ...createItemMethods(options),
    ...createListMethods(options),
    ...createSessionLogMethods(options),
    ...createEventMethods(options),
    ...createLinkMethods(options),
    ...queries,
    ...createDiffMethods(options, queries.query),
    ...createRecallMethods(options),
    ...createUploadMethods(options, state),
    ...documents,
    ...createJobMethods(options, erasure, state),
    ...createReflectionMethods(options),
    ...createConsolidationMethods(options),
    ...createReembedMethods(options),
    ...createProviderCallMethods(options),
    ...createPrivacyMethods(options),
    ...createUpkeepMethods(options),
    ...createErasureMethods(options),
    ...createBatchReceiptMethods(options),
    ...createEvalMethods(options),
    ...createStandingMethods(options, state),
    ...createLearningMethods(options, queries),
    ...createPortableMethods(options),
  };
}

/** Makes the options of a tenant whose reads and writes are made in the name of an API key. */
function optionsFor(options: TenantOptions, keyId: string): TenantOptions {
  const { readers, writer } = options;
  return { ...options, readers: readers.as(keyId), writer: writerFor(writer, keyId) };
}

/** Makes a writer whose commands are run in the name of an API key. */
function writerFor(writer: Writer, keyId: string): Writer {
  return { ...writer, write: (path, name, input) => writer.write(path, name, input, keyId) };
}

/** Makes a writer that calls `check` before each command, and rejects with what it throws. */
function checkedWriter(writer: Writer, check: () => void): Writer {
  return {
    ...writer,
    async write(...call) {
      check();
      return writer.write(...call);
    },
  };
}

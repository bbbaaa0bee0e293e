import type { Tenant } from '../engine.ts';
import { EngineError, isEngineError } from '../errors.ts';
import { isRejected, rejected } from '../rejected-item.ts';

/**
 * Returns the tenant with the rights of an API key that has the role `add`. Through it, adds make new memories and
 * documents, and change a stored memory only as any duplicate does, which reinforces it; an item with `supersedes` is
 * rejected. `getJob` finds only jobs of memories and documents that the key itself wrote. Jobs whose memory or document
 * was erased are not found. All other methods are those of `tenant`, without a check.
 * @param keyId public id of the key, as in `writtenBy`
 */
export function addOnlyTenant(tenant: Tenant, keyId: string): Tenant {
  const isOwn = async (read: () => Promise<{ readonly writtenBy: string | null }>): Promise<boolean> => {
    try {
      return (await read()).writtenBy === keyId;
    } catch (error) {
      if (isEngineError(error, 'not_found')) return false;
      throw error;
    }
  };
  return {
    ...tenant,
    addMemories: (items, options) =>
      tenant.addMemories(
        items.map((item) => (isRejected(item) || item.supersedes === undefined ? item : rejected(noChange()))),
        options,
      ),
    addDocument: (document, options) => tenant.addDocument(document, { ...options, onlyNew: true }),
    async getJob(id) {
      const job = await tenant.getJob(id);
      const { memoryId, documentId } = job;
      const mayBeSeen =
        (memoryId !== null && (await isOwn(() => tenant.getMemory(memoryId)))) ||
        (documentId !== null && (await isOwn(() => tenant.getDocument(documentId))));
      if (!mayBeSeen) throw new EngineError('not_found', 'no job with this id');
      return job;
    },
  };
}

const noChange = () => new EngineError('forbidden', 'supersedes: a key that only adds changes no memory');

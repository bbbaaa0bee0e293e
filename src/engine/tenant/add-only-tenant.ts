import type { Tenant } from '../engine.ts';
import { EngineError, isEngineError } from '../errors.ts';
import { isRejected, rejected } from '../rejected-item.ts';
import { withoutTotals } from './without-totals.ts';

/**
 * Returns the tenant as an API key with the role `add` may use it. No error tells how much the tenant has
 * (`withoutTotals`), and three methods differ from those of `whole`: `addMemories` rejects an item with `supersedes` as
 * `forbidden`, since it would change another memory. An item that says exactly what a memory says reinforces that
 * memory, as with any key. `addDocument` throws EngineError `conflict` for a document that would change a stored one,
 * or that has the external id or URL of another key's. `getJob` throws `not_found` unless the job's memory or document
 * exists and was written by this key. All other methods are unchanged and check nothing: the caller must not offer them
 * to such a key.
 * @param keyId public id of the key, as in `writtenBy`
 */
export function addOnlyTenant(whole: Tenant, keyId: string): Tenant {
  const tenant = withoutTotals(whole);
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
        (memoryId !== null && (await tenant.listPresent([memoryId], { writtenBy: [keyId] })).length > 0) ||
        (documentId !== null && (await isOwn(() => tenant.getDocument(documentId))));
      if (!mayBeSeen) throw new EngineError('not_found', 'no job with this id');
      return job;
    },
  };
}

const noChange = () => new EngineError('forbidden', 'supersedes: a key that only adds changes no memory');

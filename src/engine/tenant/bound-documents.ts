/** The documents that a bound key (API key limited to a user or to tags) reaches. */

import type { Tenant } from '../engine.ts';
import { EngineError } from '../errors.ts';
import type { NewDocument, Upload } from '../types.ts';
import { type Reach, refusal } from './bound-reach.ts';

/**
 * Makes the methods of documents for a bound key: a document outside its bounds is answered as not found. A key that is
 * bound to tags gets `forbidden` for lists of documents, which know no condition on tags.
 */
export function documentMethods(tenant: Tenant, { bounds, tags, reachedDocument, onlyOwn, ownOf }: Reach) {
  const uploads = new Map<string, Upload>();
  return {
    async createUpload(bytes, madeFrom) {
      const upload = await tenant.createUpload(bytes, madeFrom);
      uploads.set(upload.name, upload);
      return upload;
    },
    addDocument: async (document, options = {}) =>
      tenant.addDocument(await ownedOf(document), { ...options, withinTags: tags }),
    replaceDocument: async (id, document) =>
      tenant.replaceDocument(id, await ownedOf(document, id), { withinTags: tags }),
    getDocument: reachedDocument,
    async listDocuments(filter, page) {
      if (tags.length > 0) throw refusal();
      return tenant.listDocuments({ ...filter, userIds: onlyOwn(filter.userIds) }, page);
    },
    async streamDocuments(filter, page) {
      if (tags.length > 0) throw refusal();
      return tenant.streamDocuments({ ...filter, userIds: onlyOwn(filter.userIds) }, page);
    },
    async documentContent(id) {
      await reachedDocument(id);
      const pieces = await tenant.documentContent(id, { withinTags: tags });
      // The text may be of a version that the document got after it left the bounds.
      await reachedDocument(id);
      return pieces;
    },
    async *streamDocumentChunks(id, page) {
      await reachedDocument(id);
      for await (const slice of tenant.streamDocumentChunks(id, { ...page, withinTags: tags })) {
        await reachedDocument(id);
        yield slice;
      }
    },
    documentReceipt: (id, page) =>
      reachedDocument(id).then(() => tenant.documentReceipt(id, { ...page, withinTags: tags })),
    async deleteDocument(id, { userId = bounds.userId } = {}) {
      if (bounds.userId !== undefined && userId !== bounds.userId)
        throw new EngineError('not_found', 'no document with this id');
      return tenant.deleteDocument(id, { userId, withinTags: tags });
    },
    async cancelDocument(id) {
      await reachedDocument(id);
      return tenant.cancelDocument(id, { withinTags: tags });
    },
  } satisfies Partial<Tenant>;

  /**
   * Returns a document with the user and the tags of the bounds, as it is handed in, after a check that the document
   * which it replaces is within the bounds. If that fails, its upload is discarded, since the tenant takes it over only
   * with the call after this one.
   * @throws EngineError `forbidden` if it names another user than the caller's own, `not_found` if it replaces a
   *   document outside of the bounds, and errors of the read of that document
   */
  async function ownedOf(document: NewDocument, replaced?: string): Promise<NewDocument> {
    try {
      const owned = { ...document, ...ownOf(document) };
      if (replaced !== undefined) await reachedDocument(replaced);
      return owned;
    } catch (error) {
      if (document.source.kind === 'upload') await uploads.get(document.source.name)?.discard();
      throw error;
    }
  }
}

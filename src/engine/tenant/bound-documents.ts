/** The documents that a bound key (API key limited to a user or to tags) reaches. */

import type { Tenant } from '../engine.ts';
import { EngineError, isEngineError } from '../errors.ts';
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
      handIn(document, (owned) => tenant.addDocument(owned, { ...options, withinTags: tags })),
    replaceDocument: async (id, document) =>
      handIn(document, async (owned) => {
        await reachedDocument(id);
        return tenant.replaceDocument(id, owned, { withinTags: tags });
      }),
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
   * Passes a document, with the user and tags of the bounds, on to `accept`. If the document is refused before that, or
   * `accept` throws `not_found`, its upload is discarded, since the tenant has not taken it over.
   */
  async function handIn<Reply>(document: NewDocument, accept: (owned: NewDocument) => Promise<Reply>): Promise<Reply> {
    const { source } = document;
    let isHandedIn = false;
    try {
      const owned = { ...document, ...ownOf(document) };
      const reply = accept(owned);
      isHandedIn = true;
      return await reply;
    } catch (error) {
      if (source.kind === 'upload' && (!isHandedIn || isEngineError(error, 'not_found')))
        await uploads.get(source.name)?.discard();
      throw error;
    }
  }
}

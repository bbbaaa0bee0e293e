import { z } from 'zod';
import { type Document, type DocumentChunk, type DocumentState, EngineError, type Tenant } from '../../engine/index.ts';
import { stateEvents, streamState } from '../event-stream.ts';
import { readReplacement } from '../read-document.ts';
import { sendInPieces } from '../json-reply.ts';
import { awaitDrain } from '../await-drain.ts';
import { route, type Route } from '../route.ts';
import {
  acceptedDocument,
  chunkPage,
  documentPage,
  documentSchema,
  ingestedDocument,
  receiptReply,
} from '../schemas/document-replies.ts';
import { documentPageQuery, documentsQuery, replaceQuery, replacementSchema } from '../schemas/documents.ts';
import { deletedReply } from '../schemas/deleted-reply.ts';
import { ownerQuery } from '../schemas/values.ts';
import { waitMsOf } from '../wait-for-writes.ts';
import { chunkItem, documentItem, receiptItem } from '../wire/documents.ts';
import { deletedItem } from '../wire/memories.ts';
import { PAGE_END, pageEnd } from './memory-list.ts';
import { ACCEPTED_EXAMPLE, FILE_ERRORS, sendDocument, UPLOAD } from './ingest.ts';

const DOCUMENT_ID = { description: 'Id of the document.', example: ACCEPTED_EXAMPLE.document_id } as const;
const NO_DOCUMENT = 'No document of this user has this id, or it has expired.';
const ENDED: ReadonlySet<DocumentState> = new Set(['ready', 'empty', 'failed', 'cancelled']);
const POLL_MS = 500;

/** Routes of stored documents. The routes that receive new documents are in ingest.ts. */
export const documentRoutes: readonly Route[] = [
  route({
    method: 'get',
    path: '/documents',
    name: 'listDocuments',
    access: 'read',
    forBoundKeys: true,
    summary: 'Lists documents, the newest first',
    description: PAGE_END,
    query: documentsQuery,
    replies: { 200: { description: 'A page of documents.', json: documentPage } },
    async handle(call) {
      const { l: limit, u: offset, user_id, session_id, state, external_id, ids, sha256, written_by } = call.query;
      const filter = {
        userIds: user_id === undefined ? undefined : [user_id],
        sessionIds: session_id === undefined ? undefined : [session_id],
        states: state === undefined ? undefined : [state],
        externalIds: external_id === undefined ? undefined : [external_id],
        ids,
        sha256,
        writtenBy: written_by === undefined ? undefined : [written_by],
      };
      const { slices, listed, total } = await call.tenant.streamDocuments(filter, { limit: limit + 1, offset });
      await sendInPieces(call, async (reply) => {
        reply.add('{"items":');
        const { sent, hasMore, isCut } = await reply.addList<Document>(slices, { toJson: documentItem, limit });
        // Documents that are erased while the page is sent are left out; others may still follow.
        const isLast = !hasMore && listed <= limit;
        await reply.end(`,"total":${total}${pageEnd(isLast ? undefined : offset + sent, isCut)}`);
      });
    },
  }),
  route({
    method: 'get',
    path: '/documents/:id',
    name: 'getDocument',
    access: 'read',
    forBoundKeys: true,
    summary: 'Shows one document',
    params: { id: DOCUMENT_ID },
    query: ownerQuery,
    replies: { 200: { description: 'The document.', json: documentSchema } },
    errors: { not_found: NO_DOCUMENT },
    async handle({ tenant, params, query, send }) {
      send(200, documentItem(await getOwned(tenant, params.id, query.user_id)));
    },
  }),
  route({
    method: 'get',
    path: '/documents/:id/content',
    name: 'getDocumentContent',
    access: 'read',
    forBoundKeys: true,
    summary: 'Sends the extracted text of a document',
    description:
      'The text is sent in full, as a stream. If the document is replaced or deleted meanwhile, the connection ' +
      'breaks off before the reply is complete by the rules of HTTP: request it again.',
    params: { id: DOCUMENT_ID },
    query: ownerQuery,
    replies: {
      200: {
        description: 'The text.',
        media: [
          {
            type: 'text/markdown',
            schema: z.string(),
            example: '# Rollback\n\nRun the rollback job with the previous build number.\n',
          },
        ],
      },
    },
    errors: { not_found: NO_DOCUMENT, conflict: 'The document has no text, or none yet.' },
    async handle({ api, tenant, params, query, response }) {
      const { id } = await getOwned(tenant, params.id, query.user_id);
      // The text is sent in pieces, as it may be 20 million characters long; each is read when the last is on its way.
      const pieces = (await tenant.documentContent(id))[Symbol.asyncIterator]();
      // The first piece is read before the status is sent, as this read fails for a document without content.
      let piece = await pieces.next();
      response.writeHead(200, { 'content-type': 'text/markdown; charset=utf-8' });
      for (; !piece.done && !response.destroyed; piece = await pieces.next()) {
        if (!response.write(piece.value)) await awaitDrain(response, api.engine.config.OM_READER_TIMEOUT_MS);
      }
      response.end();
    },
  }),
  route({
    method: 'get',
    path: '/documents/:id/chunks',
    name: 'listChunks',
    access: 'read',
    forBoundKeys: true,
    summary: 'Lists the chunks of a document in the order of its text',
    description:
      'Each chunk is a memory. Neighbouring chunks overlap by up to `OM_CHUNK_OVERLAP_TOKENS` tokens. ' +
      `${PAGE_END} If the document is replaced or deleted meanwhile, the connection breaks off.`,
    params: { id: DOCUMENT_ID },
    query: documentPageQuery,
    replies: {
      200: {
        description: 'A page of chunks.',
        json: chunkPage,
        example: {
          id: DOCUMENT_ID.example,
          items: [
            {
              memory_id: '01a1ff55-5a1a-713e-8abe-ac9f3766d934',
              chunk: 0,
              start_offset: 0,
              end_offset: 64,
              page_from: null,
              page_to: null,
              heading_path: ['Rollback'],
              tokens: 14,
            },
          ],
          total: 1,
        },
      },
    },
    errors: { not_found: NO_DOCUMENT },
    async handle(call) {
      const { l: limit, u: offset, user_id } = call.query;
      const { id, chunks, shownAt } = await getOwned(call.tenant, call.params.id, user_id);
      const slices = call.tenant.streamDocumentChunks(id, { limit: limit + 1, offset });
      await sendInPieces(call, async (reply) => {
        reply.add(`{"id":"${id}","items":`);
        const { sent, hasMore, isCut } = await reply.addList<DocumentChunk>(slices, { toJson: chunkItem, limit });
        const end = pageEnd(hasMore ? offset + sent : undefined, isCut);
        await reply.end(`,"total":${shownAt === null ? 0 : chunks}${end}`);
      });
    },
  }),
  route({
    method: 'get',
    path: '/documents/:id/receipt',
    name: 'getDocumentReceipt',
    access: 'read',
    forBoundKeys: true,
    summary: 'Accounts for every character of a document',
    description:
      'The reply says which memory holds which span of the extracted text, what was left out and why, and whether ' +
      'what the memories hold is what was read. The content of all memories of the document is read for it.',
    params: { id: DOCUMENT_ID },
    query: documentPageQuery,
    replies: { 200: { description: 'The receipt, with a page of its spans.', json: receiptReply } },
    errors: { not_found: NO_DOCUMENT, conflict: 'No reading of the document has ended yet.' },
    async handle({ tenant, params, query: { l, u, user_id }, send }) {
      const { id } = await getOwned(tenant, params.id, user_id);
      send(200, receiptItem(await tenant.documentReceipt(id, { limit: l, offset: u })));
    },
  }),
  route({
    method: 'get',
    path: '/documents/:id/events',
    name: 'watchDocument',
    access: 'read',
    forBoundKeys: true,
    summary: 'Streams a document as it changes',
    description:
      'The reply is a stream of server-sent events: `state` with the document, at once and at each change, and ' +
      '`gone` if the document is deleted. The stream ends with the state `ready`, `empty`, `failed` or `cancelled`. ' +
      'The server checks the document twice a second.',
    params: { id: DOCUMENT_ID },
    query: ownerQuery,
    replies: stateEvents(documentSchema, { id: DOCUMENT_ID.example, state: 'ready' }),
    errors: { not_found: NO_DOCUMENT },
    async handle(call) {
      const { tenant, params, query } = call;
      // The user is checked once: a document never changes its user, so all streams of it can share one watch.
      const { id } = await getOwned(tenant, params.id, query.user_id);
      const read = async () => {
        const document = await tenant.getDocument(id);
        return { item: documentItem(document), hasEnded: ENDED.has(document.state) };
      };
      await streamState(call, { key: `document ${tenant.id} ${id}`, pollMs: POLL_MS, read });
    },
  }),
  route({
    method: 'put',
    path: '/documents/:id',
    name: 'replaceDocument',
    access: 'write',
    forBoundKeys: true,
    limited: ['adds', 'upload_bytes'],
    summary: 'Replaces a document, or reads it again',
    description:
      'The body is a form, or JSON with `data`, `text` or `url`. The document is read even if nothing has changed, ' +
      'which applies a new `OM_CHUNK_TOKENS`. Chunks that are as before keep their memories. `session_id` and ' +
      '`external_id` keep their values if they are left out; the user cannot be changed.',
    params: { id: DOCUMENT_ID },
    query: replaceQuery,
    headers: ['prefer'],
    body: {
      json: replacementSchema,
      example: { text: '# Rollback\n\nRun the rollback job.', content_type: 'md', user_id: 'ana' },
      media: [UPLOAD],
    },
    replies: {
      202: {
        description: 'The document is queued for reading.',
        json: acceptedDocument,
        example: { ...ACCEPTED_EXAMPLE, outcome: 'replaced' },
        headers: ['location'],
      },
      200: { description: 'The document was read in time.', json: ingestedDocument, headers: ['location'] },
    },
    errors: { ...FILE_ERRORS, not_found: NO_DOCUMENT, conflict: 'Another document has this `external_id`.' },
    async handle(call) {
      const { tenant, params, query } = call;
      const waitMs = waitMsOf(call, query.wait);
      const replaced = await getOwned(tenant, params.id, query.user_id);
      const reply = await readReplacement(call, replaced, (document) => tenant.replaceDocument(replaced.id, document));
      await sendDocument(call, reply, waitMs);
    },
  }),
  route({
    method: 'post',
    path: '/documents/:id/cancel',
    name: 'cancelDocument',
    access: 'write',
    forBoundKeys: true,
    limited: ['adds'],
    summary: 'Stops the reading of a document',
    description:
      'The document becomes `cancelled`, or `ready` if queries still find an earlier version of it; `processing` ' +
      'while chunks of that version are still to be embedded.',
    params: { id: DOCUMENT_ID },
    query: ownerQuery,
    replies: { 200: { description: 'The document as it is now.', json: documentSchema } },
    errors: { not_found: NO_DOCUMENT, conflict: 'The document is not being read.' },
    async handle({ tenant, params, query, send }) {
      const { id } = await getOwned(tenant, params.id, query.user_id);
      send(200, documentItem(await tenant.cancelDocument(id)));
    },
  }),
  route({
    method: 'delete',
    path: '/documents/:id',
    name: 'deleteDocument',
    access: 'write',
    forBoundKeys: true,
    limited: ['adds'],
    summary: 'Hides a document at once and erases it with all its memories',
    params: { id: DOCUMENT_ID },
    query: ownerQuery,
    replies: { 200: { description: 'What was removed.', json: deletedReply } },
    errors: { not_found: NO_DOCUMENT },
    async handle({ tenant, params, query, send }) {
      const receipt = await tenant.deleteDocument(params.id, { userId: query.user_id });
      send(200, deletedItem(receipt));
    },
  }),
];

/**
 * Returns a document. If `userId` is given and the document belongs to another user, it counts as absent.
 * @throws EngineError `not_found`
 */
async function getOwned(tenant: Tenant, id: string, userId: string | undefined): Promise<Document> {
  const document = await tenant.getDocument(id);
  if (userId !== undefined && userId !== document.userId)
    throw new EngineError('not_found', 'no document with this id');
  return document;
}

import { type DocumentReply, EngineError } from '../../engine/index.ts';
import { acceptFile, hasUrl, limitsOf, readDocument, toPage } from '../read-document.ts';
import { receiveJson } from '../receive-upload.ts';
import { localsOf, sendJson } from '../reply.ts';
import { route, type Route, type TenantCall } from '../route.ts';
import {
  acceptedDocument,
  documentBatchReply,
  ingestedDocument,
  type DocumentOutcomeItem,
} from '../schemas/document-replies.ts';
import { documentBatchSchema, ingestSchema, ingestUrlSchema, uploadForm } from '../schemas/documents.ts';
import { parse } from '../schemas/parse.ts';
import { noQueryOnBatch, waitQuery, type Wire } from '../schemas/values.ts';
import { waitForWrites, waitMsOf } from '../wait-for-writes.ts';
import { documentOutcomeItem, ingestedItem } from '../wire/documents.ts';
import { isItemError, itemError, spanningToken, type ItemError } from './batch-items.ts';

export const ACCEPTED_EXAMPLE = {
  document_id: '01a1ff55-50c1-7421-a45c-cf733ddd36c3',
  job_id: '01a1ff55-50c2-73f1-b4c5-17553b17bb0d',
  state: 'queued',
  outcome: 'accepted',
  token: 'ece1a89d.1.1',
} as const;

/** A document as a form with its file. */
export const UPLOAD = {
  type: 'multipart/form-data',
  schema: uploadForm,
  example: { file: 'the bytes of handbook.pdf', user_id: 'ana', tags: ['hr', '2026'], metadata: '{"team":"people"}' },
};

export const FILE_ERRORS = {
  too_large: 'The document is over `OM_UPLOAD_MAX_MB`.',
  unsupported: 'Another media type; or a file that is not read, or is not what it is said to be.',
  forbidden: "The key's role is too small, or pages are not fetched here (`OM_URL_INGEST`).",
  storage_full: 'It would take what the disk needs for everything else.',
} as const;

const REPLIES = {
  202: {
    description: 'It is on disk, and will be read.',
    json: acceptedDocument,
    example: ACCEPTED_EXAMPLE,
    headers: ['location'],
  },
  200: { description: 'It was read in time, or has not changed.', json: ingestedDocument, headers: ['location'] },
} as const;
const TAKEN = 'Another document has this `external_id`.';

/**
 * None takes an Idempotency-Key: the same file of the same user is recognised by its content, and so is a known
 * external id or URL.
 */
export const ingestRoutes: readonly Route[] = [
  route({
    method: 'post',
    path: '/memory/ingest',
    name: 'ingestDocument',
    access: 'write',
    summary: 'Takes in a file or a text that is too large for one memory',
    description:
      'As a form with the file in the part `file`, or as JSON with `data` or `text`. It is on disk before the ' +
      'reply, and read in the background. The same file again is recognised by its bytes or its `external_id`: ' +
      'where nothing changed the reply is a 200 with `outcome` `unchanged`.',
    query: waitQuery,
    headers: ['prefer'],
    body: {
      json: ingestSchema,
      example: {
        content_type: 'text/markdown',
        text: '# Rollback\n\nRun the rollback job with the previous build number.',
        user_id: 'ana',
        external_id: 'wiki-12',
      },
      media: [UPLOAD],
    },
    replies: REPLIES,
    errors: { ...FILE_ERRORS, conflict: TAKEN },
    async handle(call) {
      const waitMs = waitMsOf(call, call.query.wait);
      const reply = await readDocument(call, (document) => call.tenant.addDocument(document));
      await sendDocument(call, reply, waitMs);
    },
  }),
  route({
    method: 'post',
    path: '/memory/ingest/url',
    name: 'ingestPage',
    access: 'write',
    summary: 'Takes in a page of the web',
    description:
      'It is fetched in the background, from public addresses only, whatever names and redirects say. The same URL ' +
      'again asks its server whether the page changed.',
    query: waitQuery,
    headers: ['prefer'],
    body: { json: ingestUrlSchema, example: { url: 'https://example.com/handbook.html', user_id: 'ana' } },
    replies: REPLIES,
    errors: { forbidden: FILE_ERRORS.forbidden, conflict: TAKEN },
    async handle(call) {
      const waitMs = waitMsOf(call, call.query.wait);
      const page = toPage(call, await call.readBody());
      await sendDocument(call, await call.tenant.addDocument(page), waitMs);
    },
  }),
  route({
    method: 'post',
    path: '/documents/batch',
    name: 'ingestDocuments',
    access: 'write',
    summary: 'Takes in several documents and pages',
    description: 'It does not wait: use the token. A body that is no list of items is refused whole.',
    query: noQueryOnBatch,
    body: {
      json: documentBatchSchema,
      example: { items: [{ text: 'The first of two texts.', user_id: 'ana' }, { url: 'ftp://example.com/x' }] },
    },
    replies: {
      202: {
        description: 'What became of each item.',
        json: documentBatchReply,
        example: {
          results: [
            {
              document_id: '01a1ff55-5b84-742b-8086-931184eeff65',
              job_id: '01a1ff55-5b84-742b-8086-94809955efdd',
              state: 'queued',
              outcome: 'accepted',
            },
            { error: { code: 'invalid', message: 'url: expected an address that begins with http:// or https://' } },
          ],
          accepted: 1,
          rejected: 1,
          token: 'ece1a89d.5.5',
        },
      },
      200: {
        description: 'Nothing is left to do: all items were unchanged, or were refused.',
        json: documentBatchReply,
        example: {
          results: [{ error: { code: 'invalid', message: 'expected either data or text' } }],
          accepted: 0,
          rejected: 1,
          token: null,
        },
      },
    },
    async handle(call) {
      const { request, send } = call;
      const { results, token } = await receiveJson(request, limitsOf(call), (value) => addItems(call, value));
      const rejected = results.filter(isItemError).length;
      send(token === null ? 200 : 202, { results, accepted: results.length - rejected, rejected, token });
    },
  }),
];

/** 200 with the document where it is finished or was not changed, 202 with its job otherwise. */
export async function sendDocument(call: TenantCall, reply: DocumentReply, waitMs: number): Promise<void> {
  const { tenant, response } = call;
  const { document, outcome, jobId, token } = reply;
  if (jobId !== null) localsOf(response).jobId = jobId;
  response.setHeader('location', `/documents/${document.id}`);
  const isFinished = waitMs > 0 && token !== null && (await waitForWrites(call, token, waitMs));
  if (isFinished || outcome === 'unchanged')
    return sendJson(response, 200, ingestedItem(await tenant.getDocument(document.id), reply));
  const accepted: Wire<typeof acceptedDocument> = { ...documentOutcomeItem(reply), token };
  sendJson(response, 202, accepted);
}

/** A wrong item spares the rest; a body that is no list of items is refused whole. */
async function addItems(call: TenantCall, value: unknown) {
  const results: (DocumentOutcomeItem | ItemError)[] = [];
  let token: string | null = null;
  for (const item of parse(documentBatchSchema, value).items) {
    const reply = await addItem(call, item);
    results.push(isItemError(reply) ? reply : documentOutcomeItem(reply));
    if (!isItemError(reply)) token = spanningToken(token, reply.token);
  }
  return { results, token };
}

async function addItem(call: TenantCall, item: unknown): Promise<DocumentReply | ItemError> {
  const { tenant } = call;
  try {
    if (hasUrl(item)) return await tenant.addDocument(toPage(call, parse(ingestUrlSchema, item)));
    return await acceptFile(call, parse(ingestSchema, item), (document) => tenant.addDocument(document));
  } catch (thrown) {
    if (!(thrown instanceof EngineError)) throw thrown;
    return itemError(thrown);
  }
}

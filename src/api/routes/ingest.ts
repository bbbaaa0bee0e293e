import { type DocumentReply, EngineError, spanningReceipt } from '../../engine/index.ts';
import { acceptFile, hasUrl, limitsOf, readDocument, toPage } from '../read-document.ts';
import { takeTokens } from '../take-tokens.ts';
import { type LongTexts, receiveJson } from '../receive-upload.ts';
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
import { readFinished, waitMsOf } from '../wait-for-writes.ts';
import { documentOutcomeItem, ingestedItem } from '../wire/documents.ts';
import { admissionCheck } from '../watch-admission.ts';
import { isItemError, itemError, type ItemError } from './batch-items.ts';

export const ACCEPTED_EXAMPLE = {
  document_id: '01a1ff55-50c1-7421-a45c-cf733ddd36c3',
  job_id: '01a1ff55-50c2-73f1-b4c5-17553b17bb0d',
  state: 'queued',
  outcome: 'accepted',
  token: 'ece1a89d.1.1',
} as const;

/** Multipart body of an upload, for a route's `body.media`: the document's file and its fields. */
export const UPLOAD = {
  type: 'multipart/form-data',
  schema: uploadForm,
  example: { file: 'the bytes of handbook.pdf', user_id: 'ana', tags: ['hr', '2026'], metadata: '{"team":"people"}' },
};

export const FILE_ERRORS = {
  too_large: 'The document is over `OM_UPLOAD_MAX_MB`.',
  unsupported: 'The body has another media type, or the file has a format that is not read or differs from its name.',
  forbidden: "The key's role does not suffice, or this server does not fetch pages (`OM_URL_INGEST`).",
  storage_full: 'The document would take disk space that everything else needs.',
  unprocessable: "The tenant's privacy policy refuses a label, the title, the file's name, the external id or the URL.",
} as const;

const REPLIES = {
  202: {
    description: 'The document is on disk and will be read.',
    json: acceptedDocument,
    example: ACCEPTED_EXAMPLE,
    headers: ['location'],
  },
  200: {
    description: 'The document was read in time, or has not changed.',
    json: ingestedDocument,
    headers: ['location'],
  },
} as const;
const TAKEN = 'Another document has this `external_id`.';

/**
 * Routes that receive documents. They need no Idempotency-Key: a document that a user sends again is recognised by its
 * content, its external id or its URL.
 */
export const ingestRoutes: readonly Route[] = [
  route({
    method: 'post',
    path: '/memory/ingest',
    name: 'ingestDocument',
    access: 'add',
    forBoundKeys: true,
    limited: ['adds', 'upload_bytes'],
    summary: 'Stores a file or a text that is too large for one memory',
    description:
      'The body is a form with the file in the part `file`, or JSON with `data` or `text`. The document is on disk ' +
      'before the reply, and is read in the background. A file that is sent again is recognised by its bytes or its ' +
      '`external_id`: if nothing has changed, the reply is a 200 with the `outcome` `unchanged`.',
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
    access: 'add',
    forBoundKeys: true,
    limited: ['adds'],
    summary: 'Stores a web page',
    description:
      'The page is fetched in the background, and from public addresses only; this is checked for every name and ' +
      'redirect. If a URL is sent again, its server is asked whether the page has changed.',
    query: waitQuery,
    headers: ['prefer'],
    body: { json: ingestUrlSchema, example: { url: 'https://example.com/handbook.html', user_id: 'ana' } },
    replies: REPLIES,
    errors: { forbidden: FILE_ERRORS.forbidden, conflict: TAKEN, unprocessable: FILE_ERRORS.unprocessable },
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
    access: 'add',
    forBoundKeys: true,
    limited: ['batch_items', 'upload_bytes'],
    summary: 'Stores several documents and pages',
    description:
      'The request does not wait until they are read: use the token. A body that is not a list of items is refused ' +
      'as a whole.',
    query: noQueryOnBatch,
    body: {
      json: documentBatchSchema,
      example: { items: [{ text: 'The first of two texts.', user_id: 'ana' }, { url: 'ftp://example.com/x' }] },
    },
    replies: {
      202: {
        description: 'The result of each item.',
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
        description: 'Nothing is left to do: every item was unchanged or was refused.',
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
      const { results, token } = await receiveJson(request, limitsOf(call), (value, texts) =>
        addItems(call, value, texts),
      );
      const rejected = results.filter(isItemError).length;
      send(token === null ? 200 : 202, { results, accepted: results.length - rejected, rejected, token });
    },
  }),
];

/**
 * Answers about a stored document: 200 with the document if it was unchanged or its processing finishes within
 * `waitMs`; otherwise 202 with the id of its job. If `waitMs` is 0, it does not wait.
 */
export async function sendDocument(call: TenantCall, reply: DocumentReply, waitMs: number): Promise<void> {
  const { tenant, response } = call;
  const { document, outcome, jobId, token } = reply;
  if (jobId !== null) localsOf(response).jobId = jobId;
  response.setHeader('location', `/documents/${document.id}`);
  const read = () => tenant.getDocument(document.id);
  const finished = await readFinished(call, { token, timeoutMs: waitMs }, read);
  if (finished !== undefined || outcome === 'unchanged')
    return sendJson(response, 200, ingestedItem(finished ?? (await read()), reply));
  const accepted: Wire<typeof acceptedDocument> = { ...documentOutcomeItem(reply), token };
  sendJson(response, 202, accepted);
}

/**
 * Adds the documents of a batch, and returns one result for each and the write receipt of all. An invalid item does not
 * affect the others. Once the key is revoked, the remaining items are refused with `unauthenticated`.
 * @throws EngineError `invalid` for a body that is not a list; `rate_limited` if the key has too few tokens for its
 *   items
 */
async function addItems(call: TenantCall, value: unknown, texts: LongTexts) {
  const results: (DocumentOutcomeItem | ItemError)[] = [];
  let token: string | null = null;
  const { items } = parse(documentBatchSchema, value);
  takeTokens(call, 'batch_items', items.length);
  const requireAdmitted = admissionCheck(call);
  for (const item of items) {
    const reply = await addItem(call, item, { texts, requireAdmitted });
    results.push(isItemError(reply) ? reply : documentOutcomeItem(reply));
    if (!isItemError(reply)) token = spanningReceipt(token, reply.token);
  }
  return { results, token };
}

async function addItem(
  call: TenantCall,
  item: unknown,
  { texts, requireAdmitted }: { readonly texts: LongTexts; readonly requireAdmitted: () => void },
): Promise<DocumentReply | ItemError> {
  const { tenant } = call;
  try {
    requireAdmitted();
    if (hasUrl(item)) return await tenant.addDocument(toPage(call, parse(ingestUrlSchema, item)));
    return await acceptFile(call, { body: parse(ingestSchema, item), texts }, (document) =>
      tenant.addDocument(document),
    );
  } catch (thrown) {
    if (!(thrown instanceof EngineError)) throw thrown;
    return itemError(thrown);
  }
}

import type { DocumentReply } from '../../engine/types.ts';
import { EngineError } from '../../engine/errors.ts';
import { acceptFile, hasUrl, limitsOf, readDocument, toPage } from '../read-document.ts';
import { readJson } from '../read-body.ts';
import { receiveJson } from '../receive-upload.ts';
import { localsOf, sendJson } from '../reply.ts';
import type { Route, TenantCall } from '../route.ts';
import {
  addQuerySchema,
  batchQuerySchema,
  documentBatchSchema,
  ingestSchema,
  ingestUrlSchema,
  parse,
} from '../schemas.ts';
import { waitForWrites, waitMsOf } from '../wait-for-writes.ts';
import { documentOutcomeItem, ingestedItem } from '../wire.ts';
import { isItemError, itemError, spanningToken, type ItemError } from './batch-items.ts';

/** None takes an Idempotency-Key: the same file of the same user is recognised by its content, and so is a known external id or URL. */
export const ingestRoutes: readonly Route[] = [
  { method: 'post', path: '/memory/ingest', access: 'write', handle: ingest },
  { method: 'post', path: '/memory/ingest/url', access: 'write', handle: ingestUrl },
  { method: 'post', path: '/documents/batch', access: 'write', handle: ingestBatch },
];

async function ingest(call: TenantCall): Promise<void> {
  const waitMs = waitMsOf(call, parse(addQuerySchema, call.request.query).wait);
  const reply = await readDocument(call, (document) => call.tenant.addDocument(document));
  await sendDocument(call, reply, waitMs);
}

async function ingestUrl(call: TenantCall): Promise<void> {
  const { tenant, request } = call;
  const waitMs = waitMsOf(call, parse(addQuerySchema, request.query).wait);
  const page = toPage(call, parse(ingestUrlSchema, (await readJson(request)).value));
  await sendDocument(call, await tenant.addDocument(page), waitMs);
}

/** 200 with the document where it is finished or was not changed, 202 with its job otherwise. */
export async function sendDocument(call: TenantCall, reply: DocumentReply, waitMs: number): Promise<void> {
  const { tenant, response } = call;
  const { document, outcome, jobId, token } = reply;
  if (jobId !== null) localsOf(response).jobId = jobId;
  response.setHeader('location', `/documents/${document.id}`);
  const isFinished = waitMs > 0 && token !== null && (await waitForWrites(call, token, waitMs));
  if (isFinished || outcome === 'unchanged')
    return sendJson(response, 200, ingestedItem(tenant.getDocument(document.id), reply));
  sendJson(response, 202, { ...documentOutcomeItem(reply), token });
}

/** A wrong item spares the rest; a body that is no list of items is refused whole. */
async function ingestBatch(call: TenantCall): Promise<void> {
  const { request, response } = call;
  parse(batchQuerySchema, request.query);
  const { results, token } = await receiveJson(request, limitsOf(call), (value) => addItems(call, value));
  const rejected = results.filter(isItemError).length;
  sendJson(response, token === null ? 200 : 202, { results, accepted: results.length - rejected, rejected, token });
}

async function addItems(call: TenantCall, value: unknown) {
  const results: (ReturnType<typeof documentOutcomeItem> | ItemError)[] = [];
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

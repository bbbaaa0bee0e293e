import { once } from 'node:events';
import type { Response } from 'express';
import { EngineError } from '../../engine/errors.ts';
import type { Document, DocumentState } from '../../engine/types.ts';
import { streamState } from '../event-stream.ts';
import { readReplacement } from '../read-document.ts';
import { sendJson } from '../reply.ts';
import type { Route, TenantCall } from '../route.ts';
import { documentPageSchema, documentsSchema, ownerSchema, parse, replaceQuerySchema } from '../schemas.ts';
import { waitMsOf } from '../wait-for-writes.ts';
import { chunkItem, documentItem, receiptItem } from '../wire.ts';
import { sendDocument } from './ingest.ts';

/** Documents as things; what takes them in stands in ingest.ts. */
export const documentRoutes: readonly Route[] = [
  { method: 'get', path: '/documents', access: 'read', handle: list },
  { method: 'get', path: '/documents/:id', access: 'read', handle: get },
  { method: 'get', path: '/documents/:id/content', access: 'read', handle: content },
  { method: 'get', path: '/documents/:id/chunks', access: 'read', handle: chunks },
  { method: 'get', path: '/documents/:id/events', access: 'read', handle: events },
  { method: 'put', path: '/documents/:id', access: 'write', handle: replace },
  { method: 'post', path: '/documents/:id/cancel', access: 'write', handle: cancel },
  { method: 'delete', path: '/documents/:id', access: 'write', handle: remove },
];

const ENDED: ReadonlySet<DocumentState> = new Set(['ready', 'empty', 'failed', 'cancelled']);

function list({ tenant, request, response }: TenantCall): void {
  const { l, u, user_id, session_id, state, external_id, ids, sha256 } = parse(documentsSchema, request.query);
  const filter = {
    userIds: user_id === undefined ? undefined : [user_id],
    sessionIds: session_id === undefined ? undefined : [session_id],
    states: state === undefined ? undefined : [state],
    externalIds: external_id === undefined ? undefined : [external_id],
    ids,
    sha256,
  };
  const { items, total } = tenant.listDocuments(filter, { limit: l, offset: u });
  sendJson(response, 200, { items: items.map(documentItem), total });
}

function get(call: TenantCall): void {
  sendJson(call.response, 200, documentItem(getOwned(call, userOf(call))));
}

/**
 * In pieces, each read when the one before is on its way: an extracted text may be 20 million characters long. Where it is replaced or
 * deleted meanwhile the connection breaks off without the end that HTTP gives a whole reply.
 */
async function content(call: TenantCall): Promise<void> {
  const { tenant, response } = call;
  const { id } = getOwned(call, userOf(call));
  const pieces = tenant.documentContent(id)[Symbol.iterator]();
  // Before the status is sent, as this is where a document without content is found out.
  let piece = pieces.next();
  response.writeHead(200, { 'content-type': 'text/markdown; charset=utf-8' });
  for (; !piece.done && !response.destroyed; piece = pieces.next()) {
    if (!response.write(piece.value)) await roomIn(response);
  }
  response.end();
}

async function roomIn(response: Response): Promise<void> {
  const settled = new AbortController();
  const { signal } = settled;
  await Promise.race([once(response, 'drain', { signal }), once(response, 'close', { signal })]).finally(() =>
    settled.abort(),
  );
}

function chunks(call: TenantCall): void {
  const { l, u, user_id } = parse(documentPageSchema, call.request.query);
  const { id, chunks: found, shownAt } = getOwned(call, user_id);
  const items = call.tenant.listDocumentChunks(id, { limit: l, offset: u });
  sendJson(call.response, 200, { id, items: items.map(chunkItem), total: shownAt === null ? 0 : found });
}

const POLL_MS = 500;

function events(call: TenantCall): void {
  const { tenant } = call;
  // Once: a document never changes its user, so that the streams of all who may see it can share what is read.
  const { id } = getOwned(call, userOf(call));
  const read = () => {
    const document = tenant.getDocument(id);
    return { item: documentItem(document), hasEnded: ENDED.has(document.state) };
  };
  streamState(call, { key: `document ${tenant.id} ${id}`, pollMs: POLL_MS, read });
}

async function replace(call: TenantCall): Promise<void> {
  const { wait, user_id } = parse(replaceQuerySchema, call.request.query);
  const waitMs = waitMsOf(call, wait);
  const replaced = getOwned(call, user_id);
  const reply = await readReplacement(call, replaced, (document) => call.tenant.replaceDocument(replaced.id, document));
  await sendDocument(call, reply, waitMs);
}

async function cancel(call: TenantCall): Promise<void> {
  const { id } = getOwned(call, userOf(call));
  sendJson(call.response, 200, documentItem(await call.tenant.cancelDocument(id)));
}

async function remove(call: TenantCall): Promise<void> {
  const { id } = getOwned(call, userOf(call));
  const receipt = await call.tenant.deleteDocument(id);
  sendJson(call.response, 200, { ok: true, deleted: receipt.memories, removed: receiptItem(receipt) });
}

function userOf({ request }: TenantCall): string | undefined {
  return parse(ownerSchema, request.query).user_id;
}

/** Another user's document is as absent as none. @throws EngineError `not_found` */
function getOwned({ tenant, request }: TenantCall, userId: string | undefined): Document {
  const document = tenant.getDocument(request.params['id'] as string);
  if (userId !== undefined && userId !== document.userId)
    throw new EngineError('not_found', 'no document with this id');
  return document;
}

import { createHash } from 'node:crypto';
import type { Request } from 'express';
import type { IdempotencyClaim } from '../../engine/types.ts';
import { EngineError } from '../../engine/errors.ts';
import type { NewMemory } from '../../engine/types.ts';
import { isErrorCode } from '../http-errors.ts';
import type { JsonBody } from '../read-body.ts';
import { mediaTypeOf, readJson } from '../read-body.ts';
import { localsOf, sendJson } from '../reply.ts';
import type { Route, TenantCall } from '../route.ts';
import {
  addQuerySchema,
  batchQuerySchema,
  batchSchema,
  idempotencyKeySchema,
  newMemorySchema,
  parse,
} from '../schemas.ts';
import { acceptedItem, duplicateItem, finishedItem, outcomeItem, toNewMemory } from '../wire.ts';
import { waitForWrites, waitMsOf } from '../wait-for-writes.ts';
import { addLines } from './add-lines.ts';
import { isItemError, parseItem, wantsLines } from './batch-items.ts';

export const addRoutes: readonly Route[] = [
  { method: 'post', path: '/memory/add', access: 'write', handle: addOne },
  { method: 'post', path: '/memory/add/batch', access: 'write', handle: addBatch },
];

async function addOne(call: TenantCall): Promise<void> {
  const { tenant, request, response } = call;
  const waitMs = waitMsOf(call, parse(addQuerySchema, request.query).wait);
  const body = await readJson(request);
  const item = toNewMemory(parse(newMemorySchema, body.value));
  const reply = await tenant.addMemories([item], { idempotency: claimOf(request, '/memory/add', body) });
  if (reply.replayed) response.setHeader('idempotent-replayed', 'true');
  const outcome = reply.outcomes[0]!;
  if (outcome.kind === 'rejected') {
    const { code, message } = outcome.error;
    throw new EngineError(isErrorCode(code) ? code : 'invalid', message);
  }
  if (outcome.kind === 'duplicate') return sendJson(response, 200, duplicateItem(outcome));
  localsOf(response).jobId = outcome.jobId;
  response.setHeader('location', `/jobs/${outcome.jobId}`);
  if (waitMs > 0 && reply.token !== null && (await waitForWrites(call, reply.token, waitMs))) {
    const memory = tenant.getMemory(outcome.id);
    const error = memory.state === 'failed' ? tenant.getJob(outcome.jobId).error : null;
    return sendJson(response, 200, { ...finishedItem(memory), ...(error === null ? {} : { error }) });
  }
  sendJson(response, 202, acceptedItem(outcome, reply));
}

/** A list as JSON, or a stream as NDJSON. A wrong item spares the rest; a body that is no list of items is refused whole. */
async function addBatch(call: TenantCall): Promise<void> {
  const { tenant, request, response } = call;
  parse(batchQuerySchema, request.query);
  if (mediaTypeOf(request) === 'application/x-ndjson') return addLines(call);
  const body = await readJson(request);
  const items = parse(batchSchema, body.value).items.map(parseItem);
  const good = items.filter((item): item is NewMemory => !isItemError(item));
  const idempotency = claimOf(request, '/memory/add/batch', body);
  const reply = await tenant.addMemories(good, { bulk: true, idempotency });
  if (reply.replayed) response.setHeader('idempotent-replayed', 'true');
  const outcomes = reply.outcomes.values();
  const results = items.map((item) => (isItemError(item) ? item : outcomeItem(outcomes.next().value!)));
  const accepted = results.filter((result) => !isItemError(result)).length;
  const counts = { accepted, rejected: results.length - accepted, token: reply.token };
  if (!wantsLines(request)) return sendJson(response, reply.token === null ? 200 : 202, { results, ...counts });
  response.statusCode = reply.token === null ? 200 : 202;
  response.setHeader('content-type', 'application/x-ndjson; charset=utf-8');
  response.end([...results, counts].map((line) => `${JSON.stringify(line)}\n`).join(''));
}

function claimOf(request: Request, route: string, body: JsonBody): IdempotencyClaim | undefined {
  const header = request.headers['idempotency-key'];
  if (header === undefined) return undefined;
  return {
    key: parse(idempotencyKeySchema, header),
    route,
    bodyHash: createHash('sha256').update(body.bytes).digest(),
  };
}

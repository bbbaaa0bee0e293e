import type { Response } from 'express';
import type { RateClass } from '../engine/index.ts';
import { localsOf } from './reply.ts';
import type { Route, TenantCall } from './route.ts';
import { withoutStack } from './without-stack.ts';

const MB = 1024 * 1024;

/**
 * Takes the rate-limit tokens of a request before it is handled, for the limits that the route names (`limited`): one
 * of `queries` or `adds`, and the bytes that an upload announces. If an upload does not announce its length, its bytes
 * are taken after it has ended. Tokens for the items of a batch are taken by the handlers, which know their number.
 * @throws EngineError `rate_limited`
 */
export function takeForRequest(call: TenantCall, { limited = [] }: Route): void {
  for (const kind of limited) {
    if (kind === 'upload_bytes') takeUpload(call);
    else if (kind !== 'batch_items') takeTokens(call, kind, 1);
  }
}

function takeUpload(call: TenantCall): void {
  const { api, principal, request, response } = call;
  const length = request.headers['content-length'];
  takeTokens(call, 'upload_bytes', length === undefined ? 1 : Number(length));
  // Limits are read now, as they may not be readable when the request ends, where nobody would catch the error.
  const perMinute = perMinuteOf(call, 'upload_bytes');
  if (length !== undefined || perMinute === 0) return;
  // The upload's bytes that have arrived but were not read are counted, together with the frames of its chunks.
  const { socket, readableLength } = request;
  const before = socket.bytesRead - readableLength;
  response.once('close', () => {
    const bucket = { key: principal.keyId, kind: 'upload_bytes' } as const;
    try {
      api.engine.rates.take(bucket, { cost: socket.bytesRead - before, perMinute, mustFit: false });
    } catch {
      // Nobody would catch it here, and the next request tells what is wrong with the file of the rates.
    }
  });
}

/**
 * Takes `cost` tokens from the bucket of the caller's key, and writes the remaining tokens into the reply's headers
 * (`RateLimit-Policy` and `RateLimit` of draft-ietf-httpapi-ratelimit-headers-11). If the key has no limit of this
 * kind, nothing happens.
 * @throws EngineError `rate_limited`, with the time after which the same request is allowed
 */
export function takeTokens(call: TenantCall, kind: RateClass, cost: number): void {
  const perMinute = perMinuteOf(call, kind);
  if (perMinute === 0 || cost === 0) return;
  const { api, principal, response } = call;
  // A key of several tenants has one bucket for all of them.
  const verdict = api.engine.rates.take({ key: principal.keyId, kind }, { cost, perMinute, mustFit: true });
  tellRest(response, kind, { perMinute, ...verdict });
  if (verdict.isAllowed) return;
  api.engine.metrics.limitedRequests.inc({ limit: kind });
  throw withoutStack('rate_limited', `this key may spend ${perMinute} ${kind} a minute; this request needs ${cost}`, {
    retryAfterMs: verdict.retryAfterMs,
  });
}

/**
 * Takes the tokens of `queries` for a change of the defaults of the caller's tenant: two for each question of its
 * guarded evaluation sets, which are asked under the present and the new defaults.
 * @throws EngineError `rate_limited`
 */
export async function takeForGuards(call: TenantCall): Promise<void> {
  if (perMinuteOf(call, 'queries') === 0) return;
  const sets = await call.tenant.listEvals();
  const items = sets.reduce((sum, { guard, items }) => sum + (guard ? items : 0), 0);
  takeTokens(call, 'queries', 2 * items);
}

/**
 * Writes the remaining tokens of a limit into the reply's headers. A request that takes tokens several times, such as a
 * batch of MCP messages, names each limit once, with the lowest remainder. Once the headers are sent, nothing is
 * written.
 */
function tellRest(
  response: Response,
  kind: RateClass,
  { perMinute, remaining, resetMs }: { perMinute: number; remaining: number; resetMs: number },
): void {
  if (response.headersSent) return;
  const told = (localsOf(response).limits ??= new Map());
  if (remaining >= (told.get(kind)?.remaining ?? Infinity)) return;
  const unit = kind === 'upload_bytes' ? ';qu="content-bytes"' : '';
  const rest = `"${kind}";r=${remaining};t=${Math.ceil(resetMs / 1000)}`;
  told.set(kind, { remaining, policy: `"${kind}";q=${perMinute};w=60${unit}`, rest });
  const all = [...told.values()];
  response.setHeader('ratelimit-policy', all.map((limit) => limit.policy).join(', '));
  response.setHeader('ratelimit', all.map((limit) => limit.rest).join(', '));
}

/**
 * Takes one token for a further tenant that a request queries, under the limits of the caller's key there. The reply's
 * headers are not changed, as they are about the request's own tenant.
 * @returns true if there was a token, or the key has no limit
 */
export function isWithinRate({ api, principal }: TenantCall, kind: RateClass, tenantId: string): boolean {
  const perMinute = perMinuteOf({ api, principal: { ...principal, tenantId } }, kind);
  if (perMinute === 0) return true;
  const bucket = { key: principal.keyId, kind };
  const { isAllowed } = api.engine.rates.take(bucket, { cost: 1, perMinute, mustFit: true });
  if (!isAllowed) api.engine.metrics.limitedRequests.inc({ limit: kind });
  return isAllowed;
}

function perMinuteOf({ api, principal }: Pick<TenantCall, 'api' | 'principal'>, kind: RateClass): number {
  const limits = api.engine.control.limits.inForce(principal);
  return kind === 'upload_bytes' ? limits.upload_mb * MB : limits[kind];
}

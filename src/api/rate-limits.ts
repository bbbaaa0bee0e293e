import type { Response } from 'express';
import { EngineError, type RateClass } from '../engine/index.ts';
import { localsOf } from './reply.ts';
import type { Route, TenantCall } from './route.ts';

const MB = 1024 * 1024;

/**
 * Takes what a request costs before it is handled: one token of `queries` or `adds`, and the bytes that an upload
 * announces. An upload of unknown length is counted while it arrives, and its key pays afterwards. Items of batches are
 * taken by their handlers, which know their number.
 * @throws EngineError `rate_limited`
 */
export function takeForRequest(call: TenantCall, { limited = [] }: Route): void {
  for (const kind of limited) {
    if (kind === 'upload_bytes') takeUpload(call);
    else if (kind !== 'batch_items') takeTokens(call, kind, 1);
  }
}

function takeUpload(call: TenantCall): void {
  const { request, response } = call;
  const length = request.headers['content-length'];
  takeTokens(call, 'upload_bytes', length === undefined ? 1 : Number(length));
  if (length !== undefined || perMinuteOf(call, 'upload_bytes') === 0) return;
  // What waits to be read has arrived already. The frames of the chunks are counted, too.
  const { socket, readableLength } = request;
  const before = socket.bytesRead - readableLength;
  response.once('close', () => takeTokens(call, 'upload_bytes', socket.bytesRead - before, { mustFit: false }));
}

/**
 * Takes tokens from the bucket of the caller's key, and says in the reply's headers what is left (`RateLimit-Policy`
 * and `RateLimit` of draft-ietf-httpapi-ratelimit-headers-11). Without a limit nothing happens.
 * @param options.mustFit false takes the tokens in any case
 * @throws EngineError `rate_limited` with the time after which the same request is allowed
 */
export function takeTokens(call: TenantCall, kind: RateClass, cost: number, { mustFit = true } = {}): void {
  const perMinute = perMinuteOf(call, kind);
  if (perMinute === 0 || cost === 0) return;
  const { api, principal, response } = call;
  // A key of several tenants spends from one bucket.
  const verdict = api.engine.rates.take({ key: principal.keyId, kind }, { cost, perMinute, mustFit });
  tellRest(response, kind, { perMinute, ...verdict });
  if (verdict.isAllowed) return;
  api.engine.metrics.limitedRequests.inc({ limit: kind });
  throw new EngineError(
    'rate_limited',
    `this key may spend ${perMinute} ${kind} a minute; this request needs ${cost}`,
    {
      retryAfterMs: verdict.retryAfterMs,
    },
  );
}

/**
 * Says in the reply's headers what is left of a limit. A request that spends several times, such as a batch of MCP
 * messages, tells of each limit once: by what was left when least was.
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
 * Takes one token for a further tenant that a request asks, by the limits of the key there. It says nothing in the
 * reply's headers, which are about the request's own tenant.
 * @returns whether there was one to take
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

import { readJson } from '../read-body.ts';
import { sendJson } from '../reply.ts';
import type { Route, TenantCall } from '../route.ts';
import { parse, querySchema } from '../schemas.ts';
import { clientGone, waitForWrites } from '../wait-for-writes.ts';
import { matchItem, toQuery } from '../wire.ts';

/** How long a query waits for the writes behind its token (ms); after that it answers from what is there. */
const TOKEN_WAIT_MS = 2_000;

export const queryRoutes: readonly Route[] = [{ method: 'post', path: '/memory/query', access: 'read', handle: query }];

async function query(call: TenantCall): Promise<void> {
  const { tenant, principal, request, response } = call;
  const body = parse(querySchema, (await readJson(request)).value);
  const tokenSatisfied = body.token == null ? undefined : await waitForWrites(call, body.token, TOKEN_WAIT_MS);
  // Recall by the public must not change what a tenant remembers.
  const isPublic = principal.role === 'read' && principal.keyId === 'anonymous';
  const result = await tenant.query(
    { ...toQuery(body), ...(isPublic ? { reinforce: false } : {}) },
    clientGone(response),
  );
  sendJson(response, 200, {
    query: body.query,
    matches: result.hits.map(matchItem),
    degraded: result.degraded,
    recall_id: result.recallId,
    ...(tokenSatisfied === undefined ? {} : { token_satisfied: tokenSatisfied }),
    ...(result.trace === undefined ? {} : { trace: result.trace }),
  });
}

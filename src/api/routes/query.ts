import { readJson } from '../read-body.ts';
import { sendJson } from '../reply.ts';
import type { Route, TenantCall } from '../route.ts';
import { noQuerySchema, parse, querySchema } from '../schemas.ts';
import { clientGone, TOKEN_WAIT_MS, waitForWrites } from '../wait-for-writes.ts';
import { queryReply, toQuery } from '../wire.ts';

export const queryRoutes: readonly Route[] = [{ method: 'post', path: '/memory/query', access: 'read', handle: query }];

async function query(call: TenantCall): Promise<void> {
  const { tenant, principal, request, response } = call;
  parse(noQuerySchema, request.query);
  const body = parse(querySchema, (await readJson(request)).value);
  const tokenSatisfied = body.token == null ? undefined : await waitForWrites(call, body.token, TOKEN_WAIT_MS);
  // Recall by the public must not change what a tenant remembers.
  const isPublic = principal.role === 'read' && principal.keyId === 'anonymous';
  const asked = { ...toQuery(body), ...(isPublic ? { reinforce: false } : {}) };
  const result = await tenant.query(asked, clientGone(response));
  sendJson(response, 200, queryReply(asked, result, tokenSatisfied));
}

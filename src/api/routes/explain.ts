import { readJson } from '../read-body.ts';
import { sendJson } from '../reply.ts';
import type { Route, TenantCall } from '../route.ts';
import { explainSchema, noQuerySchema, parse } from '../schemas.ts';
import { clientGone, TOKEN_WAIT_MS, waitForWrites } from '../wait-for-writes.ts';
import { explanationItem, toQuery } from '../wire.ts';

export const explainRoutes: readonly Route[] = [{ method: 'post', path: '/explain', access: 'read', handle: explain }];

async function explain(call: TenantCall): Promise<void> {
  const { tenant, request, response } = call;
  parse(noQuerySchema, request.query);
  const body = parse(explainSchema, (await readJson(request)).value);
  const tokenSatisfied = body.token == null ? undefined : await waitForWrites(call, body.token, TOKEN_WAIT_MS);
  const explanation = await tenant.explain(toQuery(body), body.memory_id, clientGone(response));
  sendJson(response, 200, {
    ...explanationItem(explanation),
    ...(tokenSatisfied === undefined ? {} : { token_satisfied: tokenSatisfied }),
  });
}

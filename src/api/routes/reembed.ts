import type { ReembedStatus } from '../../engine/types.ts';
import { hasBody, readJson } from '../read-body.ts';
import { sendJson } from '../reply.ts';
import type { Route, TenantCall } from '../route.ts';
import { noQuerySchema, parse, reembedSchema } from '../schemas.ts';
import { reembedItem } from '../wire.ts';

/** A change of the embedding model. It is the tenant's of the key. */
export const reembedRoutes: readonly Route[] = [
  { method: 'get', path: '/admin/reembed', access: 'admin', handle: answer(200, (tenant) => tenant.reembedStatus()) },
  { method: 'post', path: '/admin/reembed', access: 'admin', handle: start },
  {
    ...{ method: 'post', path: '/admin/reembed/pause', access: 'admin' },
    handle: answer(200, (tenant) => tenant.pauseReembed()),
  },
  {
    ...{ method: 'delete', path: '/admin/reembed', access: 'admin' },
    handle: answer(200, (tenant) => tenant.cancelReembed()),
  },
];

async function start({ tenant, request, response }: TenantCall): Promise<void> {
  parse(noQuerySchema, request.query);
  const { without_refused } = parse(reembedSchema, hasBody(request) ? (await readJson(request)).value : {});
  sendJson(response, 202, reembedItem(await tenant.startReembed({ withoutRefused: without_refused ?? false })));
}

function answer(status: number, act: (tenant: TenantCall['tenant']) => ReembedStatus | Promise<ReembedStatus>) {
  return async ({ tenant, request, response }: TenantCall): Promise<void> => {
    parse(noQuerySchema, request.query);
    sendJson(response, status, reembedItem(await act(tenant)));
  };
}

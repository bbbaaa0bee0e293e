import type { ReembedStatus } from '../../engine/types.ts';
import { sendJson } from '../reply.ts';
import type { Route, TenantCall } from '../route.ts';
import { noQuerySchema, parse } from '../schemas.ts';
import { reembedItem } from '../wire.ts';

/** A change of the embedding model. It is the tenant's of the key. */
export const reembedRoutes: readonly Route[] = [
  { method: 'get', path: '/admin/reembed', access: 'admin', handle: answer(200, (tenant) => tenant.reembedStatus()) },
  { method: 'post', path: '/admin/reembed', access: 'admin', handle: answer(202, (tenant) => tenant.startReembed()) },
  {
    ...{ method: 'post', path: '/admin/reembed/pause', access: 'admin' },
    handle: answer(200, (tenant) => tenant.pauseReembed()),
  },
  {
    ...{ method: 'delete', path: '/admin/reembed', access: 'admin' },
    handle: answer(200, (tenant) => tenant.cancelReembed()),
  },
];

function answer(status: number, act: (tenant: TenantCall['tenant']) => ReembedStatus | Promise<ReembedStatus>) {
  return async ({ tenant, request, response }: TenantCall): Promise<void> => {
    parse(noQuerySchema, request.query);
    sendJson(response, status, reembedItem(await act(tenant)));
  };
}

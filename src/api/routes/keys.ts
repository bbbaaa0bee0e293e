import { route, type Route } from '../route.ts';
import { keyPage } from '../schemas/keys.ts';
import { pageQuery } from '../schemas/values.ts';
import { keyItem } from '../wire/keys.ts';

/** The route by which admins see the keys of their tenant; only `cairn keys` makes and revokes them. */
export const keyRoutes: readonly Route[] = [
  route({
    method: 'get',
    path: '/admin/keys',
    name: 'listKeys',
    access: 'admin',
    summary: 'Lists the keys of the tenant, the newest first',
    description:
      'Revoked and expired keys are listed too. No secret is shown, as only hashes are stored. `OM_API_KEY` and the ' +
      'owners of tokens are not listed. Keys are made and revoked with `cairn keys`.',
    query: pageQuery,
    replies: { 200: { description: 'A page of keys.', json: keyPage } },
    handle({ api, principal, query: { l, u }, send }) {
      const keys = api.engine.control.listKeys(principal.tenantId).reverse();
      send(200, { items: keys.slice(u, u + l).map(keyItem), total: keys.length });
    },
  }),
];

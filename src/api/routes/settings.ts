import { readJson } from '../read-body.ts';
import { sendJson } from '../reply.ts';
import type { Route, TenantCall } from '../route.ts';
import { noQuerySchema, parse, retrievalSchema } from '../schemas.ts';
import { retrievalItem, toRetrievalOptions } from '../wire.ts';

/** What a tenant says about its queries where they say nothing themselves. */
export const settingsRoutes: readonly Route[] = [
  { method: 'get', path: '/settings/retrieval', access: 'read', handle: getRetrieval },
  { method: 'put', path: '/settings/retrieval', access: 'admin', handle: putRetrieval },
];

function getRetrieval({ tenant, request, response }: TenantCall): void {
  parse(noQuerySchema, request.query);
  sendJson(response, 200, retrievalItem(tenant.retrievalDefaults()));
}

async function putRetrieval({ tenant, request, response }: TenantCall): Promise<void> {
  parse(noQuerySchema, request.query);
  const body = parse(retrievalSchema, (await readJson(request)).value);
  tenant.putRetrievalDefaults(toRetrievalOptions(body));
  sendJson(response, 200, retrievalItem(tenant.retrievalDefaults()));
}

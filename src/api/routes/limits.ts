import { z } from 'zod';
import { type ChangeResult, LIMIT_NAMES, type LimitName, type LimitScope, MAX_LIMIT } from '../../engine/index.ts';
import { changeControl } from '../control-turn.ts';
import { requireOperator } from '../operator.ts';
import { route, type Route, type TenantCall } from '../route.ts';

const value = z.int().min(0).max(MAX_LIMIT);
const each = <Schema extends z.ZodType>(schema: Schema) =>
  Object.fromEntries(LIMIT_NAMES.map((name) => [name, schema])) as Record<LimitName, Schema>;

const whose = z.strictObject({
  tenant: z
    .string()
    .max(64)
    .optional()
    .describe('The tenant; by default that of your key.')
    .meta({ examples: ['acme'] }),
  key_id: z
    .string()
    .max(64)
    .optional()
    .describe('Id of a key of the tenant, `environment` for `OM_API_KEY`; left out for the tenant itself.')
    .meta({ examples: ['3f1c9a0b5d7e2468'] }),
});

const limitsReply = z
  .strictObject({
    in_force: z
      .strictObject(each(value))
      .describe(
        'The limits that apply; 0 for no limit. For each key and minute: `queries`, `adds` (requests that add one ' +
          'memory, document or page), `batch_items` (items of batches) and `upload_mb` (MB of uploaded documents). ' +
          'For the tenant and each minute: `parse_seconds` (time in which its documents keep parsers busy) and ' +
          '`fetches` (pages that are fetched). For the tenant at any time: `event_streams` that are open, ' +
          '`fetches_at_once`, `max_mb` (size of its database, MB) and `max_memories`.',
      ),
    own: z
      .strictObject(each(value.exactOptional()))
      .describe(
        'Only the limits that are stored for exactly this tenant or key; the tenant or the settings set the others.',
      ),
  })
  .meta({
    examples: [
      {
        in_force: {
          queries: 600,
          adds: 0,
          batch_items: 0,
          upload_mb: 0,
          event_streams: 100,
          parse_seconds: 0,
          fetches: 0,
          fetches_at_once: 0,
          max_mb: 2048,
          max_memories: 0,
        },
        own: { queries: 600, max_mb: 2048 },
      },
    ],
  });

const limitsChange = z.strictObject(
  each(
    value
      .nullable()
      .optional()
      .describe(
        'A new limit, 0 for none; null removes the stored one, so that that of the tenant or the settings applies.',
      ),
  ),
);

/** Routes of the limits of tenants and keys. */
export const limitRoutes: readonly Route[] = [
  route({
    method: 'get',
    path: '/admin/limits',
    name: 'getLimits',
    access: 'admin',
    summary: 'Shows the limits of a tenant or of a key',
    query: whose,
    replies: { 200: { description: 'The limits.', json: limitsReply } },
    handle({ api, principal, query, send }) {
      const scope = scopeOf(query, principal);
      if (scope.tenantId !== principal.tenantId) requireOperator(principal, 'another tenant');
      const { limits } = api.engine.control;
      send(200, limitsItem({ inForce: limits.inForce(scope), own: limits.own(scope) }));
    },
  }),
  route({
    method: 'patch',
    path: '/admin/limits',
    name: 'patchLimits',
    access: 'admin',
    summary: 'Changes limits of a tenant or of a key',
    description:
      'Needs an admin key of the default tenant, as no tenant sets its own limits. Limits that the body does not ' +
      'name stay. All processes apply the change within a second.',
    query: whose,
    body: { json: limitsChange, example: { queries: 600, max_mb: 2048, adds: null } },
    replies: { 200: { description: 'The limits as they are now.', json: limitsReply } },
    errors: { not_found: 'No tenant has this id, or no key of the tenant.' },
    async handle({ api, principal, query, readBody, send }) {
      requireOperator(principal, 'limits are set by the operator: this');
      const scope = scopeOf(query, principal);
      const changes = await readBody();
      send(200, limitsItem(await changeControl({ api, principal }, 'changeLimits', scope, changes, principal.keyId)));
    },
  }),
];

type Principal = TenantCall['principal'];

const scopeOf = ({ tenant, key_id: keyId }: z.output<typeof whose>, { tenantId }: Principal): LimitScope => ({
  tenantId: tenant ?? tenantId,
  keyId,
});

const limitsItem = ({ inForce, own }: ChangeResult<'changeLimits'>) => ({ in_force: inForce, own });

import { EngineError, listSettings } from '../../engine/index.ts';
import { changeControl } from '../control-turn.ts';
import { requireOperator } from '../operator.ts';
import { route, type Route } from '../route.ts';
import {
  activityReply,
  backupQuery,
  backupRequest,
  backupRequested,
  backupsReply,
  decayAssumptions,
  decayReply,
  settingsReply,
} from '../schemas/admin.ts';
import { noQuery } from '../schemas/values.ts';
import { clientGone } from '../wait-for-writes.ts';
import { activityItem, backupsItem, decayItem } from '../wire/admin.ts';

const DAY = 1795265978965;

/** The routes by which administrators preview decay, list and start backups, and see settings and activity. */
export const adminRoutes: readonly Route[] = [
  route({
    method: 'post',
    path: '/admin/decay/preview',
    name: 'previewDecay',
    access: 'admin',
    repeatable: true,
    limited: ['queries'],
    alsoReads: true,
    summary: 'Shows how memories will have faded at a date, under the rates of decay that are set or under others',
    description:
      'The request changes nothing. It shows the effect of `OM_DECAY_LAMBDA` or `OM_ARCHIVE_BELOW` before one of ' +
      'them is set, and assumes that no memory is recalled until the date.',
    query: noQuery,
    body: {
      json: decayAssumptions,
      example: { at: '2027-06-01', lambda: { episodic: 0.03 }, archive_below: 0.05 },
    },
    replies: {
      200: {
        description: 'Salience today and at the date.',
        json: decayReply,
        example: {
          at: DAY,
          sectors: [
            {
              sector: 'semantic',
              count: 1,
              before: { average: 0.4, tenths: [0, 0, 0, 0, 1, 0, 0, 0, 0, 0] },
              after: { average: 0.25, tenths: [0, 0, 1, 0, 0, 0, 0, 0, 0, 0] },
            },
          ],
          archived: 0,
          archives: [],
          falls: [
            {
              id: '01a1fe30-e25b-7576-a0c2-3c4e3646bd72',
              gist: 'Deploys to staging happen every Tuesday.',
              sector: 'semantic',
              salience_from: 0.4,
              salience_to: 0.25,
            },
          ],
          degraded: false,
        },
      },
    },
    async handle({ api, tenant, readBody, response, send }) {
      const { at, lambda, archive_below: archiveBelow } = await readBody();
      if (at <= api.engine.clock.now()) throw new EngineError('invalid', 'at: expected a time that is still to come');
      send(200, decayItem(at, await tenant.previewDecay({ at, lambda, archiveBelow }, clientGone(response))));
    },
  }),
  route({
    method: 'get',
    path: '/admin/backups',
    name: 'listBackups',
    access: 'admin',
    summary: 'Lists the scheduled backups of a tenant, and the state of their schedule',
    description: 'Needs an admin key of the default tenant, as the folder of backups belongs to the whole service.',
    query: backupQuery,
    errors: { not_found: 'No tenant has this id.' },
    replies: {
      200: {
        description: 'A page of backups.',
        json: backupsReply,
        example: {
          tenant: 'default',
          every_ms: 86_400_000,
          keep: 7,
          schedule: { state: 'waiting', last_run_at: DAY, failures: 0, failed_at: null },
          items: [{ file: 'tenants/default/20261121T125938965Z.sqlite', at: DAY, bytes: 1048576 }],
          total: 1,
          control: [{ file: 'control/20261121T125938965Z.sqlite', at: DAY, bytes: 65536 }],
        },
      },
    },
    async handle({ api: { engine }, principal, query: { l, u, tenant: named }, send }) {
      requireOperator(principal, 'the list of backups');
      const tenant = await engine.tenant(named ?? principal.tenantId);
      const { OM_BACKUP_EVERY: everyMs = null, OM_BACKUP_KEEP: keep } = engine.config;
      const backups = await tenant.listBackups({ limit: l, offset: u });
      send(200, backupsItem({ tenant: tenant.id, every_ms: everyMs, keep }, backups));
    },
  }),
  route({
    method: 'post',
    path: '/admin/backups',
    name: 'requestBackup',
    access: 'admin',
    summary: 'Starts a backup of a tenant into the folder of scheduled backups',
    description:
      'Needs an admin key of the default tenant. A worker makes the backup within about 15 seconds; ' +
      '`GET /admin/backups` shows it once it was checked from end to end.',
    query: noQuery,
    body: { json: backupRequest, example: { tenant: 'default' }, optional: true },
    errors: {
      conflict: '`OM_BACKUP_FOLDER` is not set, or a backup of the tenant is being made.',
      not_found: 'No tenant has this id.',
    },
    replies: {
      202: { description: 'The backup is due.', json: backupRequested, example: { tenant: 'default', state: 'due' } },
    },
    async handle({ api, principal, readBody, send }) {
      requireOperator(principal, 'a backup');
      const { engine } = api;
      const { tenant: named } = await readBody();
      const tenant = await engine.tenant(named ?? principal.tenantId);
      await tenant.as(principal.keyId).requestBackup();
      const { keyId } = principal;
      await changeControl({ api, principal }, 'appendAudit', 'backup.request', { tenant: tenant.id }, keyId);
      send(202, { tenant: tenant.id, state: 'due' });
    },
  }),
  route({
    method: 'get',
    path: '/admin/settings',
    name: 'listSettings',
    access: 'admin',
    summary: 'Lists all settings of the service with their values, and where each comes from',
    description:
      'Needs an admin key of the default tenant. The value of a setting that may be secret, as a key or a URL, is ' +
      'not shown.',
    query: noQuery,
    replies: { 200: { description: 'The settings.', json: settingsReply } },
    handle({ api: { engine }, principal, send }) {
      requireOperator(principal, 'the list of settings');
      const items = listSettings(engine.config).map(({ isHidden, ...setting }) => ({ ...setting, hidden: isHidden }));
      send(200, { items });
    },
  }),
  route({
    method: 'get',
    path: '/admin/activity',
    name: 'getActivity',
    access: 'admin',
    summary: 'Shows what the service did within the last hour, minute by minute, and the state of its providers',
    description:
      'Needs an admin key of the default tenant, as the activity is that of all tenants. It is kept in memory, so it ' +
      'begins anew with each start of the service. Workers that run as processes of their own are not counted.',
    query: noQuery,
    replies: { 200: { description: 'The minutes.', json: activityReply } },
    async handle({ api, principal, send }) {
      requireOperator(principal, 'the activity of the service');
      send(200, activityItem(await api.activity(), api.engine.config));
    },
  }),
];

import type { AuditRecord } from '../../engine/index.ts';
import { requireOperator } from '../operator.ts';
import { clientGone } from '../wait-for-writes.ts';
import { route, type Route } from '../route.ts';
import { auditPage, auditQuery, type AuditItem } from '../schemas/audit.ts';

/** Routes of the audit log. */
export const auditRoutes: readonly Route[] = [
  route({
    method: 'get',
    path: '/audit',
    name: 'listAudit',
    access: 'admin',
    summary: "Lists what was done with this tenant's memories, and by which key, the newest first",
    description:
      '`of=service` lists what was done with tenants, keys, limits and backups, and who signed in with a token: it ' +
      'needs an admin key of the default tenant. Records hold ids and counts, never content. Each was stored in the ' +
      'commit of the action that it tells of. `cairn audit verify` checks that none was changed or taken out.',
    query: auditQuery,
    errors: { forbidden: 'The log of the service needs an admin key of the default tenant.' },
    replies: { 200: { description: 'A page of the log.', json: auditPage } },
    async handle({ api, principal, tenant, query: { of, limit, before, key, action, from, to }, response, send }) {
      // One record more than asked for says whether there is a next page.
      const filter = { limit: limit + 1, before, keyId: key, action, from, to };
      if (of === 'service') requireOperator(principal, 'the log of the service');
      const gone = clientGone(response);
      const { audit } = api.engine.control;
      const records = await (of === 'service' ? audit.list(filter, gone) : tenant.listAudit(filter, gone));
      const page = records.slice(0, limit);
      send(200, { items: page.map(auditItem), next: records.length > limit ? page.at(-1)!.no : null });
    },
  }),
];

function auditItem({ no, at, keyId, action, detail, hash }: AuditRecord): AuditItem {
  return { no, at, key: keyId, action, detail: detail as AuditItem['detail'], hash };
}

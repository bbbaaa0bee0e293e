import type { AuditRecord } from '../../engine/index.ts';
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
      'Records hold ids and counts, never content. Each was stored in the commit of the action that it tells of. ' +
      '`cairn audit verify` checks that none was changed or taken out.',
    query: auditQuery,
    replies: { 200: { description: 'A page of the log.', json: auditPage } },
    async handle({ tenant, query: { limit, before, key, action, from, to }, send }) {
      const records = await tenant.listAudit({ limit, before, keyId: key, action, from, to });
      send(200, { items: records.map(auditItem), next: records.length < limit ? null : (records.at(-1)?.no ?? null) });
    },
  }),
];

function auditItem({ no, at, keyId, action, detail, hash }: AuditRecord): AuditItem {
  return { no, at, key: keyId, action, detail: detail as AuditItem['detail'], hash };
}

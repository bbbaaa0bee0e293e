import { Counter, type Registry } from 'prom-client';
import { MEMBER_OUTCOMES } from '../types.ts';

/** Makes the metrics of queries to several tenants and servers. */
export function createFederationMetrics(registers: Registry[]) {
  const federationMembers = new Counter({
    name: 'cairn_federation_members_total',
    help:
      'Tenants and servers that federated questions asked, by kind of member (tenant, server) and outcome (answered, ' +
      'timeout, unreachable, refused, invalid, failed); if one does not answer, the answers of the others are ' +
      'returned.',
    labelNames: ['member', 'outcome'],
    registers,
  });
  for (const member of ['tenant', 'server'])
    for (const outcome of MEMBER_OUTCOMES) federationMembers.inc({ member, outcome }, 0);
  return { federationMembers };
}

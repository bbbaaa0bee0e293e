import { DAY_MS, type ProviderUsage } from '../../engine/index.ts';
import { route, type Route } from '../route.ts';
import { providerCallPage, providerCallsQuery, providerUsageQuery, providerUsageReply } from '../schemas/providers.ts';
import { providerCallItem, providerUsageItem } from '../wire/providers.ts';

/** Routes of the calls of embedding providers and the language model: their failures, tokens and cost. */
export const providerRoutes: readonly Route[] = [
  route({
    method: 'get',
    path: '/embeddings/log',
    name: 'listProviderCalls',
    access: 'admin',
    summary: 'Lists calls of embedding providers and language models, the newest first',
    description:
      'Calls are kept for `OM_JOB_RETENTION_HOURS`, without any text. A call that served several tenants is listed ' +
      'in one of them.',
    query: providerCallsQuery,
    replies: { 200: { description: 'A page of calls.', json: providerCallPage } },
    async handle({ tenant, query: { state, l, u }, send }) {
      const { items, total } = await tenant.listProviderCalls({ state }, { limit: l, offset: u });
      send(200, { items: items.map(providerCallItem), total });
    },
  }),
  route({
    method: 'get',
    path: '/embeddings/stats',
    name: 'sumProviderCalls',
    access: 'admin',
    summary: 'Sums up calls of embedding providers and language models by day, model and purpose',
    description: 'The sums stay when the calls themselves are removed after `OM_JOB_RETENTION_HOURS`.',
    query: providerUsageQuery,
    replies: { 200: { description: 'The sums.', json: providerUsageReply } },
    async handle({ api, tenant, query: { days }, send }) {
      const usage = await tenant.listProviderUsage(api.engine.clock.now() - (days - 1) * DAY_MS);
      send(200, { items: usage.map(providerUsageItem), totals: totalsOf(usage) });
    },
  }),
];

function totalsOf(usage: readonly ProviderUsage[]) {
  const sum = (field: (row: ProviderUsage) => number) => usage.reduce((total, row) => total + field(row), 0);
  return {
    calls: sum((row) => row.calls),
    failed: sum((row) => row.failed),
    texts: sum((row) => row.texts),
    tokens: sum((row) => row.tokens),
    output_tokens: sum((row) => row.outputTokens),
    cost_usd: sum((row) => row.costUsd),
    cached_texts: sum((row) => row.cachedTexts),
    saved_tokens: sum((row) => row.savedTokens),
  };
}

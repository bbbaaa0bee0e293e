import { DAY_MS, type ProviderUsage } from '../../engine/index.ts';
import { route, type Route } from '../route.ts';
import { providerCallPage, providerCallsQuery, providerUsageQuery, providerUsageReply } from '../schemas/providers.ts';
import { providerCallItem, providerUsageItem } from '../wire/providers.ts';

/** What was asked of embedding providers and of the language model, what failed, and what it cost. */
export const providerRoutes: readonly Route[] = [
  route({
    method: 'get',
    path: '/embeddings/log',
    name: 'listProviderCalls',
    access: 'admin',
    summary: 'Lists calls of providers, the newest first',
    description:
      'Kept for `OM_JOB_RETENTION_HOURS`, without any text. A call that served several tenants stands with one.',
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
    summary: 'Sums up calls of providers by day, model and purpose',
    description: 'Unlike the calls themselves, these sums are kept.',
    query: providerUsageQuery,
    replies: { 200: { description: 'The sums.', json: providerUsageReply } },
    async handle({ api, tenant, query: { days }, send }) {
      const usage = await tenant.listProviderUsage(api.engine.clock.now() - (days - 1) * DAY_MS);
      send(200, { items: usage.map(providerUsageItem), totals: totalsOf(usage) });
    },
  }),
];

function totalsOf(usage: readonly ProviderUsage[]) {
  const sum = (field: (one: ProviderUsage) => number) => usage.reduce((total, one) => total + field(one), 0);
  return {
    calls: sum((one) => one.calls),
    failed: sum((one) => one.failed),
    texts: sum((one) => one.texts),
    tokens: sum((one) => one.tokens),
    output_tokens: sum((one) => one.outputTokens),
    cost_usd: sum((one) => one.costUsd),
    cached_texts: sum((one) => one.cachedTexts),
    saved_tokens: sum((one) => one.savedTokens),
  };
}

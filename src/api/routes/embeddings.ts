import { DAY_MS } from '../../engine/dynamics.ts';
import type { ProviderUsage } from '../../engine/types.ts';
import { sendJson } from '../reply.ts';
import type { Route, TenantCall } from '../route.ts';
import { parse, providerCallsSchema, providerUsageSchema } from '../schemas.ts';
import { providerCallItem, providerUsageItem } from '../wire.ts';

/** What was asked of embedding providers and of the language model, what failed, and what it cost. */
export const embeddingRoutes: readonly Route[] = [
  { method: 'get', path: '/embeddings/log', access: 'admin', handle: log },
  { method: 'get', path: '/embeddings/stats', access: 'admin', handle: stats },
];

function log({ tenant, request, response }: TenantCall): void {
  const { state, l, u } = parse(providerCallsSchema, request.query);
  const { items, total } = tenant.listProviderCalls({ state }, { limit: l, offset: u });
  sendJson(response, 200, { items: items.map(providerCallItem), total });
}

function stats({ api, tenant, request, response }: TenantCall): void {
  const { days } = parse(providerUsageSchema, request.query);
  const usage = tenant.listProviderUsage(api.engine.clock.now() - (days - 1) * DAY_MS);
  sendJson(response, 200, { items: usage.map(providerUsageItem), totals: totalsOf(usage) });
}

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

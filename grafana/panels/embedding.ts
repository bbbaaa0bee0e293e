import type { Dashboard } from '../dashboard.ts';
import { mean, perMinute, perSecond, quantile, quantiles } from '../promql.ts';

export const embedding: Dashboard = {
  uid: 'cairn-embedding',
  title: 'Cairn: embedding and cost',
  description:
    'Calls of providers: how many, how long, what held them back and what they cost. Empty with an offline embedder.',
  rows: [
    {
      title: 'Cost',
      panels: [
        {
          kind: 'stat',
          width: 8,
          title: 'Last day',
          description: 'By the price table (OM_PRICES); a model without a price costs nothing.',
          unit: 'currencyUSD',
          queries: [{ expr: 'cairn:provider_cost_usd:increase1d', legend: 'cost' }],
        },
        {
          kind: 'stat',
          width: 8,
          title: 'Thirty days at this rate',
          description: 'What the last hour would cost if it went on.',
          unit: 'currencyUSD',
          queries: [{ expr: '30 * 24 * sum(increase(cairn_provider_cost_usd_total[1h]))', legend: 'cost' }],
        },
        {
          kind: 'stat',
          width: 8,
          title: 'Saved by the cache',
          description:
            'Tokens of the last day, by estimate, that did not go to the provider because the vector was known.',
          unit: 'short',
          queries: [{ expr: 'sum(increase(cairn_embedding_cache_saved_tokens_total[1d]))', legend: 'tokens' }],
        },
        {
          kind: 'lines',
          title: 'Cost an hour',
          description: 'By what the calls were for.',
          unit: 'currencyUSD',
          width: 12,
          isStacked: true,
          queries: [{ expr: `3600 * ${perSecond('cairn_provider_cost_usd_total', 'purpose')}`, legend: '{{purpose}}' }],
        },
        {
          kind: 'lines',
          title: 'Tokens',
          description: 'A minute, read and written; as billed where the reply says, else estimated.',
          unit: 'cpm',
          width: 12,
          isStacked: true,
          queries: [{ expr: perMinute('cairn_provider_tokens_total', 'purpose'), legend: '{{purpose}}' }],
        },
      ],
    },
    {
      title: 'Embedding',
      panels: [
        {
          kind: 'lines',
          title: 'Calls',
          description:
            'By purpose and outcome. rate_limited is a 429 in spite of the limits: OM_EMBED_RPM and OM_EMBED_TPM ' +
            'are too high.',
          unit: 'reqps',
          queries: [
            { expr: perSecond('cairn_embedding_calls_total', 'purpose, outcome'), legend: '{{purpose}} {{outcome}}' },
          ],
        },
        {
          kind: 'lines',
          title: 'Time of a call',
          description: 'Whatever its outcome, by purpose.',
          unit: 's',
          queries: [
            { expr: quantile(0.5, 'cairn_embedding_call_duration_seconds', 'purpose'), legend: '{{purpose}} p50' },
            { expr: quantile(0.95, 'cairn_embedding_call_duration_seconds', 'purpose'), legend: '{{purpose}} p95' },
          ],
        },
        {
          kind: 'lines',
          title: '429s',
          description: 'Share of calls that the provider refused because of its limits, over ten minutes.',
          unit: 'percentunit',
          thresholds: { warning: 0.05 },
          queries: [{ expr: 'cairn:embedding_calls_rate_limited:ratio_rate10m', legend: 'rate limited' }],
        },
        {
          kind: 'lines',
          title: 'Texts',
          description: 'Texts that got a vector, by where it came from.',
          unit: 'ops',
          isStacked: true,
          queries: [{ expr: perSecond('cairn_embedded_texts_total', 'source'), legend: '{{source}}' }],
        },
        {
          kind: 'lines',
          title: 'Cache hits',
          description: 'Share of texts whose vector was known, by cache.',
          unit: 'percentunit',
          queries: [
            {
              expr:
                `${perSecond('cairn_embedding_cache_lookups_total', 'cache', 'outcome="hit"')} / ` +
                `(${perSecond('cairn_embedding_cache_lookups_total', 'cache')} > 0)`,
              legend: '{{cache}}',
            },
          ],
        },
        {
          kind: 'lines',
          title: 'How full batches are',
          description: 'Mean share of what a call may hold. Low while a backlog waits: raise OM_EMBED_LINGER_MS.',
          unit: 'percentunit',
          queries: [{ expr: mean('cairn_embedding_batch_fill_ratio'), legend: 'mean' }],
        },
      ],
    },
    {
      title: 'Limits',
      panels: [
        {
          kind: 'lines',
          title: 'Calls held back',
          description:
            'A minute. budget: the limits of the settings at work. told: what replies say is left. pause: Retry-After.',
          unit: 'cpm',
          queries: [
            {
              expr: perMinute('cairn_provider_calls_held_back_total', 'service, reason'),
              legend: '{{service}} {{reason}}',
            },
          ],
        },
        {
          kind: 'lines',
          title: 'Time waited',
          description: 'Seconds of waiting a second, over all calls; over 1 more than one call waits at any time.',
          unit: 'short',
          queries: [
            {
              expr: perSecond('cairn_provider_wait_seconds_total', 'service, reason'),
              legend: '{{service}} {{reason}}',
            },
          ],
        },
        {
          kind: 'lines',
          title: 'Breaker',
          description: '1 while the provider is left alone or only probed: it is down, or a key is wrong.',
          unit: 'short',
          thresholds: { critical: 1 },
          queries: [{ expr: 'max by (service) (cairn_provider_breaker_open)', legend: '{{service}}' }],
        },
      ],
    },
    {
      title: 'Language model',
      panels: [
        {
          kind: 'lines',
          title: 'Calls of the language model',
          description: 'By outcome.',
          unit: 'reqps',
          queries: [{ expr: perSecond('cairn_language_model_calls_total', 'outcome'), legend: '{{outcome}}' }],
        },
        {
          kind: 'lines',
          title: 'Time of a call',
          description: 'Whatever its outcome. Reranking gives up after OM_LLM_RERANK_TIMEOUT_MS.',
          unit: 's',
          queries: quantiles('cairn_language_model_call_duration_seconds'),
        },
        {
          kind: 'lines',
          title: 'Tokens of the language model',
          description: 'A minute, by direction.',
          unit: 'cpm',
          queries: [{ expr: perMinute('cairn_language_model_tokens_total', 'direction'), legend: '{{direction}}' }],
        },
      ],
    },
  ],
};

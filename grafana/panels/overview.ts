import type { Dashboard } from '../dashboard.ts';
import { of, perSecond, quantile } from '../promql.ts';

export const overview: Dashboard = {
  uid: 'cairn-overview',
  title: 'Cairn: overview',
  description:
    'Whether it is healthy, how fast it is, what it waits for and what it costs. Numbers turn red where an alert ' +
    'would fire.',
  rows: [
    {
      title: 'Is it healthy?',
      panels: [
        {
          kind: 'stat',
          title: 'Processes down',
          description:
            'APIs and workers that Prometheus cannot scrape, or that say that a thread of theirs does not answer.',
          unit: 'short',
          thresholds: { critical: 1 },
          more: 'cairn-storage',
          queries: [{ expr: 'count(up{job=~"cairn-.+"} == 0) or vector(0)', legend: 'down' }],
        },
        {
          kind: 'stat',
          title: 'Alerts firing',
          description: 'What each means and what to do: docs/operations/alerts.md.',
          unit: 'short',
          thresholds: { warning: 1 },
          queries: [{ expr: 'count(ALERTS{alertname=~"Cairn.+",alertstate="firing"}) or vector(0)', legend: 'firing' }],
        },
        {
          kind: 'stat',
          title: 'Failed requests',
          description: 'Share of requests answered with a status from 500 on, over five minutes.',
          unit: 'percentunit',
          thresholds: { warning: 0.005, critical: 0.02 },
          queries: [{ expr: 'cairn:http_requests_failed:ratio_rate5m', legend: 'failed' }],
        },
        {
          kind: 'stat',
          title: 'Query p95',
          description: 'Inside the engine, the embedding of the query included, over five minutes.',
          unit: 's',
          thresholds: { warning: 0.25, critical: 0.5 },
          more: 'cairn-retrieval',
          queries: [{ expr: 'cairn:query_duration_seconds:p95_rate5m', legend: 'p95' }],
        },
        {
          kind: 'stat',
          title: 'Oldest job',
          description:
            'Age of the oldest unfinished job. A backlog that is worked off keeps it low, whatever its size.',
          unit: 's',
          thresholds: { warning: 300, critical: 900 },
          more: 'cairn-pipeline',
          queries: [{ expr: 'cairn:jobs_oldest_age_seconds:max', legend: 'age' }],
        },
        {
          kind: 'stat',
          title: 'Dead letters',
          description:
            'Jobs that gave up and wait for somebody: cairn jobs lists them with their reasons and retries them.',
          unit: 'short',
          thresholds: { warning: 1 },
          more: 'cairn-pipeline',
          queries: [{ expr: 'sum(cairn_jobs{state="dead"})', legend: 'dead' }],
        },
        {
          kind: 'stat',
          title: 'Memories',
          description: 'Of all tenants.',
          unit: 'short',
          more: 'cairn-storage',
          queries: [{ expr: 'sum(cairn_memories)', legend: 'memories' }],
        },
        {
          kind: 'stat',
          title: 'Ready after (p95)',
          description:
            'From the answer to an add until the memory is found by its vectors; single adds, over 15 minutes.',
          unit: 's',
          thresholds: { warning: 60 },
          more: 'cairn-pipeline',
          queries: [{ expr: 'cairn:memory_ready_seconds:p95_rate15m', legend: 'p95' }],
        },
        {
          kind: 'stat',
          title: 'Cost, last day',
          description: 'What calls of providers cost by the price table (OM_PRICES).',
          unit: 'currencyUSD',
          more: 'cairn-embedding',
          queries: [{ expr: 'cairn:provider_cost_usd:increase1d', legend: 'cost' }],
        },
        {
          kind: 'stat',
          title: 'Breakers open',
          description:
            'Providers that failed so often in a row that they are left alone: jobs wait, queries answer from words.',
          unit: 'short',
          thresholds: { critical: 1 },
          more: 'cairn-embedding',
          queries: [{ expr: 'sum(max by (service) (cairn_provider_breaker_open))', legend: 'open' }],
        },
        {
          kind: 'stat',
          title: 'Queues',
          description:
            'Whether all processes reach the Redis or PostgreSQL of the queues: 1 or 0. While it is down jobs wait.',
          unit: 'short',
          thresholds: { critical: 1, isFloor: true },
          more: 'cairn-pipeline',
          queries: [{ expr: 'min(cairn_redis_up) or min(cairn_queues_up)', legend: 'up' }],
        },
        {
          kind: 'stat',
          title: 'Disk free',
          description: 'Share of the disk that holds the data.',
          unit: 'percentunit',
          thresholds: { warning: 0.2, critical: 0.1, isFloor: true },
          more: 'cairn-storage',
          queries: [{ expr: 'cairn:disk_free:ratio', legend: 'free' }],
        },
      ],
    },
    {
      title: 'What is asked of it',
      panels: [
        {
          kind: 'lines',
          title: 'Requests by status',
          description:
            '503: a backlog is full, a file is locked, or a stop is under way. 507: the disk is full. 429: a key or ' +
            'its provider has had enough.',
          unit: 'reqps',
          isStacked: true,
          queries: [{ expr: perSecond('cairn_http_responses_total', 'status'), legend: '{{status}}' }],
        },
        {
          kind: 'lines',
          title: 'Refused by a limit',
          description: 'A key over one of its rates, or a tenant over its share of event streams (cairn limits show).',
          unit: 'reqps',
          isStacked: true,
          mayBeEmpty: 'no limit has been reached',
          queries: [{ expr: perSecond('cairn_limited_requests_total', 'limit'), legend: '{{limit}}' }],
        },
        {
          kind: 'lines',
          title: 'Time of requests (p95)',
          description: 'From the first byte to the end of the reply, so the network of slow clients is in it.',
          unit: 's',
          queries: [{ expr: quantile(0.95, 'cairn_http_request_duration_seconds', 'kind'), legend: '{{kind}}' }],
        },
        {
          kind: 'lines',
          title: 'Busiest routes',
          description: 'The ten that are asked most.',
          unit: 'reqps',
          queries: [
            {
              expr: `topk(10, ${perSecond('cairn_http_requests_total', 'route')})`,
              legend: '{{route}}',
            },
          ],
        },
        {
          kind: 'lines',
          title: 'Queries',
          description: 'Queries answered, by profile.',
          unit: 'reqps',
          isStacked: true,
          more: 'cairn-retrieval',
          queries: [{ expr: perSecond('cairn_queries_total', 'profile'), legend: '{{profile}}' }],
        },
        {
          kind: 'lines',
          title: 'Adds',
          description: 'Memories offered, by what became of them. A duplicate writes nothing twice.',
          unit: 'ops',
          isStacked: true,
          more: 'cairn-pipeline',
          queries: [{ expr: perSecond('cairn_adds_total', 'outcome'), legend: '{{outcome}}' }],
        },
        {
          kind: 'lines',
          title: 'Refused keys',
          description: 'Requests with a wrong key, and those that were not looked at after too many wrong ones.',
          unit: 'reqps',
          mayBeEmpty: 'nobody has come with a wrong key',
          queries: [{ expr: perSecond('cairn_refused_keys_total', 'reason'), legend: '{{reason}}' }],
        },
        {
          kind: 'lines',
          title: 'Requests in flight',
          description:
            'Those that wait for the end of their answer, open streams included. Only rising: they wait for the ' +
            'disk or the event loop.',
          unit: 'short',
          queries: [{ expr: of('cairn_http_requests_in_flight'), legend: '{{instance}}' }],
        },
      ],
    },
  ],
};

import type { Dashboard } from '../dashboard.ts';
import { mean, of, perMinute, perSecond, quantile, quantiles } from '../promql.ts';

const shareOfQueries = (counter: string) =>
  `${perSecond(counter)} / (${perSecond('cairn_query_duration_seconds_count')} > 0)`;

export const retrieval: Dashboard = {
  uid: 'cairn-retrieval',
  title: 'Cairn: retrieval',
  description: 'How fast queries are, where their time goes, and what they find.',
  rows: [
    {
      title: 'How fast',
      panels: [
        {
          kind: 'lines',
          title: 'Time of a query',
          description: 'Inside the engine, its embedding included.',
          unit: 's',
          width: 12,
          thresholds: { critical: 0.5 },
          queries: quantiles('cairn_query_duration_seconds'),
        },
        {
          kind: 'lines',
          title: 'Where the time goes',
          description: 'Mean of each part of a query. embed and model wait for a provider, everything else computes.',
          unit: 's',
          width: 12,
          isStacked: true,
          queries: [
            {
              expr:
                `${perSecond('cairn_query_stage_duration_seconds_sum', 'stage')} / on () group_left () ` +
                perSecond('cairn_query_duration_seconds_count'),
              legend: '{{stage}}',
            },
          ],
        },
        {
          kind: 'lines',
          title: 'Parts of a query',
          description: 'Mean of each part over the queries that it ran in: few have a model rerank their hits.',
          unit: 's',
          queries: [{ expr: mean('cairn_query_stage_duration_seconds', 'stage'), legend: '{{stage}}' }],
        },
        {
          kind: 'lines',
          title: 'As clients see it',
          description:
            'From the first byte of a request to the end of its reply. Far over the time inside: large answers, ' +
            'slow clients, a busy event loop.',
          unit: 's',
          queries: quantiles('cairn_http_request_duration_seconds', 'kind="query"'),
        },
        {
          kind: 'lines',
          title: 'Queries',
          description: 'Answered, by profile.',
          unit: 'reqps',
          isStacked: true,
          queries: [{ expr: perSecond('cairn_queries_total', 'profile'), legend: '{{profile}}' }],
        },
        {
          kind: 'lines',
          title: 'Queries that wait',
          description:
            'Queries that wait for a thread, and threads that ended a minute. Waiting for long: more threads ' +
            '(OM_QUERY_THREADS) if cores are idle. Threads that end are named in the log.',
          unit: 'short',
          queries: [
            { expr: `sum (${of('cairn_reads_waiting')})`, legend: 'waiting' },
            { expr: perMinute('cairn_reader_thread_ends_total'), legend: 'threads ended' },
            { expr: perMinute('cairn_api_process_ends_total'), legend: 'API processes ended' },
          ],
        },
        {
          kind: 'lines',
          title: 'Work that ended early',
          description:
            'Queries and explanations a minute that looked at less than they should, by reason: their filter ' +
            'reads more than OM_QUERY_WORK_MB, or takes longer than OM_QUERY_DEADLINE_MS.',
          unit: 'cpm',
          mayBeEmpty: 'every question ended within its budget',
          queries: [{ expr: perMinute('cairn_work_ends_total', 'read, reason'), legend: '{{read}}: {{reason}}' }],
        },
        {
          kind: 'lines',
          title: 'Word indexes that SQLite reads',
          description:
            'Files opened a minute whose word index has a format that Cairn does not read itself: queries of them ' +
            'are slow. The log names them.',
          unit: 'cpm',
          queries: [{ expr: perMinute('cairn_word_index_fallbacks_total'), legend: 'files' }],
        },
      ],
    },
    {
      title: 'What they find',
      panels: [
        {
          kind: 'lines',
          title: 'Hits of a query',
          description: 'Mean and upper half. They fall when OM_MIN_SCORE is raised.',
          unit: 'short',
          queries: [
            { expr: mean('cairn_query_hits'), legend: 'mean' },
            { expr: quantile(0.5, 'cairn_query_hits'), legend: 'p50' },
            { expr: quantile(0.95, 'cairn_query_hits'), legend: 'p95' },
          ],
        },
        {
          kind: 'lines',
          title: 'Empty answers',
          description:
            'Share of queries without a hit. Rising after a change of OM_MIN_SCORE or of the model: the floor is ' +
            'too high.',
          unit: 'percentunit',
          queries: [{ expr: shareOfQueries('cairn_queries_empty_total'), legend: 'empty' }],
        },
        {
          kind: 'lines',
          title: 'Degraded answers',
          description:
            'Share of queries answered from words alone although vectors are configured: the provider fails or is ' +
            'held back.',
          unit: 'percentunit',
          thresholds: { critical: 0.05 },
          more: 'cairn-embedding',
          queries: [{ expr: shareOfQueries('cairn_queries_degraded_total'), legend: 'degraded' }],
        },
      ],
    },
    {
      title: 'Standing queries and webhooks',
      panels: [
        {
          kind: 'lines',
          title: 'Answers to standing queries',
          description: 'Memories a second that answered a standing query.',
          unit: 'ops',
          queries: [{ expr: 'sum(rate(cairn_standing_answers_total[$__rate_interval]))', legend: 'answers' }],
        },
        {
          kind: 'lines',
          title: 'Deliveries of webhooks',
          description:
            'Attempts a second by outcome. Failed ones are tried again; dead ones gave up: `cairn webhooks list` ' +
            'names the webhook, `cairn webhooks retry` tries again. Dropped are events that found no room or came ' +
            'of a memory with too many answers.',
          unit: 'ops',
          queries: [
            {
              expr: 'sum by (outcome) (rate(cairn_webhook_deliveries_total[$__rate_interval]))',
              legend: '{{outcome}}',
            },
            { expr: 'sum(rate(cairn_webhook_dropped_total[$__rate_interval]))', legend: 'dropped' },
          ],
        },
      ],
    },
    {
      title: 'Federated questions',
      panels: [
        {
          kind: 'lines',
          title: 'Members of federated questions',
          description:
            'Tenants and other servers that were asked, a second, by outcome. Without an answer of one the others ' +
            'answer alone; `cairn query --servers` says which one failed and why.',
          unit: 'ops',
          queries: [
            {
              expr: 'sum by (member, outcome) (rate(cairn_federation_members_total[$__rate_interval]))',
              legend: '{{member}} {{outcome}}',
            },
          ],
        },
      ],
    },
    {
      title: 'Standby of PostgreSQL',
      panels: [
        {
          kind: 'lines',
          title: 'Standby is read',
          description: 'Least of all processes: 1, or 0 while the primary answers in its place. The log says why.',
          unit: 'short',
          mayBeEmpty: 'OM_DATABASE_READ_URL is not set',
          queries: [{ expr: 'min(cairn_standby_up)', legend: 'read' }],
        },
        {
          kind: 'lines',
          title: 'Reads that it might answer',
          description: 'Reads a second by outcome: answered by it, or by the primary, and why.',
          unit: 'ops',
          mayBeEmpty: 'OM_DATABASE_READ_URL is not set',
          queries: [{ expr: perSecond('cairn_standby_reads_total', 'outcome'), legend: '{{outcome}}' }],
        },
      ],
    },
    {
      title: 'Evaluation sets',
      panels: [
        {
          kind: 'lines',
          title: 'Lowest score of the last runs',
          description: 'Over all evaluation sets, by measure. A fall after a change: `cairn eval` names the set.',
          unit: 'percentunit',
          mayBeEmpty: 'no evaluation set was run',
          queries: [{ expr: 'min by (measure) (cairn_eval_score)', legend: '{{measure}}' }],
        },
        {
          kind: 'lines',
          title: 'Time of their queries, p95',
          description: 'Longest 95th percentile in the last runs of all evaluation sets.',
          unit: 's',
          mayBeEmpty: 'no evaluation set was run',
          queries: [{ expr: 'max(cairn_eval_p95_seconds)', legend: 'p95' }],
        },
      ],
    },
  ],
};

import type { Dashboard } from '../dashboard.ts';
import { of, perMinute, perSecond, quantile, quantiles } from '../promql.ts';

export const pipeline: Dashboard = {
  uid: 'cairn-pipeline',
  title: 'Cairn: pipeline and queues',
  description:
    'From an accepted memory or document to one that is found by all it is: commits, jobs, queues, documents.',
  rows: [
    {
      title: 'Backlog',
      panels: [
        {
          kind: 'lines',
          title: 'Oldest job',
          description:
            'The one number to watch: where it grows, work waits for a provider or the disk (see pauses), or ' +
            'workers are missing.',
          unit: 's',
          thresholds: { critical: 900 },
          queries: [{ expr: 'max by (step) (cairn_jobs_oldest_age_seconds)', legend: '{{step}}' }],
        },
        {
          kind: 'lines',
          title: 'Jobs by state',
          description: 'In the ledgers of all tenants. failed waits for its next attempt, dead for somebody.',
          unit: 'short',
          isStacked: true,
          queries: [{ expr: 'sum by (state) (cairn_jobs)', legend: '{{state}}' }],
        },
        {
          kind: 'lines',
          title: 'Jobs by step',
          description: 'The same by the step that is owed next; settle are documents that wait for their chunks.',
          unit: 'short',
          isStacked: true,
          queries: [{ expr: 'sum by (step) (cairn_jobs{state!="dead"})', legend: '{{step}}' }],
        },
        {
          kind: 'lines',
          title: 'Sensitive values',
          description: 'Secrets and personal data found before storing, by group and by what became of them.',
          unit: 'ops',
          queries: [{ expr: perSecond('cairn_sensitive_total', 'group, mode'), legend: '{{group}} {{mode}}' }],
        },
        {
          kind: 'lines',
          title: 'Jobs finished',
          description: 'By how they ended.',
          unit: 'ops',
          queries: [{ expr: perSecond('cairn_jobs_finished_total', 'state'), legend: '{{state}}' }],
        },
        {
          kind: 'lines',
          title: 'Failed attempts',
          description: 'A minute, by step and error code. What waits for a provider or for disk is not counted.',
          unit: 'cpm',
          queries: [{ expr: perMinute('cairn_job_failures_total', 'step, code'), legend: '{{step}} {{code}}' }],
        },
        {
          kind: 'lines',
          title: 'Work put off',
          description:
            'How often a minute a worker waited for the provider (unavailable, rate_limited) or for disk ' +
            '(storage_full).',
          unit: 'cpm',
          queries: [{ expr: perMinute('cairn_work_pauses_total', 'code'), legend: '{{code}}' }],
        },
      ],
    },
    {
      title: 'From accept to ready',
      panels: [
        {
          kind: 'lines',
          title: 'Found by its vectors after',
          description: 'From the answer to a single add; what users feel. By its words a memory is found at once.',
          unit: 's',
          thresholds: { warning: 60 },
          queries: quantiles('cairn_memory_ready_seconds', 'stage="encoded",priority="interactive"'),
        },
        {
          kind: 'lines',
          title: 'Ready after (p95)',
          description: 'By stage and priority. For bulk adds it grows with the length of the import and says nothing.',
          unit: 's',
          queries: [
            { expr: quantile(0.95, 'cairn_memory_ready_seconds', 'stage, priority'), legend: '{{stage}} {{priority}}' },
          ],
        },
        {
          kind: 'lines',
          title: 'Time of a batch (p95)',
          description: 'Of one step in a worker, whatever its outcome.',
          unit: 's',
          queries: [{ expr: quantile(0.95, 'cairn_step_duration_seconds', 'step'), legend: '{{step}}' }],
        },
        {
          kind: 'lines',
          title: 'Group commit',
          description: 'An fsync and little more: a p95 that rises is a disk that is slow or busy.',
          unit: 's',
          queries: quantiles('cairn_commit_duration_seconds'),
        },
        {
          kind: 'lines',
          title: 'Commits and requests',
          description: 'Requests a commit rise with load, which keeps the number of fsyncs down.',
          unit: 'ops',
          queries: [
            { expr: perSecond('cairn_commit_requests_sum'), legend: 'requests' },
            { expr: perSecond('cairn_commit_requests_count'), legend: 'commits' },
          ],
        },
        {
          kind: 'lines',
          title: 'Crashes and hangs',
          description:
            'A minute. Jobs taken back after a restart are usual; a steady trickle is a worker that crashes.',
          unit: 'cpm',
          queries: [
            { expr: perMinute('cairn_jobs_recovered_total', 'outcome'), legend: 'taken back: {{outcome}}' },
            { expr: perMinute('cairn_worker_hangs_total'), legend: 'threads that hung' },
          ],
        },
      ],
    },
    {
      title: 'Queues',
      panels: [
        {
          kind: 'lines',
          title: 'Jobs in queues',
          description:
            'As BullMQ counts them, each of up to 64 rows; short on purpose. Waiting and none active: nobody takes ' +
            'that queue.',
          unit: 'short',
          queries: [{ expr: 'sum by (queue, state) (cairn_queue_jobs) > 0', legend: '{{queue}} {{state}}' }],
        },
        {
          kind: 'lines',
          title: 'Rows handed out',
          description: 'Rows of the ledgers that jobs of the queues carried.',
          unit: 'ops',
          queries: [{ expr: perSecond('cairn_dispatched_rows_total', 'step'), legend: '{{step}}' }],
        },
        {
          kind: 'lines',
          title: 'Rows a job',
          description: 'Near 64 there is more work than workers.',
          unit: 'short',
          queries: [
            {
              expr:
                `${perSecond('cairn_dispatched_rows_total', 'step')} / ` +
                perSecond('cairn_dispatched_jobs_total', 'step'),
              legend: '{{step}}',
            },
          ],
        },
        {
          kind: 'lines',
          title: 'Trouble with queues',
          description: 'A minute. A refill at the first start is usual; another says that the queues lost their data.',
          unit: 'cpm',
          queries: [
            { expr: perMinute('cairn_dispatch_failures_total'), legend: 'failed rounds' },
            { expr: perMinute('cairn_queue_refills_total'), legend: 'refills' },
            { expr: perMinute('cairn_queue_refilled_rows_total'), legend: 'rows handed out again' },
          ],
        },
        {
          kind: 'lines',
          title: 'Stalled in queues',
          description:
            'A minute: jobs of BullMQ whose worker let go of their lock. The ledger hands their rows out again.',
          unit: 'cpm',
          mayBeEmpty: 'nothing has stalled',
          queries: [{ expr: perMinute('cairn_queue_stalled_jobs_total', 'queue'), legend: '{{queue}}' }],
        },
      ],
    },
    {
      title: 'Documents',
      panels: [
        {
          kind: 'lines',
          title: 'Documents read',
          description: 'A minute, by format and outcome; what was not read to its end has format none.',
          unit: 'cpm',
          queries: [{ expr: perMinute('cairn_documents_total', 'format, outcome'), legend: '{{format}} {{outcome}}' }],
        },
        {
          kind: 'lines',
          title: 'Readings that failed',
          description: 'A minute, by the code of the reason; those that are tried again count each time.',
          unit: 'cpm',
          queries: [{ expr: perMinute('cairn_document_failures_total', 'code'), legend: '{{code}}' }],
        },
        {
          kind: 'lines',
          title: "Waiting for their tenant's share",
          description:
            'Documents postponed a minute, by the limit of parsers or fetches that their tenant has reached (cairn ' +
            'limits show). A document counts each time.',
          unit: 'cpm',
          mayBeEmpty: 'no tenant has reached such a limit',
          queries: [{ expr: perMinute('cairn_postponed_documents_total', 'limit'), legend: '{{limit}}' }],
        },
        {
          kind: 'lines',
          title: 'Parsers that ended',
          description:
            'A minute. stopped is the usual end; time and memory met a file that is too much for them; crashed is ' +
            'worth a report.',
          unit: 'cpm',
          mayBeEmpty: 'parsers that do their work stay for the next document',
          queries: [{ expr: perMinute('cairn_parser_exits_total', 'reason'), legend: '{{reason}}' }],
        },
        {
          kind: 'lines',
          title: 'Pages',
          description: 'A minute; a document without pages counts as one.',
          unit: 'cpm',
          queries: [{ expr: perMinute('cairn_document_pages_total'), legend: 'pages' }],
        },
        {
          kind: 'lines',
          title: 'Bytes read',
          description: 'Of the files that were handed to a parser.',
          unit: 'Bps',
          queries: [{ expr: perSecond('cairn_document_bytes_total'), legend: 'bytes' }],
        },
        {
          kind: 'lines',
          title: 'Parsers',
          description: 'Child processes that read documents or wait for one.',
          unit: 'short',
          queries: [{ expr: of('cairn_parsers'), legend: '{{instance}}' }],
        },
      ],
    },
  ],
};

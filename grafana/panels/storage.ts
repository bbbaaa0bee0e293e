import type { Dashboard } from '../dashboard.ts';
import { mean, of, perMinute, perSecond, quantiles } from '../promql.ts';

export const storage: Dashboard = {
  uid: 'cairn-storage',
  title: 'Cairn: storage and process',
  description: 'What is stored and how it changes, files and their locks, and the processes themselves.',
  rows: [
    {
      title: 'Memories',
      panels: [
        {
          kind: 'lines',
          title: 'Memories by sector',
          description: 'Of all tenants.',
          unit: 'short',
          isStacked: true,
          queries: [{ expr: 'sum by (sector) (cairn_memories)', legend: '{{sector}}' }],
        },
        {
          kind: 'lines',
          title: 'Memories by state',
          description: 'failed ones have no vector, since their job gave up.',
          unit: 'short',
          isStacked: true,
          queries: [{ expr: 'sum by (state) (cairn_memories)', legend: '{{state}}' }],
        },
        {
          kind: 'lines',
          title: 'Waypoints and tenants',
          description: 'A tenant that cannot be read has a damaged or a newer file, which the log names.',
          unit: 'short',
          queries: [
            { expr: 'max(cairn_waypoints)', legend: 'waypoints' },
            { expr: 'max(cairn_tenants)', legend: 'tenants' },
            { expr: 'max(cairn_tenants_unreadable)', legend: 'unreadable tenants' },
          ],
        },
        {
          kind: 'lines',
          title: 'Since the last run of a schedule',
          description:
            'In the file where it is longest ago. decay over two periods (OM_DECAY_INTERVAL_MINUTES): no worker ' +
            'keeps the schedules; backup over two periods (OM_BACKUP_EVERY): see the log.',
          unit: 's',
          queries: [
            { expr: 'time() - min by (schedule) (cairn_schedule_last_run_timestamp_seconds)', legend: '{{schedule}}' },
          ],
        },
        {
          kind: 'lines',
          title: 'Runs of schedules',
          description: 'A minute, over all tenants.',
          unit: 'cpm',
          queries: [
            { expr: perMinute('cairn_schedule_runs_total', 'schedule, outcome'), legend: '{{schedule}} {{outcome}}' },
          ],
        },
        {
          kind: 'lines',
          title: 'What time changed',
          description:
            'A minute: what decay refreshed and archived, what expired, waypoints that became too weak, memories ' +
            'that consolidation made.',
          unit: 'cpm',
          queries: [
            { expr: perMinute('cairn_decayed_memories_total'), legend: 'refreshed' },
            { expr: perMinute('cairn_archived_memories_total'), legend: 'archived' },
            { expr: perMinute('cairn_expired_memories_total'), legend: 'expired' },
            { expr: perMinute('cairn_pruned_waypoints_total'), legend: 'waypoints pruned' },
            { expr: perMinute('cairn_gathered_memories_total', 'method'), legend: 'gathered, {{method}}' },
          ],
        },
      ],
    },
    {
      title: 'Files',
      panels: [
        {
          kind: 'lines',
          title: 'Size of the files',
          description: 'Of all tenants, with their write-ahead logs upon them.',
          unit: 'bytes',
          isStacked: true,
          queries: [
            { expr: 'max(cairn_database_bytes)', legend: 'databases' },
            { expr: 'max(cairn_wal_bytes)', legend: 'write-ahead logs' },
          ],
        },
        {
          kind: 'lines',
          title: 'Largest write-ahead log',
          description: 'Usually some 4 MB, emptied beyond 32 MB. One that grows on has a reader that does not let go.',
          unit: 'bytes',
          thresholds: { critical: 268_435_456 },
          queries: [{ expr: 'max(cairn_wal_largest_bytes)', legend: 'largest' }],
        },
        {
          kind: 'lines',
          title: 'Disk',
          description: 'The disk that holds the data.',
          unit: 'bytes',
          queries: [
            { expr: 'min(cairn_disk_free_bytes)', legend: 'free' },
            { expr: 'min(cairn_disk_size_bytes)', legend: 'size' },
          ],
        },
        {
          kind: 'lines',
          title: 'Waits for a file',
          description: 'Seconds of waiting a second for what another connection held; usual while workers write.',
          unit: 'short',
          queries: [
            {
              expr: perSecond('cairn_sqlite_busy_wait_seconds_total', 'job, instance'),
              legend: '{{job}} {{instance}}',
            },
          ],
        },
        {
          kind: 'lines',
          title: 'Attempts at a file that was held',
          description: 'A minute. Timeouts (5 s) end in a 503.',
          unit: 'cpm',
          queries: [
            { expr: perMinute('cairn_sqlite_busy_retries_total'), legend: 'retries' },
            { expr: perMinute('cairn_sqlite_busy_timeouts_total'), legend: 'timeouts' },
          ],
        },
        {
          kind: 'lines',
          title: 'Checkpoints',
          description: 'A minute. partial: a reader still needs some of the log.',
          unit: 'cpm',
          queries: [{ expr: perMinute('cairn_checkpoints_total', 'outcome'), legend: '{{outcome}}' }],
        },
        {
          kind: 'lines',
          title: 'Time of a checkpoint',
          description: 'Moving a log into its database.',
          unit: 's',
          queries: quantiles('cairn_checkpoint_duration_seconds'),
        },
        {
          kind: 'lines',
          title: 'Counting the files',
          description: 'Mean time that the gauges of this page take of the API, for each count.',
          unit: 's',
          queries: [{ expr: mean('cairn_census_duration_seconds'), legend: 'mean' }],
        },
      ],
    },
    {
      title: 'Processes',
      panels: [
        {
          kind: 'lines',
          title: 'Event loop (p99)',
          description: 'Of the main thread, which serves requests; some 10 ms of it is how it is measured.',
          unit: 's',
          thresholds: { critical: 0.2 },
          queries: [{ expr: of('nodejs_eventloop_lag_p99_seconds', 'job=~"cairn-.+"'), legend: '{{instance}}' }],
        },
        {
          kind: 'lines',
          title: 'CPU',
          description: 'Cores in use, all threads of the process; children that read documents are not in it.',
          unit: 'short',
          queries: [
            {
              expr: perSecond('process_cpu_seconds_total', 'job, instance', 'job=~"cairn-.+"'),
              legend: '{{job}} {{instance}}',
            },
          ],
        },
        {
          kind: 'lines',
          title: 'Memory',
          description: 'Resident, all threads of the process.',
          unit: 'bytes',
          queries: [{ expr: of('process_resident_memory_bytes', 'job=~"cairn-.+"'), legend: '{{job}} {{instance}}' }],
        },
        {
          kind: 'lines',
          title: 'Heap in use',
          description: 'Of JavaScript. A saw is usual, a staircase is a leak.',
          unit: 'bytes',
          queries: [{ expr: of('nodejs_heap_size_used_bytes'), legend: '{{job}} {{instance}}' }],
        },
        {
          kind: 'lines',
          title: 'Garbage collection',
          description: 'Share of the time, by kind.',
          unit: 'percentunit',
          queries: [{ expr: perSecond('nodejs_gc_duration_seconds_sum', 'kind'), legend: '{{kind}}' }],
        },
        {
          kind: 'lines',
          title: 'A collection (mean)',
          description: 'How long one stops its thread.',
          unit: 's',
          queries: [{ expr: mean('nodejs_gc_duration_seconds', 'kind'), legend: '{{kind}}' }],
        },
        {
          kind: 'lines',
          title: 'Open files',
          description: 'Descriptors, as a share of what the process may open.',
          unit: 'percentunit',
          queries: [
            {
              expr: `${of('process_open_fds', 'job=~"cairn-.+"')} / ${of('process_max_fds', 'job=~"cairn-.+"')}`,
              legend: '{{job}} {{instance}}',
            },
          ],
        },
        {
          kind: 'lines',
          title: 'Running for',
          description: 'Time since the start of each process.',
          unit: 's',
          queries: [
            { expr: `time() - ${of('process_start_time_seconds', 'job=~"cairn-.+"')}`, legend: '{{job}} {{instance}}' },
          ],
        },
        {
          kind: 'lines',
          title: 'Version',
          description: 'Processes by the version they run: one line, but for an upgrade.',
          unit: 'short',
          queries: [{ expr: `count by (version) (${of('cairn_build_info')})`, legend: '{{version}}' }],
        },
      ],
    },
  ],
};

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { toGrafana } from '../../grafana/dashboard.ts';
import { DASHBOARDS } from '../../grafana/dashboards.ts';
import { findTool, PROMETHEUS_FOLDER, type Series } from '../support/prometheus.ts';
import { canStartRedis } from '../support/redis.ts';
import { startWatchedFleet, type WatchedFleet } from '../support/watched-fleet.ts';

const promtool = findTool('promtool');
const canWatch = findTool('prometheus') !== undefined && canStartRedis();
const EVERY_SECONDS = 1;
/** Most that the fleet works until all has been seen. */
const WORK_SECONDS = 300;
/** As Grafana fills it in, four scrapes long. */
const RATE_INTERVAL = `${4 * EVERY_SECONDS}s`;

/**
 * What rules look at and is not there as long as nothing of the kind has happened, or, as queues in PostgreSQL, is not
 * used by the processes that are watched.
 */
const NOT_THERE = [
  'cairn_queue_stalled_jobs_total',
  'cairn_http_responses_total{status=',
  'cairn_refused_keys_total',
  'cairn_queues_up',
];

if (promtool === undefined) console.log('skipped: no promtool in PROMETHEUS_BIN or on the PATH');
if (!canWatch) console.log('skipped: a test with a real Prometheus needs prometheus and redis-server');

describe.skipIf(promtool === undefined)('promtool', () => {
  test.each([
    ['check', 'config', 'prometheus.yml'],
    ['check', 'rules', 'recording-rules.yml', 'alert-rules.yml'],
    ['test', 'rules', 'rules.test.yml'],
  ])('%s %s passes', async (...words) => {
    const { stdout } = await promisify(execFile)(promtool!, words, { cwd: PROMETHEUS_FOLDER });
    expect(stdout).toContain('SUCCESS');
  });
});

describe.skipIf(!canWatch)('a real Prometheus that watches a real API and worker under load', () => {
  let fleet: WatchedFleet;
  const panels = DASHBOARDS.flatMap(({ uid, rows }) =>
    rows.flatMap((row) =>
      row.panels.flatMap((panel) =>
        panel.queries.map(({ expr, legend }) => ({ name: `${uid}: ${panel.title} (${legend})`, panel, expr, legend })),
      ),
    ),
  );
  const mustShow = panels.filter(({ panel }) => panel.mayBeEmpty === undefined);

  beforeAll(async () => {
    fleet = (await startWatchedFleet({ everySeconds: EVERY_SECONDS }))!;
    await fleet.work({ seconds: WORK_SECONDS, until: everythingSeen });
  }, 600_000);

  afterAll(() => fleet.stop());

  /** What a panel shows of all the time that was watched. */
  async function shown(expr: string): Promise<readonly Series[]> {
    const filled = expr.replaceAll('$__rate_interval', RATE_INTERVAL).replaceAll('$instance', '.+');
    const end = Date.now() / 1000;
    const series = await fleet.prometheus.queryRange(filled, { start: fleet.since, end, step: EVERY_SECONDS });
    return series.filter(({ points }) => points.some(([, value]) => Number.isFinite(value)));
  }

  /** What rules look at and what they record. */
  async function readByRules(): Promise<string[]> {
    const rules = await fleet.prometheus.rules();
    const recorded = rules.filter(({ type }) => type === 'recording').map(({ name }) => name);
    const selectors = rules.flatMap(
      ({ query }) =>
        query.match(/\b(?:cairn|nodejs|process|up)[\w:]*\{[^}]*\}|\b(?:cairn|nodejs|process)[_:][\w:]+/g) ?? [],
    );
    return [...new Set([...recorded, ...selectors])].filter((one) => !NOT_THERE.some((name) => one.startsWith(name)));
  }

  async function everythingSeen(): Promise<boolean> {
    for (const expr of [...mustShow.map((query) => query.expr), ...(await readByRules())]) {
      if ((await shown(expr)).length === 0) return false;
    }
    return true;
  }

  test.each(mustShow)('$name has something to show', async ({ expr, legend }) => {
    const series = await shown(expr);
    expect(series).not.toEqual([]);
    const labels = [...legend.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label!);
    for (const { metric } of series) for (const label of labels) expect(metric).toHaveProperty(label);
  });

  test.each(panels.filter(({ panel }) => panel.mayBeEmpty !== undefined))('$name is understood', async ({ expr }) => {
    expect(await shown(expr)).toBeInstanceOf(Array);
  });

  test('annotations are understood, and the start of both processes is one', async () => {
    const { annotations } = toGrafana(DASHBOARDS[0]!) as {
      annotations: { list: readonly { name: string; expr: string }[] };
    };
    const found = await Promise.all(annotations.list.map(async ({ name, expr }) => [name, await shown(expr)] as const));
    const starts = Object.fromEntries(found)['Restarts']!;
    expect(starts.map(({ metric }) => metric['job']).sort()).toEqual(['cairn-api', 'cairn-worker']);
  });

  test('rules are evaluated without an error, and all that they read and record is there', async () => {
    const rules = await fleet.prometheus.rules();
    expect(rules.length).toBeGreaterThan(20);
    expect(rules.map(({ health }) => health)).not.toContain('err');
    const read = await readByRules();
    expect(read.length).toBeGreaterThan(20);
    for (const expr of read) expect(await shown(expr), expr).not.toEqual([]);
  });
});

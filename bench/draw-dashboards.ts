/**
 * Draws the pictures of docs/operations/monitoring.md: `npm run measure -- draw-dashboards [SECONDS]`. They show an
 * API, a worker, a Redis and a provider that fails for a while, under load, as a real Prometheus sees them. Needs
 * `prometheus` (in the folder `PROMETHEUS_BIN` or on the PATH) and `redis-server`.
 */
import fs from 'node:fs';
import path from 'node:path';
import type { Panel } from '../grafana/dashboard.ts';
import { DASHBOARDS } from '../grafana/dashboards.ts';
import { drawDashboard, type Line } from '../grafana/draw.ts';
import type { Series } from '../test/support/prometheus.ts';
import { startWatchedFleet, type WatchedFleet } from '../test/support/watched-fleet.ts';

const SECONDS = Number(process.argv[2] ?? 300);
const EVERY_SECONDS = 2;
const RATE_INTERVAL = `${10 * EVERY_SECONDS}s`;
const POINTS = 75;
const FOLDER = path.join(import.meta.dirname, '../docs/images');

const fleet = await startWatchedFleet({ everySeconds: EVERY_SECONDS });
if (fleet === undefined) throw new Error('there is no redis-server on the PATH');
try {
  await fleet.work({ seconds: SECONDS * 0.4 });
  const recover = fleet.breakProvider();
  await fleet.work({ seconds: SECONDS * 0.15 });
  recover();
  await fleet.work({ seconds: SECONDS * 0.45 });
  await drawAll(fleet);
} finally {
  await fleet.stop();
}

async function drawAll({ prometheus, since }: WatchedFleet): Promise<void> {
  const end = Date.now() / 1000;
  const step = (end - since) / POINTS;
  const read = async (expr: string) =>
    prometheus.queryRange(expr.replaceAll('$__rate_interval', RATE_INTERVAL).replaceAll('$instance', '.+'), {
      start: since,
      end,
      step,
    });
  fs.mkdirSync(FOLDER, { recursive: true });
  for (const dashboard of DASHBOARDS) {
    const lines = new Map<Panel, Line[]>();
    for (const panel of dashboard.rows.flatMap((row) => row.panels)) {
      const answers = await Promise.all(
        panel.queries.map(async ({ expr, legend }) => (await read(expr)).map((series) => toLine(series, legend))),
      );
      const all = answers.flat().filter(({ points }) => points.some(([, value]) => Number.isFinite(value)));
      lines.set(panel, all);
    }
    const svg = drawDashboard(dashboard, { start: since, end, linesOf: (panel) => lines.get(panel) ?? [] });
    fs.writeFileSync(path.join(FOLDER, `${dashboard.uid}.svg`), svg);
  }
}

/** Converts a series to a line. Processes are named by their job, since their ports were chosen at random. */
function toLine({ metric, points }: Series, legend: string): Line {
  const labels: Readonly<Record<string, string>> = { ...metric, instance: (metric['job'] ?? '').replace('cairn-', '') };
  const name = legend.replace('{{job}} {{instance}}', '{{instance}}');
  return { name: name.replaceAll(/\{\{(\w+)\}\}/g, (_, label: string) => labels[label] ?? ''), points };
}

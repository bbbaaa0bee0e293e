import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { DASHBOARDS } from '../../grafana/dashboards.ts';
import { placesOf, toGrafana } from '../../grafana/dashboard.ts';
import { fileOf, render } from '../../grafana/render.ts';
import { createMetrics } from '../../src/engine/metrics.ts';
import { PROMETHEUS_FOLDER } from '../support/prometheus.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const FOLDER = path.join(ROOT, 'grafana/dashboards');
const panels = DASHBOARDS.flatMap(({ uid, rows }) =>
  rows.flatMap((row) => row.panels.map((panel) => ({ name: `${uid}: ${panel.title}`, panel }))),
);
const metrics = createMetrics();
metrics.watchProcess('0.0.0');
const registered = new Map(
  (metrics.registry.getMetricsAsArray() as unknown as readonly RegisteredMetric[]).map((metric) => [
    metric.name,
    metric,
  ]),
);
const rules = ['recording-rules.yml', 'alert-rules.yml'].flatMap((file) => {
  const { groups } = parse(read(PROMETHEUS_FOLDER, file)) as { groups: readonly { rules: readonly Rule[] }[] };
  return groups.flatMap((group) => group.rules);
});
const alerts = rules.filter((rule) => rule.alert !== undefined);
const recorded = new Set(rules.map(({ record }) => record));

interface RegisteredMetric {
  readonly name: string;
  readonly type: string;
  readonly labelNames: readonly string[];
}

interface Rule {
  readonly alert?: string;
  readonly record?: string;
  readonly expr: string;
  readonly labels?: { readonly severity: string };
  readonly annotations?: Readonly<Record<string, string>>;
}

function read(...parts: string[]): string {
  return fs.readFileSync(path.join(...parts), 'utf8');
}

/** What Prometheus adds to a series, what an upper bound of a histogram is called, and what ALERTS has. */
const LABELS_OF_ALL = ['job', 'instance', 'le', 'alertname', 'alertstate'];

/** Metrics in an expression that neither the registry nor the recording rules have. */
function unknownMetrics(expr: string): string[] {
  const names = expr.replaceAll(/\{[^}]*\}/g, '').match(/\b(?:cairn|process|nodejs)[_:][\w:]+/g);
  return [...new Set(names)].filter((name) => !recorded.has(name) && findMetric(name) === undefined);
}

/** A histogram is known by its three series and not by its bare name, a counter or a gauge by its name. */
function findMetric(series: string): RegisteredMetric | undefined {
  const plain = registered.get(series);
  if (plain !== undefined) return plain.type === 'histogram' ? undefined : plain;
  const histogram = registered.get(series.replace(/_(?:bucket|sum|count)$/, ''));
  return histogram?.type === 'histogram' ? histogram : undefined;
}

/** `metric label` for each label that is matched on a metric that does not have it. */
function unknownLabels(expr: string): string[] {
  return [...expr.matchAll(/([a-z][\w:]*)\{([^}]*)\}/g)].flatMap(([, name, matchers]) => {
    const labels = [...matchers!.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)].map(([, label]) => label!);
    const known = [...LABELS_OF_ALL, ...(findMetric(name!)?.labelNames ?? [])];
    return labels.filter((label) => !known.includes(label)).map((label) => `${name} ${label}`);
  });
}

describe('grafana/dashboards', () => {
  test.each(DASHBOARDS)('$uid is as grafana/build.ts writes it', async (dashboard) => {
    expect(read(FOLDER, fileOf(dashboard))).toBe(await render(dashboard));
  });

  test('holds nothing else', () => {
    expect(fs.readdirSync(FOLDER).sort()).toEqual(DASHBOARDS.map(fileOf).sort());
  });

  test.each(panels)('$name asks for metrics and labels that exist', ({ panel }) => {
    const exprs = panel.queries.map(({ expr }) => expr);
    expect(exprs.flatMap(unknownMetrics)).toEqual([]);
    expect(exprs.flatMap(unknownLabels)).toEqual([]);
  });

  test.each(panels)('$name says what it means and leads somewhere', ({ panel }) => {
    expect(panel.description).toMatch(/\.$/);
    if (panel.more !== undefined) expect(DASHBOARDS.map(({ uid }) => uid)).toContain(panel.more);
  });

  test('every metric of Cairn is on a dashboard', () => {
    const shown = panels.flatMap(({ panel }) => panel.queries.map(({ expr }) => expr)).join(' ');
    const behind = rules.filter(({ record }) => record !== undefined && shown.includes(record)).map(({ expr }) => expr);
    const all = `${shown} ${behind.join(' ')}`;
    const missing = [...registered.keys()].filter((name) => name.startsWith('cairn_') && !all.includes(name));
    expect(missing).toEqual([]);
  });

  test.each(DASHBOARDS)('$uid: panels lie side by side', ({ rows }) => {
    for (const row of rows) {
      const { places, height } = placesOf(row);
      const cells = places.flatMap(({ x, y, w, h }) =>
        Array.from({ length: w * h }, (_, cell) => `${x + (cell % w)},${y + Math.floor(cell / w)}`),
      );
      expect(new Set(cells).size).toBe(cells.length);
      expect(Math.max(...places.map(({ x, w }) => x + w))).toBeLessThanOrEqual(24);
      expect(Math.max(...places.map(({ y, h }) => y + h))).toBe(height);
    }
  });

  test('what is bad when low is red below, what is bad when high is red above', () => {
    const stepsOf = (isFloor: boolean) => {
      const panel = { kind: 'stat', title: '', description: '', unit: 's', queries: [] } as const;
      const thresholds = { warning: isFloor ? 2 : 1, critical: isFloor ? 1 : 2, isFloor };
      const dashboard = {
        uid: 'u',
        title: '',
        description: '',
        rows: [{ title: '', panels: [{ ...panel, thresholds }] }],
      };
      const { panels: all } = toGrafana(dashboard) as {
        panels: { fieldConfig?: { defaults: { thresholds: { steps: object[] } } } }[];
      };
      return all.at(-1)?.fieldConfig?.defaults.thresholds.steps;
    };
    expect(stepsOf(false)).toEqual([
      { color: 'green', value: null },
      { color: 'orange', value: 1 },
      { color: 'red', value: 2 },
    ]);
    expect(stepsOf(true)).toEqual([
      { color: 'red', value: null },
      { color: 'orange', value: 1 },
      { color: 'green', value: 2 },
    ]);
  });
});

describe('grafana/prometheus', () => {
  test.each(rules)('$alert$record asks for metrics and labels that exist', ({ expr }) => {
    expect(unknownMetrics(expr)).toEqual([]);
    expect(unknownLabels(expr)).toEqual([]);
  });

  test('every alert has a section in docs/operations/alerts.md, and each of those an alert', () => {
    const explained = [...read(ROOT, 'docs/operations/alerts.md').matchAll(/^## (\w+)$/gm)].map(([, name]) => name);
    expect(explained).toEqual(alerts.map(({ alert }) => alert));
    for (const { alert, annotations, labels } of alerts) {
      expect(annotations?.['runbook_url']).toBe(`docs/operations/alerts.md#${alert!.toLowerCase()}`);
      expect(annotations).toMatchObject({ summary: expect.any(String), description: expect.any(String) });
      expect(['warning', 'critical']).toContain(labels?.severity);
    }
  });

  test('every alert is tested to fire, and to keep quiet', () => {
    const { tests } = parse(read(PROMETHEUS_FOLDER, 'rules.test.yml')) as {
      tests: readonly { alert_rule_test: readonly { alertname: string; exp_alerts: readonly object[] }[] }[];
    };
    const cases = tests.flatMap(({ alert_rule_test }) => alert_rule_test);
    for (const { alert } of alerts) {
      const own = cases.filter(({ alertname }) => alertname === alert);
      expect(
        [own.some((one) => one.exp_alerts.length > 0), own.some((one) => one.exp_alerts.length === 0)],
        alert,
      ).toEqual([true, true]);
    }
  });
});

test('docker-compose.yml gives Prometheus and Grafana what is in grafana/, and only with the profile', () => {
  const { services, volumes } = parse(read(ROOT, 'docker-compose.yml'), { merge: true }) as {
    services: Record<string, { profiles?: string[]; volumes: string[]; healthcheck: object; mem_limit: string }>;
    volumes: object;
  };
  const jobs = parse(read(PROMETHEUS_FOLDER, 'prometheus.yml')) as {
    scrape_configs: readonly { dns_sd_configs?: readonly { names: readonly string[] }[] }[];
  };
  const scraped = jobs.scrape_configs.flatMap(({ dns_sd_configs = [] }) =>
    dns_sd_configs.flatMap(({ names }) => names),
  );
  expect(scraped.length).toBeGreaterThan(0);
  for (const name of scraped) expect(services).toHaveProperty(name);
  for (const name of ['prometheus', 'grafana']) {
    const service = services[name]!;
    expect(service.profiles).toEqual(['monitoring']);
    expect(service.healthcheck).toBeDefined();
    expect(service.mem_limit).toBeDefined();
    for (const [source] of service.volumes.map((volume) => volume.split(':') as [string])) {
      if (source.startsWith('.')) expect(fs.existsSync(path.join(ROOT, source)), source).toBe(true);
      else expect(volumes).toHaveProperty(source);
    }
  }
  const always = Object.keys(services).filter((name) => services[name]!.profiles === undefined);
  expect(always.sort()).toEqual(['api', 'redis', 'worker']);
});

test('Grafana looks for its files where docker-compose.yml puts them, and knows how often Prometheus scrapes', () => {
  const { services } = parse(read(ROOT, 'docker-compose.yml'), { merge: true }) as {
    services: { grafana: { volumes: string[]; environment: Record<string, string> } };
  };
  const mounts = new Map(services.grafana.volumes.map((volume) => volume.split(':').slice(0, 2) as [string, string]));
  const { providers } = parse(read(ROOT, 'grafana/provisioning/dashboards/cairn.yml')) as {
    providers: readonly [{ options: { path: string } }];
  };
  expect(providers[0].options.path).toBe(mounts.get('./grafana/dashboards'));
  const home = services.grafana.environment['GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH']!;
  expect(home).toBe(`${mounts.get('./grafana/dashboards')}/${fileOf(DASHBOARDS[0]!)}`);
  const { datasources } = parse(read(ROOT, 'grafana/provisioning/datasources/prometheus.yml')) as {
    datasources: readonly [{ url: string; jsonData: { timeInterval: string } }];
  };
  const { global } = parse(read(PROMETHEUS_FOLDER, 'prometheus.yml')) as { global: { scrape_interval: string } };
  expect(datasources[0].jsonData.timeInterval).toBe(global.scrape_interval);
  expect(datasources[0].url).toBe('http://prometheus:9090');
});

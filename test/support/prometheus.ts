import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parse, stringify } from 'yaml';
import { freePort } from './free-port.ts';

/** Folder with Prometheus' configuration and rules. */
export const PROMETHEUS_FOLDER = path.resolve(import.meta.dirname, '../../grafana/prometheus');
const READY_TRIES = 200;

/** A Prometheus server with the rules that operators get, but with a shorter scrape interval and with other targets. */
export interface PrometheusServer {
  readonly url: string;
  /**
   * Evaluates an expression at a time (Unix s; now by default). Throws Prometheus' own message if the expression is
   * wrong.
   */
  query(expr: string, time?: number): Promise<readonly Series[]>;
  queryRange(expr: string, range: TimeRange): Promise<readonly Series[]>;
  /** Returns the rules with the results of their last evaluation. */
  rules(): Promise<readonly EvaluatedRule[]>;
  stop(): Promise<void>;
}

/** A range of times: its ends in Unix seconds, and the step between two points in seconds. */
interface TimeRange {
  readonly start: number;
  readonly end: number;
  readonly step: number;
}

export interface Series {
  readonly metric: Readonly<Record<string, string>>;
  /** Time (Unix s) and value. */
  readonly points: readonly (readonly [number, number])[];
}

interface EvaluatedRule {
  readonly name: string;
  readonly type: 'alerting' | 'recording';
  readonly query: string;
  readonly health: string;
  readonly lastError?: string;
}

/** Addresses of the scraped servers (`host:port`), by the name of the scrape job. */
export type Targets = Readonly<Record<string, readonly string[]>>;

/**
 * Returns the path of `prometheus` or `promtool`, in the folder of `PROMETHEUS_BIN` or else on the PATH; undefined if
 * it is not installed.
 */
export function findTool(name: 'prometheus' | 'promtool'): string | undefined {
  const folders = [process.env.PROMETHEUS_BIN ?? '', ...(process.env.PATH ?? '').split(path.delimiter)];
  return folders
    .filter(Boolean)
    .map((folder) => path.join(folder, name))
    .find((file) => fs.existsSync(file));
}

/**
 * Starts a Prometheus server.
 * @param everySeconds interval between two scrapes, and between two evaluations of the rules
 */
export async function startPrometheus(targets: Targets, everySeconds: number): Promise<PrometheusServer> {
  const program = findTool('prometheus');
  if (program === undefined) throw new Error('there is no prometheus');
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairn-prometheus-'));
  const address = `127.0.0.1:${await freePort()}`;
  const config = path.join(folder, 'prometheus.yml');
  fs.writeFileSync(config, configFor(targets, everySeconds));
  const child = spawn(
    program,
    [
      `--config.file=${config}`,
      `--storage.tsdb.path=${path.join(folder, 'data')}`,
      `--web.listen-address=${address}`,
      '--log.level=error',
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text));
  const exited = once(child, 'close');
  const url = `http://${address}`;
  for (let attempt = 1; !(await isReady(url)); attempt += 1) {
    if (child.exitCode !== null || attempt === READY_TRIES) throw new Error(`prometheus did not start:\n${said}`);
    await pause(100);
  }

  async function ask<T>(route: string, form: Readonly<Record<string, string>>): Promise<T> {
    const response = await fetch(`${url}/api/v1/${route}`, { method: 'POST', body: new URLSearchParams(form) });
    const reply = (await response.json()) as { status: string; error?: string; data: T };
    if (reply.status !== 'success') throw new Error(reply.error);
    return reply.data;
  }

  return {
    url,
    async query(expr, time) {
      const data = await ask<Answer>('query', { query: expr, ...(time === undefined ? {} : { time: String(time) }) });
      return toSeries(data);
    },
    async queryRange(expr, { start, end, step }) {
      const form = { query: expr, start: String(start), end: String(end), step: String(step) };
      return toSeries(await ask<Answer>('query_range', form));
    },
    async rules() {
      const reply = (await (await fetch(`${url}/api/v1/rules`)).json()) as {
        data: { groups: readonly { rules: readonly EvaluatedRule[] }[] };
      };
      return reply.data.groups.flatMap(({ rules }) => rules);
    },
    async stop() {
      child.kill('SIGTERM');
      await exited;
      fs.rmSync(folder, { recursive: true, force: true });
    },
  };
}

interface Answer {
  readonly resultType: 'vector' | 'matrix' | 'scalar';
  readonly result: readonly {
    readonly metric: Readonly<Record<string, string>>;
    readonly value?: readonly [number, string];
    readonly values?: readonly (readonly [number, string])[];
  }[];
}

function toSeries({ resultType, result }: Answer): Series[] {
  if (resultType === 'scalar') throw new Error('a scalar has no series');
  return result.map(({ metric, value, values = value === undefined ? [] : [value] }) => ({
    metric,
    points: values.map(([time, text]) => [time, Number(text)] as const),
  }));
}

/** Makes the configuration of docker-compose.yml with other addresses and another interval. */
function configFor(targets: Targets, everySeconds: number): string {
  const shipped = parse(fs.readFileSync(path.join(PROMETHEUS_FOLDER, 'prometheus.yml'), 'utf8')) as {
    readonly rule_files: readonly string[];
    readonly scrape_configs: readonly { readonly job_name: string }[];
  };
  const every = `${everySeconds}s`;
  return stringify({
    global: { scrape_interval: every, scrape_timeout: every, evaluation_interval: every },
    rule_files: shipped.rule_files.map((file) => path.join(PROMETHEUS_FOLDER, file)),
    scrape_configs: shipped.scrape_configs
      .filter(({ job_name }) => targets[job_name] !== undefined)
      .map(({ job_name }) => ({ job_name, static_configs: [{ targets: targets[job_name] }] })),
  });
}

async function isReady(url: string): Promise<boolean> {
  return fetch(`${url}/-/ready`).then(
    (response) => response.ok,
    () => false,
  );
}

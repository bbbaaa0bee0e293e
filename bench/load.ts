/**
 * Parts that the benchmarks of the running service share: texts, the baseline, its processes, adds and queries over
 * HTTP.
 */
import { fork, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { createRandom } from '../src/engine/random.ts';
import { createTextSource } from './natural-text.ts';
import { RawClient } from './raw-client.ts';
import { percentile, report } from './report.ts';

/** Makes natural texts of 60 to 220 characters. Equal seeds give equal texts. */
export function createTexts(count: number, seed = 1): string[] {
  const source = createTextSource(seed);
  const random = createRandom(seed + 2);
  return Array.from({ length: count }, () => source.text(60 + Math.floor(160 * random())));
}

/**
 * Measures the speed of bare inserts of the texts with one commit for each `group` of them, the most that disk and
 * SQLite allow. It reports the figure.
 * @returns inserts per second
 */
export function measureFloor(folder: string, texts: readonly string[], group: number): number {
  const db = new Database(path.join(folder, 'floor.sqlite'));
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = FULL');
  db.exec('CREATE TABLE memories (id INTEGER PRIMARY KEY, content TEXT NOT NULL)');
  const insert = db.prepare('INSERT INTO memories (content) VALUES (?)');
  const started = performance.now();
  for (let at = 0; at < texts.length; at += group) {
    db.transaction(() => texts.slice(at, at + group).forEach((text) => insert.run(text)))();
  }
  const perSecond = (texts.length / (performance.now() - started)) * 1000;
  db.close();
  report('floor_bare_inserts_per_s', perSecond, { group });
  return perSecond;
}

export interface Process {
  /** Address of the process; '' for a worker. */
  readonly url: string;
  readonly child: ChildProcess;
  readonly startMs: number;
  stop(): Promise<void>;
}

/**
 * Starts a process of the service as its users do, and waits until it says that it is ready.
 * @param options `isDetached`: signals of the terminal, such as Ctrl-C, do not reach the new process
 */
export function startProcess(
  command: 'serve' | 'api' | 'worker',
  settings: Readonly<Record<string, string>>,
  options: { readonly isDetached?: boolean } = {},
): Promise<Process> {
  return startServer([path.join(import.meta.dirname, '../bin/cairn.cjs'), command], settings, options);
}

/**
 * Starts a program under Node, with its arguments, and waits until it prints its address as JSON, or `worker_ready`.
 * @param options as in `startProcess`
 */
export async function startServer(
  program: readonly string[],
  settings: Readonly<Record<string, string>>,
  { isDetached = false }: { readonly isDetached?: boolean } = {},
): Promise<Process> {
  const started = performance.now();
  const child = spawn(process.execPath, program, {
    env: { ...process.env, ...settings },
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: isDetached,
  });
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  let log = '';
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout.on('data', (data: Buffer) => {
      log += data.toString();
      const match = /"url":"([^"]+)"/.exec(log);
      if (match) resolve(match[1] as string);
      else if (log.includes('"worker_ready"')) resolve('');
    });
    void exited.then(() => reject(new Error(`${program.join(' ')} ended at its start:\n${log}`)));
  });
  const startMs = performance.now() - started;
  return {
    url,
    child,
    startMs,
    async stop() {
      child.kill('SIGTERM');
      await exited;
    },
  };
}

export function residentMb(child: ChildProcess): number {
  const status = fs.readFileSync(`/proc/${child.pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
}

/** Memory that belongs to the process alone, without pages of files such as its program. */
export function anonymousMb(child: ChildProcess): number {
  const status = fs.readFileSync(`/proc/${child.pid}/status`, 'utf8');
  return Number(/RssAnon:\s+(\d+)/.exec(status)?.[1]) / 1024;
}

/** CPU time of a process so far, s. Unlike elapsed time, it hardly depends on other processes of the machine. */
export function cpuSeconds({ pid }: ChildProcess): number {
  // The second field is the name, in brackets, and may hold blanks.
  const fields = fs.readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  const TICKS_PER_SECOND = 100;
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

/** Adds the texts one by one over several connections, then waits until all jobs have ended. */
export async function measureAdds(url: string, texts: readonly string[], connections: number): Promise<void> {
  const latencies: number[] = [];
  let next = 0;
  const started = performance.now();
  await Promise.all(
    Array.from({ length: connections }, async () => {
      const client = new RawClient(url);
      while (next < texts.length) {
        const at = next++;
        const body = JSON.stringify({ content: texts[at], user_id: 'bench', session_id: `s${Math.floor(at / 20)}` });
        const begun = performance.now();
        const { status, body: reply } = await client.request('POST', '/memory/add', body);
        latencies.push(performance.now() - begun);
        if (status !== 202 && status !== 200) throw new Error(`add answered ${status}: ${reply}`);
      }
      client.close();
    }),
  );
  const acceptedMs = performance.now() - started;
  report('accepted_adds_per_s', (texts.length / acceptedMs) * 1000, { connections });
  reportLatencies('accepted_add_p95_ms', latencies);
  await untilIdle(url);
  report('finished_adds_per_s', (texts.length / (performance.now() - started)) * 1000);
}

/** Waits until no job is queued, active or waiting for another attempt. */
export async function untilIdle(url: string): Promise<void> {
  const client = new RawClient(url);
  for (;;) {
    const { counts } = JSON.parse((await client.request('GET', '/jobs?l=1')).body) as {
      counts: Record<string, number>;
    };
    if ((counts.queued ?? 0) + (counts.active ?? 0) + (counts.failed ?? 0) === 0) break;
    await pause(50);
  }
  client.close();
}

/** Makes questions of four to twelve words of a natural sentence. */
export function createQuestions(seed = 2): () => string {
  const source = createTextSource(seed);
  let count = 0;
  return () =>
    source
      .sentence()
      .split(' ')
      .slice(0, 4 + (count++ % 9))
      .join(' ');
}

/** Asks questions one after the other on one connection while `more` returns true. Returns the latencies, ms. */
export async function askQuestions(
  url: string,
  more: (asked: number) => boolean,
  nextQuestion = createQuestions(),
): Promise<number[]> {
  const client = new RawClient(url);
  const latencies: number[] = [];
  while (more(latencies.length)) {
    const body = JSON.stringify({ query: nextQuestion(), user_id: 'bench', k: 10 });
    const begun = performance.now();
    const { status, body: reply } = await client.request('POST', '/memory/query', body);
    latencies.push(performance.now() - begun);
    if (status !== 200) throw new Error(`query answered ${status}: ${reply}`);
  }
  client.close();
  return latencies;
}

export interface Asker {
  /** Asks new questions, by default until `enough` is called. Returns the latencies, ms. */
  ask(questions?: number): Promise<number[]>;
  enough(): void;
  stop(): void;
}

/** Starts a process that asks (asker.ts), so that this process does not affect the measured latencies. */
export function startAsker(url: string): Asker {
  const child = fork(path.join(import.meta.dirname, 'asker.ts'), [url]);
  return {
    async ask(questions = Number.MAX_SAFE_INTEGER) {
      child.send(questions);
      const ended = once(child, 'exit').then(() => {
        throw new Error('the asker ended');
      });
      const [latencies] = (await Promise.race([once(child, 'message'), ended])) as [number[]];
      ended.catch(() => {});
      return latencies;
    },
    enough: () => void child.send(0),
    stop: () => child.disconnect(),
  };
}

export function reportLatencies(
  figure: string,
  latencies: readonly number[],
  more: Readonly<Record<string, number | string>> = {},
): void {
  report(figure, percentile(latencies, 0.95), {
    p50: percentile(latencies, 0.5),
    p99: percentile(latencies, 0.99),
    ...more,
  });
}

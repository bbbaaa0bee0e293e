/**
 * Export and import of a whole store: `npm run measure -- transfer [MEMORIES] [QUESTIONS] [MEGABYTES]`. A service is
 * filled with all that an export can hold, exported over HTTP and by the command line, and imported into empty services
 * the same ways. Then the source and a copy are asked the same questions, and the run fails if an answer differs. At
 * the end an archive of another program, of MEGABYTES MB, is imported; 0 leaves that out. Prints one JSON line per
 * figure; `cpu_s` is CPU time for 10,000 memories, of the server and of the command line.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { setTimeout as pause } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { cpuSeconds, createQuestions, startProcess, untilIdle, type Process } from './load.ts';
import { report } from './report.ts';
import { addDocuments, caller, changeStore, fillStore, writeArchive, type Call } from './transfer-store.ts';

const MEMORIES = Number(process.argv[2] ?? 20_000);
const QUESTIONS = Number(process.argv[3] ?? 200);
const MEGABYTES = Number(process.argv[4] ?? 175);
/** Scores of two servers are compared at two moments, some seconds apart, between which memories fade a little. */
const SCORE_TOLERANCE = 1e-5;

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairn-transfer-'));
const fileOf = (name: string) => path.join(folder, name);
const services: Process[] = [];

async function start(name: string): Promise<Process> {
  fs.mkdirSync(fileOf(name));
  const settings = { OM_DB_PATH: path.join(folder, name, 'bench.sqlite'), OM_PORT: '0', OM_LOG_LEVEL: 'info' };
  const service = await startProcess('serve', settings);
  services.push(service);
  return service;
}

async function stop(service: Process): Promise<void> {
  services.splice(services.indexOf(service), 1);
  await service.stop();
}

try {
  const source = await start('source');
  const questions = await fill(source);
  const memories = await measureExports(source);
  const copy = await measureHttpImport(memories);
  await compareAnswers(source, copy, questions);
  await stop(copy);
  await stop(source);
  await measureCliImport('import_cli', fileOf('cli.jsonl'), memories);
  await measureCliImport('import_cli_gzip', fileOf('cli.jsonl.gz'), memories);
  if (MEGABYTES > 0) {
    const messages = await writeArchive(fileOf('conversations.json'), MEGABYTES);
    await measureCliImport('import_archive', fileOf('conversations.json'), messages);
  }
} finally {
  for (const service of [...services]) await stop(service);
  fs.rmSync(folder, { recursive: true, force: true });
}

/** Fills a service. @returns the questions that it will be asked */
async function fill(service: Process): Promise<readonly string[]> {
  const nextQuestion = createQuestions(5);
  const questions = Array.from({ length: QUESTIONS }, () => nextQuestion());
  const ids = await withCaller(service, (call) => fillStore(call, MEMORIES));
  await addDocuments(service.url, Math.ceil(MEMORIES / 2_000));
  await untilIdle(service.url);
  await withCaller(service, (call) => changeStore(call, ids, questions.slice(0, 50)));
  await untilIdle(service.url);
  return questions;
}

/** Calls a service on a connection of its own, since the server closes connections that are idle for some seconds. */
async function withCaller<T>({ url }: Process, work: (call: Call) => Promise<T>): Promise<T> {
  const { call, close } = caller(url);
  try {
    return await work(call);
  } finally {
    close();
  }
}

/** Exports the store over HTTP and by the command line. @returns the number of memories in the export */
async function measureExports(service: Process): Promise<number> {
  await timed('export_http', service, async () => {
    const [response] = (await once(http.get(`${service.url}/export`), 'response')) as [http.IncomingMessage];
    await pipeline(response, fs.createWriteStream(fileOf('http.jsonl')));
    return endOf(fileOf('http.jsonl'));
  });
  for (const name of ['cli.jsonl', 'cli.jsonl.gz'])
    await timed(`export_${name.endsWith('.gz') ? 'cli_gzip' : 'cli'}`, service, async (cli) => {
      await cli(['export', fileOf(name)]);
      return endOf(fileOf('http.jsonl'));
    });
  report('export_mb', fs.statSync(fileOf('http.jsonl')).size / 1e6);
  return endOf(fileOf('http.jsonl'));
}

/** Reads the number of memories from the last line of an export. */
function endOf(file: string): number {
  const handle = fs.openSync(file, 'r');
  const { size } = fs.fstatSync(handle);
  const tail = Buffer.alloc(Math.min(size, 4_096));
  fs.readSync(handle, tail, 0, tail.length, size - tail.length);
  fs.closeSync(handle);
  const end = JSON.parse(tail.toString().trimEnd().split('\n').at(-1)!) as { counts: { memory: number } };
  return end.counts.memory;
}

/** Imports into an empty service over HTTP. @returns the service */
async function measureHttpImport(memories: number): Promise<Process> {
  const service = await start('http');
  const whole = await timed('import_http', service, async () => {
    const headers = { 'content-type': 'application/x-ndjson' };
    const request = http.request(`${service.url}/import`, { method: 'POST', headers });
    const answered = once(request, 'response') as Promise<[http.IncomingMessage]>;
    const [[response]] = await Promise.all([answered, pipeline(fs.createReadStream(fileOf('http.jsonl')), request)]);
    expectStored(JSON.parse((await text(response)).trimEnd().split('\n').at(-1)!) as Summary, memories);
    return memories;
  });
  await untilIdle(service.url);
  report('import_http_until_embedded_s', (performance.now() - whole) / 1_000);
  return service;
}

async function measureCliImport(figure: string, file: string, memories: number): Promise<void> {
  const service = await start(figure);
  await timed(figure, service, async (cli) => {
    await cli(['import', file]);
    return memories;
  });
  await stop(service);
  const db = new Database(path.join(fileOf(figure), 'bench.sqlite'), { readonly: true });
  const stored = db.prepare('SELECT count(*) FROM memories').pluck().get() as number;
  db.close();
  if (stored !== memories) throw new Error(`${figure}: ${stored} memories, not ${memories}`);
}

interface Summary {
  readonly stored: Readonly<Record<string, number>>;
  readonly refused: Readonly<Record<string, number>>;
}

function expectStored(summary: Summary, memories: number): void {
  if (summary.stored['memory'] !== memories || Object.keys(summary.refused).length > 0)
    throw new Error(`the import is not whole: ${JSON.stringify(summary)}`);
}

interface Usage {
  /** CPU time, s. */
  readonly cpu: number;
  /** Highest memory, MB. */
  readonly mb: number;
}

type Cli = (args: readonly string[]) => Promise<void>;

/**
 * Times something that a service does, with the CPU time and the highest memory of both sides.
 * @returns the time at which it began
 */
async function timed(figure: string, service: Process, act: (cli: Cli) => Promise<number>): Promise<number> {
  const cpuBefore = cpuSeconds(service.child);
  let client: Usage = { cpu: 0, mb: 0 };
  const begun = performance.now();
  const memories = await act(async (args) => void (client = await runCli(service.url, args)));
  const seconds = (performance.now() - begun) / 1_000;
  const per10k = (cpu: number) => (cpu * 10_000) / memories;
  report(`${figure}_per_s`, memories / seconds, {
    memories,
    seconds,
    server_cpu_s: per10k(cpuSeconds(service.child) - cpuBefore),
    ...(client.mb > 0 ? { cli_cpu_s: per10k(client.cpu), cli_peak_mb: client.mb } : {}),
    server_peak_mb: peakMb(service.child.pid!),
  });
  return begun;
}

/** Runs the command line and waits for its end. */
async function runCli(url: string, args: readonly string[]): Promise<Usage> {
  const child = spawn(process.execPath, [path.join(import.meta.dirname, '../bin/cairn.cjs'), ...args], {
    env: { ...process.env, CAIRN_URL: url },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const said = text(child.stdout);
  const ended = once(child, 'exit') as Promise<[number | null]>;
  let seen: Usage = { cpu: 0, mb: 0 };
  let isOver = false;
  void ended.then(() => (isOver = true));
  while (!isOver) {
    try {
      seen = { cpu: cpuSeconds(child), mb: peakMb(child.pid!) };
    } catch {
      break; // It has just ended.
    }
    await pause(20);
  }
  const [code] = await ended;
  if (code !== 0) throw new Error(`cairn ${args.join(' ')} ended with ${code}:\n${await said}`);
  return seen;
}

function peakMb(pid: number): number {
  return Number(/VmHWM:\s+(\d+)/.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024;
}

/** Asks both services the same questions, in four ways, and fails if an answer differs. */
async function compareAnswers(source: Process, copy: Process, questions: readonly string[]): Promise<void> {
  const [from, to] = [caller(source.url), caller(copy.url)];
  const user = { user_id: 'user-0' };
  const ways = [{}, user, { ...user, deep_recall: true }, { filters: { tags: ['imported'] } }];
  let largest = 0;
  const different: string[] = [];
  for (const [at, query] of questions.entries()) {
    const asked = { query, k: 10, reinforce: false, ...ways[at % ways.length] };
    const [here, there] = await Promise.all([ask(from.call, asked), ask(to.call, asked)]);
    const gaps = here.map(({ score }, place) => Math.abs(score - (there[place]?.score ?? 0)));
    largest = Math.max(largest, ...gaps);
    const isSame = here.length === there.length && here.every(({ id }, place) => id === there[place]!.id);
    if (!isSame || gaps.some((gap) => gap > SCORE_TOLERANCE)) different.push(JSON.stringify({ asked, here, there }));
  }
  from.close();
  to.close();
  report('equal_answers', questions.length - different.length, { questions: questions.length, largest_gap: largest });
  if (different.length > 0) throw new Error(`answers differ: ${different.slice(0, 3).join('\n')}`);
}

interface Match {
  readonly id: string;
  readonly score: number;
}

async function ask(call: Call, asked: object): Promise<readonly Match[]> {
  const { matches } = (await call('POST', '/memory/query', asked)) as unknown as { matches: readonly Match[] };
  return matches.map(({ id, score }) => ({ id, score }));
}

/**
 * How long a turn of the API's event loop takes: `npm run measure -- turns [MEMORIES] [SECONDS]`. Eight clients ask
 * questions of sixty words for a hundred hits each, one adds 200 memories a second, and one asks `/health` every 20 ms.
 * A probe in the service (turn-probe.ts) writes the CPU time of each turn. Prints one JSON line per figure.
 */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { createTexts, startProcess, untilIdle } from './load.ts';
import { createTextSource } from './natural-text.ts';
import { RawClient } from './raw-client.ts';
import { percentile, report } from './report.ts';

const MEMORIES = Number(process.argv[2] ?? 10_000);
const SECONDS = Number(process.argv[3] ?? 20);
const ASKERS = 8;
const QUESTION_WORDS = 60;
const HITS = 100;
const ADDS_A_SECOND = 200;
const HEALTH_EVERY_MS = 20;
const BATCH_ITEMS = 100;
const WARM_UP_MS = 5_000;

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairn-bench-'));
const file = path.join(folder, 'turns.json');
const service = await startProcess('serve', {
  OM_DB_PATH: path.join(folder, 'bench.sqlite'),
  OM_PORT: '0',
  CAIRN_TURNS: file,
  NODE_OPTIONS: `--import=${path.join(import.meta.dirname, 'turn-probe.ts')}`,
});
try {
  await fill(createTexts(MEMORIES));
  let isOver = false;
  const healthMs: number[] = [];
  const more = () => !isOver;
  const load = [
    ...Array.from({ length: ASKERS }, (_, asker) => ask(createTextSource(100 + asker), more)),
    addEvenly(createTexts(ADDS_A_SECOND * (SECONDS + WARM_UP_MS / 1_000), 7), more),
    probeHealth(more, healthMs),
  ];
  await pause(WARM_UP_MS);
  await readTurns();
  healthMs.length = 0;
  await pause(1_000 * SECONDS);
  const turns = await readTurns();
  isOver = true;
  await Promise.all(load);
  for (const share of [0.5, 0.99, 0.999, 1])
    report('turn_cpu_ms', percentile(turns, share), { share, turns: turns.length });
  for (const share of [0.5, 0.99]) report('health_ms', percentile(healthMs, share), { share });
} finally {
  await service.stop();
  fs.rmSync(folder, { recursive: true, force: true });
}

async function fill(texts: readonly string[]): Promise<void> {
  const client = new RawClient(service.url);
  for (let at = 0; at < texts.length; at += BATCH_ITEMS) {
    const items = texts.slice(at, at + BATCH_ITEMS).map((content) => ({ content, user_id: 'bench' }));
    await request(client, 'POST', '/memory/add/batch', { items });
  }
  client.close();
  await untilIdle(service.url);
}

async function ask(source: ReturnType<typeof createTextSource>, more: () => boolean): Promise<void> {
  const client = new RawClient(service.url);
  while (more()) {
    const words: string[] = [];
    while (words.length < QUESTION_WORDS) words.push(...source.sentence().split(' '));
    const query = words.slice(0, QUESTION_WORDS).join(' ');
    await request(client, 'POST', '/memory/query', { query, user_id: 'bench', k: HITS });
  }
  client.close();
}

async function addEvenly(texts: readonly string[], more: () => boolean): Promise<void> {
  const client = new RawClient(service.url);
  const startedAt = performance.now();
  for (const [at, content] of texts.entries()) {
    if (!more()) break;
    const dueMs = startedAt + (1_000 * at) / ADDS_A_SECOND - performance.now();
    if (dueMs > 0) await pause(dueMs);
    await request(client, 'POST', '/memory/add', { content, user_id: 'bench' });
  }
  client.close();
}

async function probeHealth(more: () => boolean, latencies: number[]): Promise<void> {
  const client = new RawClient(service.url);
  while (more()) {
    const begun = performance.now();
    await request(client, 'GET', '/health');
    latencies.push(performance.now() - begun);
    await pause(HEALTH_EVERY_MS);
  }
  client.close();
}

async function request(client: RawClient, method: string, route: string, body?: unknown): Promise<void> {
  const reply = await client.request(method, route, body === undefined ? '' : JSON.stringify(body));
  if (reply.status >= 300) throw new Error(`${route} answered ${reply.status}: ${reply.body.slice(0, 200)}`);
}

/** Reads the turns since the last reading. */
async function readTurns(): Promise<number[]> {
  fs.rmSync(file, { force: true });
  service.child.kill('SIGUSR2');
  while (!fs.existsSync(file)) await pause(20);
  await pause(200);
  return JSON.parse(fs.readFileSync(file, 'utf8')) as number[];
}

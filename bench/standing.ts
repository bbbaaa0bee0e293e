/**
 * What standing queries cost: `npm run measure -- standing [QUERIES] [MEMORIES] [names|natural]`. Memories of natural
 * words are added to a file, once without standing queries and once with them, and go through encode and link. The
 * queries ask about names, as most do, or are pieces of the sentences of which the memories are made, so that each
 * memory answers hundreds of them. CPU time is compared, because other processes affect it least. The search by
 * vectors, which the offline embedder has no use for, is measured apart, with vectors at random. So are adds with a
 * webhook that waits for another kind of event, and with one that is told of each. Prints one JSON line per figure.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { v7 as uuidv7 } from 'uuid';
import { runBatch } from '../src/engine/batches/run-batch.ts';
import { readConfig } from '../src/engine/config.ts';
import { createMetrics } from '../src/engine/metrics.ts';
import { openEngine } from '../src/engine/open-engine.ts';
import { openParts } from '../src/engine/parts/engine-parts.ts';
import { silentLogger, systemClock } from '../src/engine/ports.ts';
import type { PreparedQuery } from '../src/engine/retrieve/standing-index.ts';
import { bitsWithin, createStandingNeighbours } from '../src/engine/retrieve/standing-neighbours.ts';
import { insertStandingQuery } from '../src/engine/store/standing.ts';
import type { EventKind, NewStandingQuery } from '../src/engine/types.ts';
import { newMemory } from '../test/support/new-memory.ts';
import { createRandom } from '../src/engine/random.ts';
import { createQuestions, createTexts } from './load.ts';
import { rareWord } from './natural-text.ts';
import { report } from './report.ts';

const QUERIES = Number(process.argv[2] ?? 10_000);
const MEMORIES = Number(process.argv[3] ?? 2_000);
const KIND = process.argv[4] ?? 'names';
const ADDED_AT_ONCE = 64;
/** Number of memories that are in the file when the measuring begins, so that a query has a scope. */
const BEFORE = 10_000;

const texts = createTexts(BEFORE + 4 * MEMORIES, 5);
const stop = new AbortController().signal;
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairn-bench-'));
const config = readConfig({
  OM_DB_PATH: path.join(folder, 'bench.sqlite'),
  OM_VEC_DIM: '256',
  OM_WEBHOOK_ALLOW: '127.0.0.1',
});
const engine = await openEngine({ config, writer: 'inline' });
const tenant = await engine.tenant('default');
const surroundings = { config, clock: systemClock, metrics: createMetrics(), logger: silentLogger };
const parts = openParts({ ...surroundings, role: 'worker', onCall: () => {} });
const worker = {
  ...surroundings,
  ...parts,
  open: () => parts.pool.get(config.paths.defaultTenant),
  newId: uuidv7,
  owner: 'bench',
};
await add(BEFORE);
const without = await measure();
const receiver = await startReceiver();
const idle = await measureWithWebhook(['reembed.finished']);
const told = await measureWithWebhook([]);
receiver.kill();
const naturally = createQuestions(6);
const names = createNames();
const queries: NewStandingQuery[] = [];
for (let count = 0; count < QUERIES; count++) {
  const query = KIND === 'natural' ? naturally() : `When does ${names()} meet ${names()} about the ${names()}?`;
  queries.push({ query, filter: {}, given: {} });
}
const { store } = worker.open();
store.write(() =>
  queries.forEach((query) => insertStandingQuery(store, query, { id: uuidv7(), writerNo: null, now: Date.now() })),
);
// The index of the queries is made at the first comparison.
const built = process.cpuUsage();
const heap = process.memoryUsage().rss;
await add(1);
await tend();
report('standing_index_cpu_ms', cpuMs(built), { mb: (process.memoryUsage().rss - heap) / 1024 / 1024 });
const having = await measure();
const { items } = await tenant.listStandingQueries({ limit: QUERIES, offset: 0 });
const answers = items.reduce((sum, query) => sum + query.answers, 0);
report('add_cpu_ms_without', without.all / MEMORIES, { memories: MEMORIES });
report('add_cpu_ms_with_idle_webhook', idle.all / MEMORIES, { tending: idle.tending / MEMORIES });
report('add_cpu_ms_with_webhook', told.all / MEMORIES, { tending: told.tending / MEMORIES });
report('add_cpu_ms_with', having.all / MEMORIES, { queries: QUERIES, answers_of_an_add: answers / MEMORIES });
report('compare_cpu_ms_of_an_add', having.tending / MEMORIES);
report('near_cpu_ms_of_an_add', nearCost(), { queries: QUERIES, dimensions: 768 });
await engine.close();
await Promise.all([parts.documentParser?.close(), parts.pageFetcher?.close()]);
parts.pool.close();
fs.rmSync(folder, { recursive: true, force: true });

/** Starts a receiver of webhooks in a process of its own, so that its work is not measured. */
async function startReceiver() {
  const code = `require('node:http')
    .createServer((request, response) => request.resume().on('end', () => response.end()))
    .listen(0, '127.0.0.1', function () { console.log(this.address().port) })`;
  const child = spawn(process.execPath, ['-e', code], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  return { url: `http://127.0.0.1:${Number(String(line))}/`, kill: () => void child.kill() };
}

async function measureWithWebhook(kinds: readonly EventKind[]) {
  const { id } = await tenant.createWebhook({ url: receiver.url, kinds });
  const costs = await measure();
  await tenant.deleteWebhook(id);
  return costs;
}

/** CPU time of the search by vectors for one memory, ms, where its vector could answer every query. */
function nearCost(): number {
  const random = createRandom(11);
  const codeOf = () => Uint8Array.from({ length: 768 / 8 }, () => Math.floor(256 * random()));
  const prepared = { userId: null, minScore: null, forms: 'stemmed' } as PreparedQuery;
  const placed = Array.from({ length: QUERIES }, (_, queryNo) => ({ query: { ...prepared, queryNo }, code: codeOf() }));
  const { near, place } = createStandingNeighbours(768);
  placed.forEach(place);
  const memories = Array.from({ length: 500 }, codeOf);
  const reach = bitsWithin(0.56, 768);
  const search = () => memories.forEach((code) => near([code], '', () => reach));
  search();
  const since = process.cpuUsage();
  search();
  return cpuMs(since) / memories.length;
}

/** Makes a source of names: rare words of the texts with a capital. */
function createNames(): () => string {
  const random = createRandom(9);
  return () => {
    const word = rareWord(() => 0.6 + 0.4 * random());
    return word[0]!.toUpperCase() + word.slice(1);
  };
}

/** Adds memories and works on them until all are linked and compared. Returns CPU times, ms. */
async function measure(): Promise<{ readonly all: number; readonly tending: number }> {
  let [all, tending] = [0, 0];
  for (let added = 0; added < MEMORIES; added += ADDED_AT_ONCE) {
    const [start, count] = [process.cpuUsage(), Math.min(ADDED_AT_ONCE, MEMORIES - added)];
    await add(count);
    const before = process.cpuUsage();
    await tend();
    tending += cpuMs(before);
    all += cpuMs(start);
  }
  return { all, tending };
}

async function add(count: number): Promise<void> {
  for (let left = count; left > 0; left -= ADDED_AT_ONCE) {
    const contents = texts.splice(0, Math.min(left, ADDED_AT_ONCE));
    await tenant.addMemories(contents.map((content) => newMemory({ content })));
    while ((await runBatch(worker, ADDED_AT_ONCE)).claimed > 0);
  }
}

async function tend(): Promise<void> {
  while ((await tenant.tendStanding(stop)) === 'busy');
}

function cpuMs(since: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(since);
  return (user + system) / 1000;
}

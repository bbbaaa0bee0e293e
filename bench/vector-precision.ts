/**
 * What each precision of stored vectors takes and loses: `npm run measure -- vector-precision`. A provider in this
 * process gives vectors that are shaped like those of trained models. The whole engine stores them, links them and
 * answers questions, once in each precision, and all is compared with float32.
 */
import fs from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { json } from 'node:stream/consumers';
import { v7 as uuidv7 } from 'uuid';
import { runBatch } from '../src/engine/batches/run-batch.ts';
import { readConfig } from '../src/engine/config.ts';
import { createMetrics } from '../src/engine/metrics.ts';
import { openParts } from '../src/engine/parts/engine-parts.ts';
import { openEngine } from '../src/engine/open-engine.ts';
import { silentLogger, systemClock, VECTOR_PRECISIONS, type VectorPrecision } from '../src/engine/ports.ts';
import type { SqliteStore } from '../src/engine/store/open-store.ts';
import { compareParts, encodeVector } from '../src/engine/store/vector-encoding.ts';
import { checkpoint } from '../src/engine/upkeep/checkpoint.ts';
import { newMemory } from '../test/support/new-memory.ts';
import { createTexts } from './load.ts';
import { report } from './report.ts';
import { createShapedVectors } from './shaped-vectors.ts';
import { sqliteOf } from '../test/support/sqlite-of.ts';

const MEMORIES = Number(process.argv[2] ?? 20_000);
const DIMENSIONS = Number(process.argv[3] ?? 1_536);
const QUESTIONS = 200;
const ADD_BATCH = 100;
const WORK_BATCH = 256;
const SHAPE = { dimensions: DIMENSIONS, strong: 8, times: 10, topics: Math.ceil(MEMORIES / 100) };
/** Tables that hold vectors, with their indexes; the cache is one of these. */
const OF_VECTORS = ['vectors', 'vector_parts', 'vector_codes'];

const next = createShapedVectors(SHAPE, 7);
const vectors = Array.from({ length: MEMORIES + QUESTIONS }, next);
const texts = createTexts(vectors.length, 5).map((text, number) => `${number} ${text}`);

/** What the engine made of the memories in one precision. */
interface Outcome {
  /** Target of each memory's waypoint and its similarity, by memory. */
  readonly links: ReadonlyMap<number, { readonly dst: number; readonly similarity: number }>;
  /** Scores of the hits of each question, by memory. */
  readonly answers: readonly ReadonlyMap<string, number>[];
}

async function main(): Promise<void> {
  const provider = await startProvider();
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairn-precision-'));
  try {
    reportRecall();
    const exact = await run('float32', provider.url, folder);
    for (const precision of ['float16', 'int8'] as const) {
      reportDifferences(precision, await run(precision, provider.url, folder), exact);
    }
  } finally {
    fs.rmSync(folder, { recursive: true });
    provider.close();
  }
}

/** Answers as an OpenAI-compatible server does, with the vector of the number that a text begins with. */
async function startProvider() {
  const answer = async (request: http.IncomingMessage, response: http.ServerResponse) => {
    const { input } = (await json(request)) as { input: string[] };
    const data = input.map((text, index) => {
      const vector = vectors[parseInt(text, 10) || 0]!;
      return { index, embedding: Buffer.from(vector.buffer).toString('base64') };
    });
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ data, usage: { prompt_tokens: input.length } }));
  };
  const server = http.createServer((request, response) => void answer(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/v1`, close: () => void server.close() };
}

/** Compares the ten nearest of all vectors, exactly, with those in float32. */
function reportRecall(): void {
  const all = vectors.slice(0, MEMORIES);
  const questions = vectors.slice(MEMORIES);
  const similarities = (precision: VectorPrecision) => {
    const stored = all.map((vector) => encodeVector(vector, precision));
    const begun = process.cpuUsage();
    const rows = questions.map((question) => {
      const compare = compareParts(question);
      return Float64Array.from(stored, (bytes) => compare(bytes, 0, precision));
    });
    const { user, system } = process.cpuUsage(begun);
    return { rows, usEach: (user + system) / (rows.length * all.length) };
  };
  const exact = similarities('float32').rows;
  const wanted = exact.map((row) => new Set(tenBest(row)));
  for (const precision of VECTOR_PRECISIONS) {
    const { rows, usEach } = similarities(precision);
    const found = rows.map((row, place) => tenBest(row).filter((best) => wanted[place]!.has(best)).length);
    const off = rows.map((row, place) =>
      row.reduce((most, value, i) => Math.max(most, Math.abs(value - exact[place]![i]!)), 0),
    );
    report('recall_at_10', found.reduce((sum, count) => sum + count, 0) / (10 * questions.length), {
      precision,
      cosine_off_at_most: Math.max(...off),
      us_a_comparison: usEach,
    });
  }
}

function tenBest(similarities: Float64Array): number[] {
  const least = similarities.toSorted().at(-10)!;
  return [...similarities.keys()].filter((place) => similarities[place]! >= least);
}

async function run(precision: VectorPrecision, url: string, folder: string): Promise<Outcome> {
  const file = path.join(folder, `${precision}.sqlite`);
  const config = readConfig({
    OM_DB_PATH: file,
    OM_EMBEDDINGS: 'openai',
    OM_OPENAI_BASE_URL: url,
    OM_VEC_DIM: String(DIMENSIONS),
    OM_VECTOR_PRECISION: precision,
    OM_EMBED_LINGER_MS: '0',
    OM_MIN_SCORE: '0',
    OM_VECTOR_INDEX: process.argv[4],
    OM_QUERY_EMBED_TIMEOUT_MS: '10000',
  });
  const metrics = createMetrics();
  const engine = await openEngine({ config, metrics, writer: 'inline' });
  const parts = openParts({ config, clock: systemClock, metrics, role: 'worker', onCall: () => {} });
  const { embedder, gatherer, sourceOf } = parts;
  const open = () => parts.pool.get(file);
  const common = { open, config, clock: systemClock, metrics, logger: silentLogger, embedder, gatherer, sourceOf };
  const none = { languageModel: null, documentParser: null, pageFetcher: null };
  const context = { ...common, ...none, newId: uuidv7, owner: 'bench' };
  try {
    const tenant = await engine.tenant('default');
    for (let at = 0; at < MEMORIES; at += ADD_BATCH) {
      const batch = texts.slice(at, Math.min(MEMORIES, at + ADD_BATCH));
      await tenant.addMemories(batch.map((content) => newMemory({ content, userId: 'bench' })));
    }
    while ((await runBatch(context, WORK_BATCH)).claimed > 0) checkpoint(context);
    const { store } = open();
    const answers: ReadonlyMap<string, number>[] = [];
    const begun = process.cpuUsage();
    for (const query of texts.slice(MEMORIES)) {
      const { hits, degraded } = await tenant.query({ query, k: 20, filter: {}, reinforce: false });
      if (degraded) throw new Error('the provider in this process did not answer');
      answers.push(new Map(hits.map(({ memory, score }) => [memory.content, score])));
    }
    const { user, system } = process.cpuUsage(begun);
    report('query_cpu_ms', (user + system) / 1_000 / QUESTIONS, { precision });
    reportBytes(sqliteOf(store), precision);
    const links = store
      .prepare(`SELECT src, dst, similarity FROM edges WHERE type = 'waypoint' AND automatic = 1`)
      .all() as { src: number; dst: number; similarity: number }[];
    return { links: new Map(links.map(({ src, ...link }) => [src, link])), answers };
  } finally {
    await engine.close();
    parts.pool.close();
    parts.budget.close();
  }
}

/** Bytes of pages a memory: of vectors with their indexes, and of the whole file without the text. */
function reportBytes(store: SqliteStore, precision: VectorPrecision): void {
  store.db.pragma('wal_checkpoint(TRUNCATE)');
  const sizes = store
    .prepare(
      `SELECT s.tbl_name AS name, sum(d.pgsize) AS bytes FROM dbstat d JOIN sqlite_schema s ON s.name = d.name
       GROUP BY s.tbl_name`,
    )
    .all() as { name: string; bytes: number }[];
  const bytesOf = (names: readonly string[]) =>
    sizes.filter(({ name }) => names.includes(name)).reduce((sum, { bytes }) => sum + bytes, 0);
  const text = store.prepare('SELECT sum(octet_length(content)) FROM memories').pluck().get() as number;
  report('bytes_of_vectors_a_memory', bytesOf(OF_VECTORS) / MEMORIES, { precision, dimensions: DIMENSIONS });
  report('bytes_beyond_text_a_memory', (fs.statSync(store.path).size - text) / MEMORIES, {
    precision,
    without_jobs: (fs.statSync(store.path).size - text - bytesOf(['jobs'])) / MEMORIES,
  });
}

function reportDifferences(precision: VectorPrecision, made: Outcome, exact: Outcome): void {
  const both = [...made.links].filter(([src]) => exact.links.has(src));
  const same = both.filter(([src, { dst }]) => exact.links.get(src)!.dst === dst);
  const off = both.map(([src, { similarity }]) => Math.abs(similarity - exact.links.get(src)!.similarity));
  report('links_to_another_memory', 1 - same.length / exact.links.size, {
    precision,
    links: exact.links.size,
    similarity_off_at_most: off.reduce((most, value) => Math.max(most, value), 0),
    over_005: off.filter((value) => value > 0.005).length / off.length,
  });
  const shared = made.answers.flatMap((hits, place) =>
    [...hits].flatMap(([id, score]) => {
      const other = exact.answers[place]!.get(id);
      return other === undefined ? [] : [Math.abs(score - other)];
    }),
  );
  const asked = exact.answers.reduce((sum, hits) => sum + hits.size, 0);
  report(
    'score_off_at_most',
    shared.reduce((most, value) => Math.max(most, value), 0),
    {
      precision,
      mean: shared.reduce((sum, value) => sum + value, 0) / shared.length,
      over_005: shared.filter((value) => value > 0.005).length / shared.length,
      hits_shared: shared.length / asked,
    },
  );
}

await main();

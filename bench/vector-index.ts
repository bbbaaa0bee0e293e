/**
 * The vector index alone, with one user who owns everything: `npm run measure -- vector-index [VECTORS]
 * [hashed|clustered]`. Vectors are natural texts through the offline embedder, or clusters of directions as a model
 * produces them. Prints one JSON line per figure: the time of a search in ms and its recall of the ten nearest by exact
 * cosine, the same figures of sqlite-vec's bit table, the times of linking a memory and of loading the index, and
 * memory.
 */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { openBitIndex } from '../src/engine/adapters/bit-index/bit-index.ts';
import { createHashedEmbedder } from '../src/engine/adapters/hashed-embedder.ts';
import type { IndexSearch, VectorIndex } from '../src/engine/ports.ts';
import { createRandom } from '../src/engine/random.ts';
import { openStore, type SqliteStore } from '../src/engine/store/open-store.ts';
import { cosine, signBits } from '../src/engine/store/vector-encoding.ts';
import { openStoredIndex } from '../test/support/stored-index.ts';
import { createTextSource } from './natural-text.ts';
import { percentile, report } from './report.ts';

const VECTORS = Number(process.argv[2] ?? 100_000);
const KIND = process.argv[3] ?? 'hashed';
const DIMENSIONS = 768;
const SLICE = 1_000;
const SEARCHES = 200;
/** Number of searches for recall; it falls with the number of vectors, as an exact answer reads all of them. */
const RECALL_SEARCHES = Math.max(10, Math.min(100, Math.round(10_000_000 / VECTORS)));
const LINKED_AT_ONCE = 16;
const SPACE = { modelNo: 1, dimensions: DIMENSIONS, encoding: KIND === 'hashed' ? 'int5' : 'float32' } as const;

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairn-bench-'));
const file = path.join(folder, 'vectors.sqlite');
const next = KIND === 'hashed' ? embeddedTexts() : clusters();
try {
  const store = openStore(file, { role: 'worker', create: true });
  const questions = Array.from({ length: SEARCHES }, () => next('query'));
  const { linked, exact } = fill(store, questions.slice(0, RECALL_SEARCHES));
  await measureIndex(store, questions, { linked, exact });
  measureVec0(store, questions);
  store.close();
} finally {
  fs.rmSync(folder, { recursive: true, force: true });
}

/** Writes the vectors and records the ten nearest of each question. */
function fill(store: SqliteStore, questions: readonly Float32Array[]): { linked: Float32Array[]; exact: number[][] } {
  const index = openStoredIndex(store, SPACE);
  store.db.exec(
    `CREATE VIRTUAL TABLE vec0_codes USING vec0(embedding bit[${DIMENSIONS}], user_no integer, role integer)`,
  );
  const insertVec0 = store.db.prepare(
    'INSERT INTO vec0_codes (rowid, embedding, user_no, role) VALUES (?, vec_bit(?), 0, 0)',
  );
  const best = questions.map((): { vectorNo: number; similarity: number }[] => []);
  const linked: Float32Array[] = [];
  const ms = { index: 0, vec0: 0 };
  for (let first = 1; first <= VECTORS; first += SLICE) {
    const vectors = Array.from({ length: SLICE }, (_, i) => ({ vectorNo: first + i, embedding: next('document') }));
    store.write(() => {
      const begun = performance.now();
      index.add(vectors.map((vector) => ({ ...vector, memory: vector.vectorNo, userNo: 0, role: 'whole' })));
      ms.index += performance.now() - begun;
    });
    store.write(() => {
      const begun = performance.now();
      for (const { vectorNo, embedding } of vectors) insertVec0.run(BigInt(vectorNo), signBits(embedding));
      ms.vec0 += performance.now() - begun;
    });
    for (const [place, question] of questions.entries()) {
      const nearest = best[place]!;
      for (const { vectorNo, embedding } of vectors) {
        const similarity = cosine(question, embedding);
        if (nearest.length === 10 && similarity <= nearest[9]!.similarity) continue;
        nearest.push({ vectorNo, similarity });
        nearest.sort((a, b) => b.similarity - a.similarity);
        nearest.length = Math.min(10, nearest.length);
      }
    }
    if (linked.length < SEARCHES) linked.push(...vectors.slice(0, 10).map(({ embedding }) => embedding));
  }
  report('add_us', (1_000 * ms.index) / VECTORS, { method: 'bit index', vectors: VECTORS, kind: KIND });
  report('add_us', (1_000 * ms.vec0) / VECTORS, { method: 'vec0', vectors: VECTORS, kind: KIND });
  for (const [method, table] of [
    ['bit index', SPACE.encoding === 'int5' ? 'vectors' : 'vector_codes'],
    ['vec0', 'vec0_codes'],
  ] as const) {
    const bytes = store.db.prepare('SELECT sum(pgsize) FROM dbstat WHERE name GLOB ?').pluck().get(`${table}*`);
    report('bytes_per_vector', (bytes as number) / VECTORS, { method, vectors: VECTORS });
  }
  return { linked, exact: best.map((nearest) => nearest.map(({ vectorNo }) => vectorNo)) };
}

async function measureIndex(
  store: SqliteStore,
  questions: readonly Float32Array[],
  { linked, exact }: { readonly linked: readonly Float32Array[]; readonly exact: readonly number[][] },
): Promise<void> {
  const method = 'bit index';
  const before = process.memoryUsage().rss;
  const index: VectorIndex = openBitIndex(store, SPACE);
  let begun = performance.now();
  await index.load();
  report('load_ms', performance.now() - begun, { method, vectors: VECTORS });
  report('rss_mb', (process.memoryUsage().rss - before) / 1e6, { method, vectors: VECTORS });
  const rank = (embedding: Float32Array, k: number): IndexSearch => ({ embedding, purpose: 'rank', k });
  for (const k of [20, 120, 200]) {
    const found: (readonly number[])[] = [];
    const times = questions.map((question) => {
      begun = performance.now();
      found.push(index.search(rank(question, k)));
      return performance.now() - begun;
    });
    reportSearches(method, k, times, recallOf(found, exact));
  }
  const times: number[] = [];
  for (let at = 0; at + LINKED_AT_ONCE <= linked.length; at += LINKED_AT_ONCE) {
    const some = linked.slice(at, at + LINKED_AT_ONCE);
    begun = performance.now();
    index.searchAll(some.map((embedding) => ({ embedding, purpose: 'link', userNo: 0, k: LINKED_AT_ONCE })));
    times.push((performance.now() - begun) / LINKED_AT_ONCE);
  }
  const [least, middle] = [percentile(times, 0), percentile(times, 0.5)];
  report('link_ms', middle, { method, vectors: VECTORS, least });
}

function measureVec0(store: SqliteStore, questions: readonly Float32Array[]): void {
  const search = store.db
    .prepare('SELECT rowid FROM vec0_codes WHERE embedding MATCH vec_bit(?) AND k = ? ORDER BY distance')
    .pluck();
  for (const k of [20, 200]) {
    const times = questions.slice(0, 20).map((question) => {
      const begun = performance.now();
      search.all(signBits(question), BigInt(k));
      return performance.now() - begun;
    });
    reportSearches('vec0', k, times);
  }
}

function reportSearches(method: string, k: number, times: readonly number[], recall?: number): void {
  const [least, middle] = [percentile(times, 0), percentile(times, 0.5)];
  report('search_ms', middle, { method, k, vectors: VECTORS, least, ...(recall === undefined ? {} : { recall }) });
}

function recallOf(found: readonly (readonly number[])[], exact: readonly number[][]): number {
  const shares = exact.map((nearest, i) => nearest.filter((vectorNo) => found[i]!.includes(vectorNo)).length / 10);
  return shares.reduce((sum, share) => sum + share, 0) / shares.length;
}

type NextVector = (purpose: 'query' | 'document') => Float32Array;

function embeddedTexts(): NextVector {
  const embedder = createHashedEmbedder({ dimensions: DIMENSIONS });
  const source = createTextSource(1);
  const random = createRandom(2);
  return (purpose) =>
    embedder.embedOne(purpose === 'query' ? source.sentence() : source.text(60 + Math.floor(160 * random())), purpose);
}

/**
 * 500 topics of 20 subjects each, of very different size, about a common mean: cosines of 0.1 between topics, 0.7
 * within a subject.
 */
function clusters(): NextVector {
  const [topics, subjects] = [500, 20];
  const random = createRandom(3);
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  const direction = () => Float32Array.from({ length: DIMENSIONS }, () => normal() / Math.sqrt(DIMENSIONS));
  const mean = direction();
  const centres = Array.from({ length: topics }, direction);
  const offsets = Array.from({ length: topics * subjects }, direction);
  const noises = Array.from({ length: 200 }, direction);
  return () => {
    const topic = Math.floor(topics ** random()) % topics;
    const [centre, offset] = [centres[topic]!, offsets[topic * subjects + Math.floor(subjects * random())]!];
    const vector = Float32Array.from(mean, (value, i) => 0.3 * value + 0.55 * centre[i]! + 0.4 * offset[i]!);
    for (let count = 0; count < 24; count++) {
      const weight = 0.13 * normal();
      const noise = noises[Math.floor(noises.length * random())]!;
      for (let i = 0; i < DIMENSIONS; i++) vector[i]! += weight * noise[i]!;
    }
    return vector;
  };
}

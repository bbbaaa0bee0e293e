/**
 * Recall and latency of retrieval on public sets, beside raw FTS5 in the same run:
 *
 *     node bench/eval-retrieval.ts PATH [--only locomo] [--dynamics] [--size N] [--vector-weight W]
 *
 * PATH holds the folders that `datasets.ts` reads. Every set gets a file of its own, with all its users. `--dynamics` gives the
 * memories random salience and last use, which must not cost recall; `--size N` fills every file with mixtures of its
 * sentences under the same users until it holds N memories. Prints one JSON line for each set and method.
 */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { createHashedEmbedder } from '../src/engine/adapters/hashed-embedder.ts';
import { createVec0Index, openVec0Index } from '../src/engine/adapters/vec0-index.ts';
import { DAY_MS } from '../src/engine/dynamics.ts';
import { retrieve, type RetrieveContext } from '../src/engine/retrieve/retrieve.ts';
import { silentLogger } from '../src/engine/ports.ts';
import { findModelNumber, modelNumber } from '../src/engine/store/embeddings.ts';
import { readMemories } from '../src/engine/store/memories.ts';
import { openStore, type Store } from '../src/engine/store/open-store.ts';
import { ftsString, indexableText, queryTerms } from '../src/engine/text/index-text.ts';
import type { Hit, MemoryQuery } from '../src/engine/types.ts';
import { seedMemories, type SeedMemory } from '../test/support/seed-store.ts';
import { type EvaluationQuestion, type EvaluationSet, loadEvaluationSets } from './datasets.ts';

const DEPTH = 60;
const NOW = Date.UTC(2024, 0, 1);
const SLICE = 500;

/** Best first: `user key` of each memory found. */
type Search = (question: EvaluationQuestion) => Promise<string[]> | string[];

async function main(): Promise<void> {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: {
      only: { type: 'string' },
      dynamics: { type: 'boolean', default: false },
      size: { type: 'string', default: '0' },
      'vector-weight': { type: 'string' },
      dimensions: { type: 'string', default: '768' },
    },
  });
  const directory = positionals[0];
  if (directory === undefined) throw new Error('usage: node bench/eval-retrieval.ts PATH');
  for (const set of loadEvaluationSets(directory)) {
    if (values.only !== undefined && values.only !== set.name) continue;
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'eval-'));
    try {
      await evaluate(set, path.join(folder, 'set.sqlite'), {
        dynamics: values.dynamics,
        size: Number(values.size),
        dimensions: Number(values.dimensions),
        vectorWeight: values['vector-weight'] === undefined ? undefined : Number(values['vector-weight']),
      });
    } finally {
      fs.rmSync(folder, { recursive: true });
    }
  }
}

interface Options {
  readonly dynamics: boolean;
  readonly size: number;
  readonly dimensions: number;
  readonly vectorWeight: number | undefined;
}

async function evaluate(set: EvaluationSet, file: string, options: Options): Promise<void> {
  const embedder = createHashedEmbedder({ dimensions: options.dimensions });
  const writer = openStore(file, { role: 'worker', create: true });
  const modelNo = writer.write(() => modelNumber(writer, embedder, NOW));
  const index = writer.write(() => createVec0Index(writer, { modelNo, dimensions: embedder.dimensions }));
  const keyOf = new Map<string, string>();
  const rows = memoriesOf(set, options);
  for (let first = 0; first < rows.length; first += SLICE) {
    const slice = rows.slice(first, first + SLICE);
    const seeded = await seedMemories(writer, slice, NOW, { embedder, index });
    for (const [place, { id }] of seeded.entries()) keyOf.set(id, slice[place]!.files![0]!);
  }
  createPlainText(writer, rows);
  writer.db.pragma('wal_checkpoint(TRUNCATE)');
  writer.close();

  const store = openStore(file, { role: 'reader' });
  const context: RetrieveContext = {
    store,
    embedder,
    modelNo: findModelNumber(store, embedder) ?? null,
    index: openVec0Index(store, { modelNo, dimensions: embedder.dimensions }),
    embedQuery: async (text) => (await embedder.embed([text], { purpose: 'query' }))[0] ?? null,
    clock: { now: () => NOW },
    languageModel: null,
    logger: silentLogger,
    defaults: [],
    newId: () => '',
    readMemories,
  };
  const ask = ({ userId, query }: EvaluationQuestion, changes: Partial<MemoryQuery>) =>
    retrieve(context, {
      query,
      k: DEPTH,
      filter: { userIds: [userId] },
      vectorWeight: options.vectorWeight,
      ...changes,
    });
  const engine =
    (changes: Partial<MemoryQuery>): Search =>
    async (question) =>
      (await ask(question, changes)).hits.map((hit) => keyOf.get(hit.memory.id)!);
  const methods: Record<string, Search> = {
    'raw FTS5': plainSearch(store),
    words: engine({ vectorWeight: 0 }),
    composite: engine({}),
    // The order of rank fusion alone: what similarity, salience and recency must not make worse.
    fused: async (question) => {
      const { hits } = await ask(question, { k: 2 * DEPTH, explain: true });
      const rank = (hit: Hit) => hit.explain?.fused?.rank ?? Infinity;
      return hits.toSorted((a, b) => rank(a) - rank(b)).map((hit) => keyOf.get(hit.memory.id)!);
    },
  };
  for (const [method, search] of Object.entries(methods)) {
    console.log(JSON.stringify({ set: set.name, memories: rows.length, method, ...(await measure(set, search)) }));
  }
  store.close();
}

/** `files` carries the key of the memory in its set; it is neither searched nor embedded. */
function memoriesOf(set: EvaluationSet, { dynamics, size }: Options): SeedMemory[] {
  const random = randomNumbers();
  const memories: SeedMemory[] = set.users.flatMap(({ userId, memories: said }) =>
    said.map(({ key, sessionId, content, eventTime }) => ({
      userId,
      sessionId,
      content,
      eventTime: eventTime ?? null,
      files: [key],
    })),
  );
  const originals = memories.length;
  for (let made = originals; made < size; made += 1) {
    const original = memories[made % originals]!;
    const other = memories[Math.floor(random() * originals)]!;
    const content = `${firstPart(original.content, 0.6)} ${firstPart(other.content, 0.5)}`;
    const sessionId = `filler-${Math.floor(made / 20)}`;
    memories.push({ userId: original.userId!, sessionId, content, eventTime: null, files: [`filler ${made}`] });
  }
  if (!dynamics) return memories;
  return memories.map((memory) => ({
    ...memory,
    createdAt: Math.floor(NOW - random() * 365 * DAY_MS),
    salience: random() < 0.2 ? 0.4 + 0.6 * random() : 0.4,
    lastSeenAt: Math.floor(NOW - random() ** 3 * 365 * DAY_MS),
  }));
}

function firstPart(text: string, share: number): string {
  const words = text.includes(' ') ? text.split(' ') : [...text];
  return words.slice(0, Math.ceil(words.length * share)).join(text.includes(' ') ? ' ' : '');
}

/** The floor: one FTS5 column with the same segmentation, the query's words joined by OR, plain BM25. */
function createPlainText(store: Store, rows: readonly SeedMemory[]): void {
  store.db.exec(`CREATE VIRTUAL TABLE plain_text USING fts5
    (content, user UNINDEXED, key UNINDEXED, tokenize = 'porter unicode61 remove_diacritics 2')`);
  store.write(() => {
    const insert = store.prepare('INSERT INTO plain_text (content, user, key) VALUES (?, ?, ?)');
    for (const { content, userId, files } of rows) insert.run(indexableText(content), userId, files![0]);
  });
}

function plainSearch(store: Store): Search {
  const statement = store.db
    .prepare(
      `SELECT key FROM plain_text WHERE plain_text MATCH ? AND user = ? ORDER BY bm25(plain_text) LIMIT ${DEPTH}`,
    )
    .pluck();
  return ({ userId, query }) => {
    const match = queryTerms(query).words.map(ftsString).join(' OR ');
    return match === '' ? [] : (statement.all(match, userId) as string[]);
  };
}

async function measure(set: EvaluationSet, search: Search): Promise<Record<string, number>> {
  const questions = set.questions.filter(({ relevant }) => relevant.size > 0);
  for (const question of questions.slice(0, 100)) await search(question);
  const sums = { 'recall@1': 0, 'recall@10': 0, 'recall@60': 0, 'nDCG@10': 0 };
  const times: number[] = [];
  for (const question of questions) {
    const start = performance.now();
    const found = await search(question);
    times.push(performance.now() - start);
    const recall = (k: number) =>
      found.slice(0, k).filter((key) => question.relevant.has(key)).length / question.relevant.size;
    sums['recall@1'] += recall(1);
    sums['recall@10'] += recall(10);
    sums['recall@60'] += recall(60);
    sums['nDCG@10'] += discountedGain(found.slice(0, 10), question.relevant);
  }
  times.sort((a, b) => a - b);
  const means = Object.entries(sums).map(([name, sum]) => [name, Number((sum / questions.length).toFixed(4))] as const);
  const quantile = (share: number) => Number(times[Math.floor(times.length * share)]!.toFixed(2));
  return { ...Object.fromEntries(means), 'p50 ms': quantile(0.5), 'p95 ms': quantile(0.95) };
}

/** Normalised discounted cumulative gain with relevance 0 or 1. */
function discountedGain(found: readonly string[], relevant: ReadonlySet<string>): number {
  const discount = (place: number) => 1 / Math.log2(place + 2);
  const gain = found.reduce((sum, key, place) => sum + (relevant.has(key) ? discount(place) : 0), 0);
  let ideal = 0;
  for (let place = 0; place < Math.min(10, relevant.size); place += 1) ideal += discount(place);
  return ideal === 0 ? 0 : gain / ideal;
}

/** The same numbers in every run: a linear congruential generator. */
function randomNumbers(): () => number {
  let state = 7;
  return () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return state / 0x80000000;
  };
}

await main();

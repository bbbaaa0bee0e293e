import path from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { createHashedEmbedder } from '../../../src/engine/adapters/hashed-embedder.ts';
import { silentLogger } from '../../../src/engine/ports.ts';
import { NO_PARTS, type SearchedPart, weighParts } from '../../../src/engine/retrieve/parts.ts';
import { retrieve } from '../../../src/engine/retrieve/retrieve.ts';
import { modelNumber } from '../../../src/engine/store/embeddings.ts';
import { readMemories } from '../../../src/engine/store/memories.ts';
import { openStore, type Store } from '../../../src/engine/store/open-store.ts';
import type { QueryResult } from '../../../src/engine/types.ts';
import { seedMemories, type SeedMemory } from '../../support/seed-store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const NOW = Date.UTC(2026, 0, 5);
const embedder = createHashedEmbedder({ dimensions: 256 });

const CRANE = 'The crane at the harbour lifts forty tons';
const PIANO = 'The old piano was tuned by Signor Bassi in April';
const TEXTS: readonly string[] = [
  CRANE,
  PIANO,
  'Ulla painted the fence of the garden green on a warm weekend',
  'The weekend was warm and the garden was full of bees',
  'Bees and a warm garden make a good weekend',
  'My neighbour bought a green bicycle for the weekend',
  'The bicycle of my neighbour has a green bell',
];
const NOISE =
  'The weekend was warm. My neighbour bought a green bicycle with a bell. The garden was full of bees. We painted it.';

describe('a message of several sentences', () => {
  let store: Store;
  let modelNo: number;
  beforeAll(async () => {
    store = openStore(path.join(tempFolder(), 'parts.sqlite'), { role: 'worker', create: true });
    modelNo = store.write(() => modelNumber(store, embedder, NOW));
    const memories = TEXTS.map((content): SeedMemory => ({ content }));
    await seedMemories(store, memories, NOW, { embedder, index: null });
    return () => store.close();
  });
  const ask = (query: string): Promise<QueryResult> =>
    retrieve(
      {
        store,
        embedder,
        modelNo,
        index: null,
        languageModel: null,
        clock: { now: () => NOW },
        defaults: [],
        logger: silentLogger,
        newId: () => 'recall',
        embedQuery: async (text) => embedder.embedOne(text, 'query'),
        readMemories,
      },
      { query, k: 5, filter: {}, explain: true },
    );
  const first = async (query: string, count = 1) =>
    (await ask(query)).hits.slice(0, count).map(({ memory }) => memory.content);
  const noteOf = ({ trace }: QueryResult) => trace!.find(({ stage }) => stage === 'sentences')?.note;

  test.each([
    ['before', `${NOISE} What does the crane lift?`],
    ['after', `What does the crane lift? ${NOISE}`],
    ['without marks', `${NOISE.toLowerCase()} what does the crane lift. ${NOISE.toLowerCase()}`],
    ['without a question word', `${NOISE} The crane at the harbour, how many tons.`],
    ['that begins like a question', 'how was the warm weekend. the crane at the harbour and its tons. thanks'],
  ])('is answered for the sentence that asks: noise %s', async (_, query) => {
    expect(await first(query)).toEqual([CRANE]);
  });

  test('gets the best memory of each question first', async () => {
    const query = `${NOISE} Who painted the fence? Who tuned the piano?`;
    expect(new Set(await first(query, 2))).toEqual(new Set([TEXTS[2], PIANO]));
  });

  test('gets first the memory that answers its own question best', async () => {
    const [unsure, sure] = ['What does the crane do in stormy winter nights?', 'Who tuned the old piano?'];
    for (const query of [`${unsure} ${sure}`, `${sure} ${unsure}`])
      expect(await first(query, 2), query).toEqual([PIANO, CRANE]);
  });

  test('is explained: what weighs how much', async () => {
    expect(noteOf(await ask(`${NOISE} What does the crane lift?`))).toBe(
      'whole message 0.00; of the rest: 1.00 “What does the crane lift?”',
    );
    expect(noteOf(await ask('Who tuned the old piano? Was it Signor Bassi in April?'))).toBe(
      'all sentences are one question',
    );
    expect(noteOf(await ask('Who tuned the piano?'))).toBeUndefined();
  });

  test('is one question where its lines are wrapped', async () => {
    const question = 'Who tuned the old piano that stood beside the crane at the harbour in the warm month of April?';
    const plain = await ask(question);
    const wrapped = await ask(question.replaceAll(' the ', ' the\n'));
    expect(wrapped.hits.map(({ memory, rawScore }) => [memory.id, rawScore])).toEqual(
      plain.hits.map(({ memory, rawScore }) => [memory.id, rawScore]),
    );
  });
});

describe('the weight of the whole message', () => {
  /** Hits with the given BM25, as of terms that together are worth `most`. */
  const found = (most: number, hits: Readonly<Record<number, number>>) => ({
    hits: Object.entries(hits)
      .map(([memoryNo, bm25]) => ({ memoryNo: Number(memoryNo), bm25, coverage: bm25 / most }))
      .sort((a, b) => b.bm25 - a.bm25),
    note: '',
  });
  const part = (most: number, hits: Readonly<Record<number, number>>, asks = true) =>
    ({ plan: {}, lexical: found(most, hits), asks }) as unknown as SearchedPart;

  const asked = (areMarked: boolean, others = 4) => ({ areMarked, others });

  test.each([
    ['foreign sentences: nothing of them stands in the best memory', { 1: 4, 2: 5 }, 0],
    ['one thing: the best memory holds half of the other sentences', { 1: 7, 2: 5 }, 1],
    ['between them it rises', { 1: 5.08, 2: 5 }, 0.5],
  ])('%s', (_, whole, expected) => {
    expect(weighParts(found(10, whole), [part(4, { 1: 4 })], asked(true)).whole).toBeCloseTo(expected, 10);
  });

  test('is half at least where a single sentence stands beside the one that asks', () => {
    const weigh = (others: number) => weighParts(found(10, { 1: 4, 2: 5 }), [part(4, { 1: 4 })], asked(true, others));
    expect([weigh(1).whole, weigh(2).whole]).toEqual([0.5, 0]);
    const two = [part(4, { 1: 4 }), part(4, { 1: 4 })];
    expect(weighParts(found(10, { 1: 4, 2: 5 }), two, asked(true, 1)).whole).toBe(0);
  });

  test('is all where no part finds anything', () => {
    expect(weighParts(found(10, { 1: 4 }), [part(4, {})], asked(true))).toBe(NO_PARTS);
  });

  test('a part without a mark counts by what the file has to say about it, less without a question word; four are kept', () => {
    const parts = [part(4, { 1: 1 }), part(4, { 2: 4 }), part(4, { 3: 2 })];
    expect(weighParts(found(30, { 2: 4 }), parts, asked(false)).parts.map(({ weight }) => weight)).toEqual([
      1, 0.5, 0.25,
    ]);
    expect(weighParts(found(30, { 2: 4 }), parts, asked(true)).parts.map(({ weight }) => weight)).toEqual([1, 1, 1]);
    const weights = (most: number) =>
      weighParts(found(30, { 2: 4 }), [part(4, { 1: 1 }), part(4, { 2: most }, false)], asked(false)).parts.map(
        ({ weight }) => weight,
      );
    expect(weights(1.9)).toEqual([1]);
    expect(weights(4)).toEqual([1, 0.5]);
    const six = Array.from({ length: 6 }, () => part(4, { 1: 1 }));
    expect(weighParts(found(30, { 2: 4 }), six, asked(true)).parts).toHaveLength(4);
  });
});

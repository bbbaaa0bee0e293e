import path from 'node:path';
import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { createHashedEmbedder } from '../../../src/engine/adapters/hashed-embedder.ts';
import { openBitIndex } from '../../../src/engine/adapters/bit-index/bit-index.ts';
import { DAY_MS } from '../../../src/engine/dynamics.ts';
import { silentLogger, type VectorIndex } from '../../../src/engine/ports.ts';
import { NARROW_SCOPE } from '../../../src/engine/retrieve/plan.ts';
import { retrieve, type RetrieveContext } from '../../../src/engine/retrieve/retrieve.ts';
import { modelNumber } from '../../../src/engine/store/embeddings.ts';
import { readMemories } from '../../../src/engine/store/memories.ts';
import { openStore, type Store } from '../../../src/engine/store/open-store.ts';
import { estimateTokens } from '../../../src/engine/text/tokens.ts';
import { type Features, type MemoryQuery, PROFILES, type QueryResult } from '../../../src/engine/types.ts';
import { type Seeded, seedEdge, seedMemories, type SeedMemory } from '../../support/seed-store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const NOW = Date.UTC(2025, 0, 1);
const DIMENSIONS = 256;
const embedder = createHashedEmbedder({ dimensions: DIMENSIONS });

const DIARY: readonly SeedMemory[] = [
  { content: 'Maria adopted a grey kitten called Biscuit from the shelter', userId: 'ann' },
  { content: 'The kitchen tap leaks and the plumber comes on Tuesday', userId: 'ann' },
  { content: 'Maria started a pottery class at the community centre', userId: 'ann' },
  { content: 'Error E1234 appears when src/userName.ts is compiled with C++ bindings', userId: 'ann' },
  { content: '她在东京都的一家咖啡馆工作', userId: 'ann' },
  { content: 'Bob keeps a kitten called Pepper', userId: 'bob' },
  { content: 'Where did you get it?', userId: 'ann', sessionId: 'chat' },
  { content: 'From my aunt in Lisbon', userId: 'ann', sessionId: 'chat' },
  { content: 'the kitten named Biscuit was sold', userId: 'ann', status: 'superseded' },
  { content: 'the kitten named Biscuit has a cold', userId: 'ann', expiresAt: NOW },
];

describe('a query over a diary', () => {
  const diary = storeOf(DIARY);

  test.each<[string, string, string]>([
    // query, first hit, why
    [
      'Who adopted a kitten?',
      'Maria adopted a grey kitten called Biscuit from the shelter',
      'both rare words stand in it',
    ],
    [
      'What is the name of Maria’s cat, Biscuit?',
      'Maria adopted a grey kitten called Biscuit from the shelter',
      'a rare name beats a frequent one',
    ],
    ['plumber tuesday', 'The kitchen tap leaks and the plumber comes on Tuesday', 'words need not be neighbours'],
    ['"pottery class"', 'Maria started a pottery class at the community centre', 'a phrase stays a phrase'],
    [
      'user_name',
      'Error E1234 appears when src/userName.ts is compiled with C++ bindings',
      'an identifier is the same however it is written',
    ],
    ['E1234', 'Error E1234 appears when src/userName.ts is compiled with C++ bindings', 'a code is a word'],
    ['东京的咖啡', '她在东京都的一家咖啡馆工作', 'pairs of characters stand for words'],
    [
      'adoptde kiten shelter',
      'Maria adopted a grey kitten called Biscuit from the shelter',
      'one right word and letter triples',
    ],
  ])('%s', async (query, expected) => {
    const { hits } = await diary.ask({ query, filter: { userIds: ['ann'] } });
    expect(hits[0]!.memory.content).toBe(expected);
  });

  test('finds a reply by the words of what it replies to, below its own words', async () => {
    const { hits } = await diary.ask({ query: 'where did you get it' });
    // The first is the question itself; the answer has none of the words but their context.
    expect(hits.map(({ memory }) => memory.content).slice(0, 2)).toEqual([
      'Where did you get it?',
      'From my aunt in Lisbon',
    ]);
  });

  test('never shows what its filter leaves out, nor lets it take a place', async () => {
    const { hits } = await diary.ask({ query: 'kitten Biscuit Pepper', k: 1, filter: { userIds: ['bob'] } });
    expect(hits.map(({ memory }) => memory.content)).toEqual(['Bob keeps a kitten called Pepper']);
    const all = await diary.ask({ query: 'kitten Biscuit', k: 200 });
    expect(all.hits.map(({ memory }) => memory.content)).not.toContain('the kitten named Biscuit was sold');
    expect(all.hits.map(({ memory }) => memory.content)).not.toContain('the kitten named Biscuit has a cold');
  });

  test('shows a superseded memory to one who asks for it', async () => {
    const { hits } = await diary.ask({ query: 'kitten', filter: { statuses: ['superseded'] } });
    expect(hits.map(({ memory }) => memory.content)).toEqual(['the kitten named Biscuit was sold']);
  });

  test('says which words, ranks and features made a hit', async () => {
    const { hits, trace } = await diary.ask({ query: 'adopted kitten', explain: true });
    const { explain, rawScore } = hits[0]!;
    expect(explain).toMatchObject({
      lexical: { rank: 1 },
      dense: { rank: 1, window: 0 },
      fused: { rank: 1 },
      arrival: null,
      profile: 'composite',
    });
    expect(explain!.terms).toEqual(['adopted', 'kitten']);
    const { features, weights, adjustments } = explain!;
    const sum = Object.entries(weights).reduce(
      (total, [name, weight]) => total + weight * features[name as keyof typeof features],
      0,
    );
    expect(rawScore).toBeCloseTo(
      adjustments.reduce((product, { factor }) => product * factor, sum),
      12,
    );
    expect(trace!.map(({ stage }) => stage)).toEqual([
      'embed',
      'plan',
      'lexical',
      'dense',
      'fuse',
      'expand',
      'entities',
      'score',
      'resolve',
      'rerank',
      'calibrate',
      'floor',
      'pack',
    ]);
  });

  test('answers from words alone, and says so, when the provider failed', async () => {
    const failed = await diary.ask({ query: 'plumber' }, { embedQuery: async () => null });
    expect(failed.degraded).toBe(true);
    expect(failed.hits.map(({ memory }) => memory.content)).toEqual([
      'The kitchen tap leaks and the plumber comes on Tuesday',
    ]);
  });

  test.each<[string, Partial<RetrieveContext>, Partial<MemoryQuery>]>([
    ['no embedder is configured', { embedder: null }, {}],
    ['nothing has a vector yet', { modelNo: null }, {}],
    ['the query asks for words only', {}, { vectorWeight: 0 }],
  ])('is not degraded and asks for no vector when %s', async (_, context, query) => {
    const embedQuery = () => Promise.reject(new Error('asked for a vector'));
    const result = await diary.ask({ query: 'plumber', ...query }, { ...context, embedQuery });
    expect(result.degraded).toBe(false);
    expect(result.hits).toHaveLength(1);
  });

  test('finds nothing where neither words nor vectors do', async () => {
    const result = await diary.ask({ query: 'xylophone', vectorWeight: 0 });
    expect(result).toMatchObject({ hits: [], degraded: false });
  });

  test('leaves out what is under the least score', async () => {
    const { hits } = await diary.ask({ query: 'Maria kitten', k: 200 });
    const least = hits[1]!.score;
    const kept = await diary.ask({ query: 'Maria kitten', k: 200, minScore: least });
    expect(kept.hits).toEqual(hits.filter(({ score }) => score >= least));
    expect(kept.hits.length).toBeLessThan(hits.length);
  });

  test('skips what does not fit the token budget and goes on', async () => {
    const all = await diary.ask({ query: 'Maria kitten pottery plumber', k: 200 });
    const cost = (result: QueryResult) =>
      result.hits.reduce((sum, { memory }) => sum + estimateTokens(memory.content), 0);
    const costs = all.hits.map(({ memory }) => estimateTokens(memory.content));
    for (const tokenBudget of [1, Math.min(...costs), 15, 30, 50]) {
      const packed = await diary.ask({ query: 'Maria kitten pottery plumber', k: 200, tokenBudget });
      expect(cost(packed)).toBeLessThanOrEqual(tokenBudget);
      // Whatever was left out had no room when its turn came.
      if (tokenBudget >= Math.min(...costs)) expect(packed.hits.length).toBeGreaterThan(0);
    }
  });

  test('takes any text as a query, scores in 0..1 and answers twice alike', async () => {
    await fc.assert(
      fc.asyncProperty(hostileQuery, fc.constantFrom(...PROFILES), async (query, profile) => {
        const result = await diary.ask({ query, profile, k: 5, explain: true });
        for (const { score, explain } of result.hits) {
          for (const value of [score, ...Object.values(explain!.features)]) {
            expect(value >= 0 && value <= 1).toBe(true);
          }
        }
        expect((await diary.ask({ query, profile, k: 5, explain: true })).hits).toEqual(result.hits);
      }),
      { numRuns: 300 },
    );
  });

  test.each([
    // Each profile reads weights of its own, and the value of a hit follows from them and the features alone.
    ['composite', ['similarity', 'salience', 'recency', 'waypoint']],
    ['activation', ['activation', 'recency', 'strength', 'confidence']],
    ['retention', ['alpha']],
    ['fusion', []],
  ] as const)('explains the profile %s with the weights that it reads', async (profile, names) => {
    const { hits } = await diary.ask({ query: 'adopted kitten', profile, rerank: 'none', explain: true });
    expect(hits[0]!.memory.content).toBe('Maria adopted a grey kitten called Biscuit from the shelter');
    for (const { rawScore, explain } of hits) {
      expect(explain!.profile).toBe(profile);
      expect(Object.keys(explain!.weights)).toEqual(names);
      const { features, weights, fused } = explain!;
      const sum = names.reduce((total, name) => total + weights[name]! * (features[name as keyof Features] ?? 0), 0);
      const value = {
        composite: sum,
        activation: sum,
        retention: features.similarity * features.retention ** 0.3,
        fusion: fused!.score,
      }[profile];
      const adjusted = explain!.adjustments.reduce((product, { factor }) => product * factor, value);
      expect(rawScore).toBeCloseTo(adjusted, 12);
    }
  });

  test('refuses a weight that the profile does not read', async () => {
    await expect(diary.ask({ query: 'kitten', profile: 'fusion', weights: { recency: 1 } })).rejects.toThrow(
      'weights: the profile fusion does not read recency; allowed: none',
    );
  });

  test('takes what it does not say from the defaults, the first before the second', async () => {
    const defaults = [{ profile: 'retention' }, { profile: 'fusion', weights: { alpha: 0 } }] as const;
    const { hits } = await diary.ask({ query: 'kitten', explain: true }, { defaults });
    expect(hits[0]!.explain).toMatchObject({ profile: 'retention', weights: { alpha: 0 } });
    const asked = await diary.ask({ query: 'kitten', profile: 'composite', explain: true }, { defaults });
    expect(asked.hits[0]!.explain!.profile).toBe('composite');
  });

  test('stops when its signal was aborted', async () => {
    const aborted = AbortSignal.abort(new Error('gone'));
    await expect(retrieve(diary.context(), { query: 'kitten', k: 1, filter: {} }, aborted)).rejects.toThrow('gone');
  });
});

describe('links', () => {
  const linked = storeOf(
    [
      { content: 'harbour festival' },
      { content: 'fireworks over the pier' },
      { content: 'hidden fireworks', status: 'archived' },
      { content: 'someone denies it' },
      { content: 'two hops away' },
    ],
    (store, [festival, fireworks, hidden, denial, far]) => {
      seedEdge(store, { src: fireworks!.memoryNo, dst: festival!.memoryNo, weight: 0.8 });
      seedEdge(store, { src: festival!.memoryNo, dst: hidden!.memoryNo, weight: 1 });
      seedEdge(store, { src: festival!.memoryNo, dst: denial!.memoryNo, weight: 1, type: 'contradicts' });
      seedEdge(store, { src: fireworks!.memoryNo, dst: far!.memoryNo, weight: 1 });
    },
  );

  test('bring a neighbour that shares no word, against their direction too, with the way it came', async () => {
    const { hits } = await linked.ask({ query: 'harbour festival', vectorWeight: 0, maxHops: 1, explain: true });
    const [festival, fireworks] = hits.map(({ memory }) => memory.id);
    expect(hits.map(({ memory }) => memory.content)).toEqual(['harbour festival', 'fireworks over the pier']);
    expect(hits[1]!.path).toEqual([festival, fireworks]);
    expect(hits[1]!.explain!.arrival).toEqual({
      from: festival,
      via: 'waypoint',
      weight: 0.8,
      hops: 1,
      activation: 0.4,
    });
    expect(hits[1]!.explain!.features.waypoint).toBe(0.4);
  });

  test('bring what lies two hops away, weaker and with its whole path, unless one hop was asked for', async () => {
    const { hits } = await linked.ask({ query: 'harbour festival', vectorWeight: 0, explain: true });
    expect(hits.map(({ memory }) => memory.content)).toEqual([
      'harbour festival',
      'fireworks over the pier',
      'two hops away',
    ]);
    const [festival, fireworks, far] = hits.map(({ memory }) => memory.id);
    expect(hits[2]!.path).toEqual([festival, fireworks, far]);
    expect(hits[2]!.explain!.arrival).toEqual({
      from: fireworks,
      via: 'waypoint',
      weight: 1,
      hops: 2,
      activation: 0.2,
    });
  });

  test('weaken by the decay that the query names', async () => {
    const { hits } = await linked.ask({ query: 'harbour festival', vectorWeight: 0, decayPerHop: 1, explain: true });
    expect(hits.map(({ explain }) => explain!.features.waypoint)).toEqual([0, 0.8, 0.8]);
  });

  test.each(['activation', 'fusion'] as const)('count as activation in the profile %s', async (profile) => {
    const { hits } = await linked.ask({ query: 'harbour festival', vectorWeight: 0, profile, explain: true });
    expect(hits.map(({ explain }) => explain!.features.activation)).toEqual([1, 0.4, 0.2]);
  });

  test('bring nothing with no hops', async () => {
    const { hits } = await linked.ask({ query: 'harbour festival', vectorWeight: 0, maxHops: 0 });
    expect(hits.map(({ memory }) => memory.content)).toEqual(['harbour festival']);
  });
});

describe('salience and recency', () => {
  const aged = storeOf([
    { content: 'the boiler was serviced in the cellar by Ruth', createdAt: NOW - 300 * DAY_MS, salience: 0.1 },
    { content: 'the boiler is loud', salience: 1 },
    { content: 'Otto painted the fence green', createdAt: NOW - 90 * DAY_MS },
    { content: 'Otto painted the fence white', createdAt: NOW - DAY_MS },
  ]);

  test('do not bury a clearly better match', async () => {
    const { hits } = await aged.ask({ query: 'Who serviced the boiler in the cellar?' });
    // Three of three words against one; the other is fresh and as salient as can be.
    expect(hits[0]!.memory.content).toBe('the boiler was serviced in the cellar by Ruth');
  });

  test('decide between equals', async () => {
    const { hits } = await aged.ask({ query: 'Otto painted fence', vectorWeight: 0 });
    expect(hits.map(({ memory }) => memory.content)).toEqual([
      'Otto painted the fence white',
      'Otto painted the fence green',
    ]);
  });

  test('weigh what the query says', async () => {
    const weights = { similarity: 0, salience: 1, recency: 0, waypoint: 0 };
    const { hits } = await aged.ask({ query: 'serviced boiler', weights });
    expect(hits[0]!.memory.content).toBe('the boiler is loud');
  });
});

describe('a scope too large to look at each memory', () => {
  const topics = ['garden', 'engine', 'bread', 'violin', 'harbour', 'passport', 'glacier', 'lantern'];
  const crowd = storeOf([
    ...Array.from({ length: NARROW_SCOPE + 600 }, (_, number): SeedMemory => {
      const topic = topics[number % topics.length]!;
      return {
        content: `note ${number} about the ${topic} at home`,
        userId: 'many',
        tags: number % 500 === 0 ? ['rare'] : [],
      };
    }),
    { content: 'the ferryman sings at dawn', userId: 'many' },
    { content: 'the ferryman sleeps at home', userId: 'other' },
  ]);

  test('is searched by its rare words and by the index', async () => {
    const { hits, trace } = await crowd.ask({
      query: 'note about the ferryman at home',
      filter: { userIds: ['many'] },
      explain: true,
    });
    // The one rare word puts it first, and since that word finds no more, the next filled the list.
    expect(hits[0]!.memory.content).toBe('the ferryman sings at dawn');
    expect(hits).toHaveLength(10);
    const notes = Object.fromEntries(trace!.map(({ stage, note }) => [stage, note]));
    expect(notes['lexical']).toContain('gave the candidates');
    expect(notes['dense']).toContain('index');
  });

  test('still answers when every word is common', async () => {
    const { hits } = await crowd.ask({ query: 'note about home', filter: { userIds: ['many'] }, k: 5 });
    expect(hits).toHaveLength(5);
  });

  test('gives the few that pass a filter, however many are nearer', async () => {
    const { hits } = await crowd.ask({ query: 'note about the bread at home', filter: { tags: ['rare'] }, k: 50 });
    expect(hits.map(({ memory }) => memory.content).toSorted()).toEqual(
      [0, 500, 1000, 1500, 2000, 2500]
        .map((number) => `note ${number} about the ${topics[number % topics.length]} at home`)
        .toSorted(),
    );
  });

  test('keeps users apart in words and vectors', async () => {
    const { hits } = await crowd.ask({ query: 'ferryman at home', filter: { userIds: ['many'] }, k: 200 });
    expect(new Set(hits.map(({ memory }) => memory.userId))).toEqual(new Set(['many']));
  });
});

const hostileQuery = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 200 }),
  fc.string({ unit: 'grapheme', maxLength: 60 }),
  fc
    .array(
      fc.constantFrom(
        'C++',
        'a-b',
        'foo.bar',
        '"',
        '""',
        "'",
        '*',
        '^',
        '(',
        ')',
        'NEAR(',
        'NEAR/2',
        'AND',
        'OR',
        'NOT',
        'content:',
        'title :',
        '{content}',
        '-',
        '+',
        ';--',
        '\u0000',
        '\uD800',
        '%',
        '_',
        '\\',
        'kitten',
        '“Maria',
        '東京',
        '👩‍👩‍👧',
        '𝔪𝔞𝔯𝔦𝔞',
        '\u0301'.repeat(40),
        'x'.repeat(3_000),
      ),
      { minLength: 1, maxLength: 30 },
    )
    .map((parts) => parts.join(' ')),
);

interface Asked {
  ask(query: Partial<MemoryQuery> & { query: string }, changes?: Partial<RetrieveContext>): Promise<QueryResult>;
  context(): RetrieveContext;
}

/** A file with these memories, finished with vectors and index, and a way to ask it. */
function storeOf(memories: readonly SeedMemory[], link?: (store: Store, seeded: readonly Seeded[]) => void): Asked {
  let store: Store;
  let modelNo: number;
  let index: VectorIndex;
  beforeAll(async () => {
    store = openStore(path.join(tempFolder(), 'retrieve.sqlite'), { role: 'worker', create: true });
    modelNo = store.write(() => modelNumber(store, embedder, NOW));
    index = openBitIndex(store, { modelNo, dimensions: DIMENSIONS, encoding: embedder.encoding });
    const seeded = await seedMemories(store, memories, NOW, { embedder, index });
    store.write(() => link?.(store, seeded));
    return () => store.close();
  });
  const context = (): RetrieveContext => ({
    store,
    embedder,
    modelNo,
    index,
    embedQuery: async (text) => embedder.embedOne(text, 'query'),
    clock: { now: () => NOW },
    languageModel: null,
    logger: silentLogger,
    defaults: [],
    newId: () => 'recall',
    readMemories,
  });
  return {
    context,
    ask: (query, changes) => retrieve({ ...context(), ...changes }, { k: 10, filter: {}, ...query }),
  };
}

import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DAY_MS } from '../../../src/engine/dynamics.ts';
import type { Candidate } from '../../../src/engine/retrieve/candidate.ts';
import { planQuery, type QueryPlan } from '../../../src/engine/retrieve/plan.ts';
import { rerank, type RerankFeatures } from '../../../src/engine/retrieve/rerank.ts';
import { openStore, type Store } from '../../../src/engine/store/open-store.ts';
import { readRankingRows } from '../../../src/engine/store/ranking-rows.ts';
import { seedMemories, type SeedMemory } from '../../support/seed-store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const NOW = Date.UTC(2026, 0, 5);

interface Reranked {
  readonly content: string;
  readonly features: RerankFeatures;
  readonly factor: number;
}

function openFile(): Store {
  return openStore(path.join(tempFolder(), 'rerank.sqlite'), { role: 'worker', create: true });
}

/**
 * The memories in the order given, all with the same raw score but for a trace that keeps the order, reranked for a
 * query.
 */
function planOf(store: Store, query: string): QueryPlan {
  return planQuery(store, { query, k: 10, filter: {} }, NOW);
}

interface RankOptions {
  /** The sentences of the query that ask. */
  readonly sentences?: readonly string[];
  /** The sentence that each memory fits best, from 1; 0 for the whole query. */
  readonly parts?: readonly number[];
}

async function rank(
  query: string,
  memories: readonly (string | SeedMemory)[],
  { sentences = [], parts = [] }: RankOptions = {},
): Promise<Reranked[]> {
  const store = openFile();
  const seeds = memories.map((memory) => (typeof memory === 'string' ? { content: memory } : memory));
  const seeded = await seedMemories(store, seeds, NOW);
  const contents = new Map(seeded.map(({ memoryNo }, place) => [memoryNo, seeds[place]!.content]));
  const reranked = rerank(
    candidatesOf(
      store,
      seeded.map(({ memoryNo }) => memoryNo),
    ).map((candidate, place) => ({
      ...candidate,
      fit: { ...candidate.fit, part: parts[place] ?? 0 },
    })),
    planOf(store, query),
    sentences.map((sentence) => planOf(store, sentence)),
  );
  store.close();
  return reranked.map(({ row, rerank: features, adjustments }) => ({
    content: contents.get(row.memoryNo)!,
    features: features as unknown as RerankFeatures,
    factor: adjustments.find(({ by }) => by === 'rerank')?.factor ?? 1,
  }));
}

function candidatesOf(store: Store, memoryNos: readonly number[]): Candidate[] {
  const rows = new Map(readRankingRows(store, memoryNos).map((row) => [row.memoryNo, row]));
  return memoryNos.map(
    (memoryNo, place) =>
      ({
        row: rows.get(memoryNo)!,
        rawScore: 0.5 - place * 1e-6,
        adjustments: [],
        rerank: null,
        fit: { coverage: 0, cosine: null },
      }) as unknown as Candidate,
  );
}

const order = (ranked: readonly Reranked[]) => ranked.map(({ content }) => content);
const of = (ranked: readonly Reranked[], content: string) => ranked.find((found) => found.content === content)!;

describe('the words of the text itself', () => {
  test('move no text, since the index has counted them', async () => {
    const ranked = await rank('ferry repair', ['The harbour is calm', 'A ferry', 'The ferries stop for repairs']);
    expect(ranked.map(({ factor }) => factor)).toEqual([1, 1, 1]);
  });

  test('are identifiers as they are written', async () => {
    const [whole, parts] = ['call parseHeader before the body', 'the header is what you parse first'];
    const ranked = await rank('parseHeader', [parts, whole]);
    expect(order(ranked)).toEqual([whole, parts]);
    expect(of(ranked, whole).features.identifiers).toBe(1);
    expect(of(ranked, parts).features.identifiers).toBe(0);
  });

  test('are compared with the sentence that the memory answers', async () => {
    const sentences = ['Where is parseHeader?', 'Where is readBody?'];
    const memories = ['parseHeader is in head.ts', 'readBody is in body.ts', 'see parseHeader'];
    const ranked = await rank(sentences.join(' '), memories, { sentences, parts: [1, 2, 0] });
    expect(ranked.map(({ features }) => features.identifiers)).toEqual([1, 1, 0.5]);
  });

  test('count as a phrase where the query quotes one', async () => {
    const [phrase, scattered] = ['she read Nothing is Impossible twice', 'nothing she read is impossible'];
    const ranked = await rank('read "nothing is impossible"', [scattered, phrase]);
    expect(order(ranked)).toEqual([phrase, scattered]);
    expect(of(ranked, phrase).features.phrases).toBe(1);
    expect(of(ranked, scattered).features.phrases).toBe(0);
  });

  test('count for more in title, entities and tags', async () => {
    const plain = { content: 'about the ferry' };
    const titled = { content: 'about the  ferry', title: 'Ferry' };
    const tagged = { content: 'about  the ferry', tags: ['ferry'] };
    const named = { content: 'about  the  ferry', entities: ['Ferry'] };
    const ranked = await rank('ferry', [plain, titled, tagged, named]);
    expect(ranked.at(-1)!.content).toBe(plain.content);
    expect(ranked.map(({ features }) => features.fields)).toEqual([1, 1, 1, 0]);
  });
});

describe('who speaks', () => {
  const chat = [
    'Caroline: Your pottery is lovely!',
    'Melanie: My pottery class starts on Monday.',
    'Caroline: I would love to join.',
    'Melanie: You should!',
  ];

  test('comes first where the query names one: what is asked about somebody, he tells himself', async () => {
    const ranked = await rank('When does the pottery class of Melanie start?', chat);
    expect(ranked.map(({ features }) => features.speaker)).toEqual([1, 1, 0, 0]);
    expect(ranked[0]!.content).toBe(chat[1]);
  });

  test('says nothing where the query names none or all', async () => {
    for (const query of ['When does the pottery class start?', 'Did Caroline and Melanie talk about pottery?']) {
      const ranked = await rank(query, chat);
      expect(new Set(ranked.map(({ features }) => features.speaker)).size).toBe(1);
    }
  });

  test('is no heading that stands once', async () => {
    const ranked = await rank('a note about boilers', ['Boilers: a note', 'Turbines: a note about boilers']);
    expect(ranked.map(({ features }) => features.speaker)).toEqual([0.5, 0.5]);
  });

  test('is known in Chinese, too', async () => {
    const chinese = ['小红：我喜欢游泳', '小明：我喜欢爬山', '小红：周末见', '小明：好的'];
    const ranked = await rank('小明喜欢什么运动', chinese);
    expect(ranked[0]!.content).toBe(chinese[1]);
    expect(ranked.map(({ features }) => features.speaker)).toEqual([1, 1, 0, 0]);
  });
});

describe('what a text does', () => {
  test('a question answers less than a statement', async () => {
    const [asks, tells] = ['Did you paint the boat?', 'I did paint the boat.'];
    const ranked = await rank('who did paint the boat', [asks, tells]);
    expect(order(ranked)).toEqual([tells, asks]);
    expect(of(ranked, asks).features.statement).toBe(0);
    expect(of(ranked, tells).features.statement).toBe(1);
  });

  test('a question mark inside an address asks nothing', async () => {
    const [link] = await rank('boat', ['the boat is at https://boats.example/find?name=boat&page=2 in blue']);
    expect(link!.features.statement).toBe(1);
  });

  test('a text that names a time comes first where one is asked for', async () => {
    const [dated, undated] = ['We painted the boat last Friday', 'We painted the boat in blue'];
    expect(order(await rank('When did they paint the boat?', [undated, dated]))).toEqual([dated, undated]);
    expect(order(await rank('Who painted the boat?', [undated, dated]))).toEqual([undated, dated]);
    const [昨天, 蓝色] = ['昨天我们给船刷漆', '我们给船刷了蓝色的漆'];
    expect(order(await rank('什么时候给船刷漆？', [蓝色, 昨天]))).toEqual([昨天, 蓝色]);
  });

  test('the newest comes first where the latest is asked for, and only there', async () => {
    const old = { content: 'the boat is blue now', eventTime: NOW - 300 * DAY_MS };
    const fresh = { content: 'the boat is green now', eventTime: NOW };
    const latest = await rank('latest colour of the boat', [old, fresh]);
    expect(order(latest)).toEqual([fresh.content, old.content]);
    // Ten percent up for the newest, at most ten down for the oldest.
    const shift = (found: Reranked) => 0.2 * (found.features.recency - 0.5);
    expect(shift(latest[0]!)).toBeCloseTo(0.1);
    expect(shift(latest[1]!)).toBeGreaterThanOrEqual(-0.1);
    expect(order(await rank('colour of the boat', [old, fresh]))).toEqual([old.content, fresh.content]);
  });
});

describe('its bounds', () => {
  const anything = fc.array(
    fc.record({
      content: fc.oneof(
        fc.string({ unit: 'grapheme', minLength: 1, maxLength: 80 }),
        fc.constantFrom('Ann: where? when?', 'Ann: yesterday', 'Bob: “x”', 'a'.repeat(5_000), '?'.repeat(5_000)),
      ),
      title: fc.constantFrom('', 'boat', '船'),
      tags: fc.constantFrom([], ['boat']),
    }),
    { minLength: 1, maxLength: 50 },
  );

  test('every feature lies in 0..1 and every factor in 0.8..1.25, whatever the texts and the query', async () => {
    const store = openFile();
    await fc.assert(
      fc.asyncProperty(
        anything,
        fc.oneof(
          fc.string({ unit: 'grapheme', maxLength: 60 }),
          fc.constantFrom('latest boat of Ann', 'when "boat"', '?'),
        ),
        async (memories, query) => {
          const memoryNos = (await seedMemories(store, memories, NOW)).map(({ memoryNo }) => memoryNo);
          const reranked = rerank(candidatesOf(store, memoryNos), planOf(store, query));
          expect(reranked.map(({ row }) => row.memoryNo).toSorted((a, b) => a - b)).toEqual(memoryNos);
          for (const { rerank: features, rawScore } of reranked) {
            for (const value of Object.values(features ?? {})) {
              expect(value).toBeGreaterThanOrEqual(0);
              expect(value).toBeLessThanOrEqual(1);
            }
            expect(rawScore).toBeGreaterThanOrEqual(0.4 - 1e-3);
            expect(rawScore).toBeLessThanOrEqual(0.625);
          }
          expect(reranked.map(({ rawScore }) => rawScore)).toEqual(
            reranked.map(({ rawScore }) => rawScore).toSorted((a, b) => b - a),
          );
        },
      ),
      { numRuns: 40 },
    );
    store.close();
  });

  test('what fits far better stays before what only reads better', async () => {
    const store = openFile();
    const memoryNos = (
      await seedMemories(store, [{ content: 'Where is it?' }, { content: 'the ferry repair' }], NOW)
    ).map(({ memoryNo }) => memoryNo);
    const [first, second] = candidatesOf(store, memoryNos) as [Candidate, Candidate];
    const reranked = rerank([{ ...first, rawScore: 0.9 }, second], planOf(store, 'ferry repair'));
    store.close();
    expect(reranked[0]!.row.memoryNo).toBe(memoryNos[0]);
  });

  test('the first 24 are looked at, those behind them keep their scores', async () => {
    const store = openFile();
    const memories = Array.from({ length: 45 }, (_, number) => ({ content: `ferry ${number}` }));
    const memoryNos = (await seedMemories(store, memories, NOW)).map(({ memoryNo }) => memoryNo);
    const reranked = rerank(candidatesOf(store, memoryNos), planOf(store, 'ferry'));
    store.close();
    expect(reranked.filter(({ rerank: features }) => features === null).map(({ row }) => row.memoryNo)).toEqual(
      memoryNos.slice(24),
    );
  });
});

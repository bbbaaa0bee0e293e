import path from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { createHashedEmbedder } from '../../../src/engine/adapters/hashed-embedder.ts';
import { silentLogger } from '../../../src/engine/ports.ts';
import { retrieve } from '../../../src/engine/retrieve/retrieve.ts';
import { modelNumber } from '../../../src/engine/store/embeddings.ts';
import { readMemories } from '../../../src/engine/store/memories.ts';
import { openStore, type Store } from '../../../src/engine/store/open-store.ts';
import { seedMemories, type SeedMemory } from '../../support/seed-store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const NOW = Date.UTC(2025, 0, 1);
const embedder = createHashedEmbedder({ dimensions: 256 });

describe('answers and dates in a chat', () => {
  const at = (time: string) => ({ eventTime: Date.parse(time), userId: 'eve' });
  const chat = storeOf([
    { content: 'Ann: How often do you go swimming?', sessionId: 'pool', ...at('2024-03-01T10:00') },
    { content: 'Eve: Three times a week', sessionId: 'pool', ...at('2024-03-01T10:01') },
    { content: 'Ann: I would go swimming more often', sessionId: 'lake', ...at('2024-03-02T10:00') },
    { content: 'Eve: Mostly on Sundays', sessionId: 'lake', ...at('2024-03-02T10:01') },
    { content: 'Eve: I baked bread with rye for the guests', sessionId: 'bread', ...at('2024-06-03T18:00') },
    { content: 'Eve: I baked bread with rye and seeds', sessionId: 'seeds', ...at('2024-08-03T18:00') },
    {
      content: 'Eve: The birthday cake for the guests in August is ordered',
      sessionId: 'otto',
      ...at('2024-02-01T18:00'),
    },
    { content: 'Ann: The birthday cake and the guests were late', sessionId: 'loud', ...at('2024-08-09T18:00') },
  ]);
  const contents = async (query: string) => {
    const { hits } = await chat.ask(query);
    return hits.map(({ memory }) => memory.content);
  };

  test('an answer has the words of its question, the turn after a statement has not', async () => {
    const found = await contents('How often does Eve go swimming?');
    expect(found[0]).toBe('Eve: Three times a week');
    expect(found.indexOf('Eve: Mostly on Sundays')).toBeGreaterThan(1);
  });

  test('the trace says how many candidates follow a question', async () => {
    const { trace } = await chat.ask('How often does Eve go swimming?');
    expect(trace!.find(({ stage }) => stage === 'score')?.note).toBe('1 follow a question with words of the query');
  });

  test.each([
    ['What did Eve bake with rye in June?', 'Eve: I baked bread with rye for the guests'],
    ['What did Eve bake with rye on 3 June 2024?', 'Eve: I baked bread with rye for the guests'],
    ['Was hat Eve am 03.06.2024 gebacken, bread with rye?', 'Eve: I baked bread with rye for the guests'],
    ['Eve 在6月3日 baked bread with rye?', 'Eve: I baked bread with rye for the guests'],
  ])('%s is answered by what happened then', async (query, expected) => {
    expect((await contents(query))[0]).toBe(expected);
  });

  test('a date that stands in a text counts as much as the time of another', async () => {
    expect((await contents('Which birthday cake for the guests in August?'))[0]).toBe(
      'Eve: The birthday cake for the guests in August is ordered',
    );
  });
});

/** Stores memories before the tests and returns a function that asks them. */
describe('long texts', () => {
  const about = (topic: string, words: string) => `${words} ${`${topic}a ${topic}b ${topic}c `.repeat(45)}`;
  const first = about('shell', 'zebra gnu ibex okapi');
  const second = about('wing', 'zebra gnu ibex');
  const texts = storeOf(
    [first, second, ...Array.from({ length: 8 }, (_, at) => about('shell', `zebra ${at}`))].map((content) => ({
      content,
      userId: 'eve',
    })),
  );
  const secondOf = async (query: string) => (await texts.ask(query)).hits[1]!.memory.content;

  test('are not ordered by their topic for a question in a script without spaces', async () => {
    expect(await secondOf('斑马 zebra gnu ibex okapi')).toBe(second);
    expect(await secondOf('zebra gnu ibex okapi')).not.toBe(second);
  });
});

function storeOf(memories: readonly SeedMemory[]) {
  let store: Store;
  let modelNo: number;
  beforeAll(async () => {
    store = openStore(path.join(tempFolder(), 'answers.sqlite'), { role: 'worker', create: true });
    modelNo = store.write(() => modelNumber(store, embedder, NOW));
    await seedMemories(store, memories, NOW, { embedder, index: null });
    return () => store.close();
  });
  return {
    ask: (query: string) =>
      retrieve(
        {
          store,
          embedder,
          modelNo,
          index: null,
          embedQuery: async (text) => embedder.embedOne(text, 'query'),
          clock: { now: () => NOW },
          languageModel: null,
          logger: silentLogger,
          defaults: [],
          newId: () => 'recall',
          readMemories,
        },
        { query, k: 10, filter: {}, explain: true },
      ),
  };
}

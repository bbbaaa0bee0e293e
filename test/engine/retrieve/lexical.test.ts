import path from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { searchText } from '../../../src/engine/retrieve/lexical.ts';
import { planQuery } from '../../../src/engine/retrieve/plan.ts';
import { openStore, type SqliteStore } from '../../../src/engine/store/open-store.ts';
import { seedMemories } from '../../support/seed-store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const NOW = Date.UTC(2025, 0, 1);
const LIMIT = 10;

describe('words of a file with 20,100 meetings', () => {
  let store: SqliteStore;
  let zebra: number;
  let dan: number;
  let erins: readonly number[];
  beforeAll(async () => {
    store = openStore(path.join(tempFolder(), 'meetings.sqlite'), { role: 'worker', create: true });
    // 20 of them on a roof, 300 by the river, 670 in the rain, all of them meetings: more of these than are scored
    // unless there is a need. Every fourth by the river is in the rain, too.
    const meetings = Array.from({ length: 20_100 }, (_, number) => ({
      content: `meeting ${number}${number % 1_005 === 0 ? ' roof' : ''}${number % 67 === 0 ? ' river' : ''}${number % 268 === 0 || (number % 30 === 1 && number % 67 !== 0) ? ' rain' : ''}`,
      userId: 'bob',
    }));
    await seedMemories(store, meetings, NOW);
    const others = [
      { content: 'a zebra was seen in the yard', userId: 'dave' },
      { content: 'meeting with Dan', userId: 'carol' },
    ];
    [zebra, dan] = (await seedMemories(store, others, NOW)).map(({ memoryNo }) => memoryNo) as [number, number];
    // More than a small scope has, and each longer than what bob said.
    const many = Array.from({ length: 1_300 }, () => ({ content: 'a meeting of which nobody knows', userId: 'erin' }));
    erins = (await seedMemories(store, many, NOW)).map(({ memoryNo }) => memoryNo);
    return () => store.close();
  });
  const search = (query: string, userId: string, options?: Partial<Parameters<typeof searchText>[2]>) =>
    searchText(store, planQuery(store, { query, k: LIMIT, filter: { userIds: [userId] } }, NOW), {
      wanted: LIMIT,
      limit: LIMIT,
      ...options,
    });
  const memoryNosOf = ({ hits }: ReturnType<typeof search>) => hits.map(({ memoryNo }) => memoryNo);

  test('are ranked by all words, however common, and only those of the scope are hits', () => {
    const { hits, note } = search('zebra meeting', 'bob');
    expect(hits).toHaveLength(LIMIT);
    expect(hits.map(({ memoryNo }) => memoryNo)).not.toContain(zebra);
    expect(note).toBe('2 of 2 terms gave the candidates');
    const together = search('river rain', 'bob', { wanted: 1_000, limit: 1_000 });
    // Every fourth by the river is in the rain, too, and they come first.
    const contents = new Map(
      (
        store.db.prepare('SELECT seq AS memoryNo, content FROM memories').all() as {
          memoryNo: number;
          content: string;
        }[]
      ).map(({ memoryNo, content }) => [memoryNo, content]),
    );
    const both = memoryNosOf(together).map((memoryNo) => /river rain/.test(contents.get(memoryNo)!));
    expect(both.lastIndexOf(true)).toBe(74);
    expect(both.slice(0, 75)).not.toContain(false);
  });

  test('stand in the same order whatever is wanted, ties by age', () => {
    const all = search('river rain', 'bob', { wanted: 1_000, limit: 1_000 }).hits;
    expect(search('river rain', 'bob').hits).toEqual(all.slice(0, LIMIT));
    expect(search('roof', 'bob', { limit: 3 }).hits.map(({ memoryNo }) => memoryNo)).toEqual(
      all.length > 0 ? memoryNosOf(search('roof', 'bob', { limit: 20 })).slice(0, 3) : [],
    );
    const meetings = memoryNosOf(search('meeting', 'bob', { limit: 500 }));
    expect(meetings).toEqual(meetings.toSorted((a, b) => a - b));
  });

  test('of a thin scope are found behind those of others', () => {
    expect(memoryNosOf(search('meeting', 'erin'))).toEqual(erins.slice(0, LIMIT));
  });

  test('too common to be read still find what a small user said', () => {
    const { hits, note } = search('meeting', 'carol');
    expect(hits.map(({ memoryNo }) => memoryNo)).toEqual([dan]);
    expect(note).toBe('scope gave the candidates');
  });
});

describe('column weights', () => {
  const store = openStore(path.join(tempFolder(), 'columns.sqlite'), { role: 'worker', create: true });
  let named: number;
  let told: number;
  let reply: number;
  beforeAll(async () => {
    const memories = [
      { content: 'notes of the second afternoon', title: 'Glacier', sessionId: 'a' },
      { content: 'the glacier was grey and silent', sessionId: 'b' },
      { content: 'and we stood there for an hour', sessionId: 'b' },
      ...Array.from({ length: 20 }, (_, number) => ({ content: `something else altogether, number ${number}` })),
    ];
    [named, told, reply] = (await seedMemories(store, memories, NOW)).map(({ memoryNo }) => memoryNo) as [
      number,
      number,
      number,
    ];
    return () => store.close();
  });
  const search = (columnWeights: Parameters<typeof searchText>[2]['columnWeights']) =>
    searchText(store, planQuery(store, { query: 'glacier', k: LIMIT, filter: {} }, NOW), {
      wanted: LIMIT,
      limit: LIMIT,
      columnWeights,
    }).hits;

  test('put a title before the content, and both before what was said just before', () => {
    expect(search(undefined).map(({ memoryNo }) => memoryNo)).toEqual([named, told, reply]);
  });

  test('are the request’s where it gives them, and the defaults otherwise', () => {
    expect(search({ title: 0.1 }).map(({ memoryNo }) => memoryNo)).toEqual([told, reply, named]);
    const [first, ...others] = search({ title: 0.1, content: 0, context: 5 });
    expect(first!.memoryNo).toBe(reply);
    expect(others).toHaveLength(2);
  });
});

test('words that no memory has count as missed', async () => {
  const store = openStore(path.join(tempFolder(), 'missed.sqlite'), { role: 'worker', create: true });
  const memories = Array.from({ length: 30 }, (_, number) => ({
    content: `entry ${number} about ${number === 3 ? 'otters' : 'nothing'}`,
  }));
  await seedMemories(store, memories, NOW);
  const coverage = (query: string) =>
    searchText(store, planQuery(store, { query, k: 1, filter: {} }, NOW), { wanted: 1, limit: 1 }).hits[0]!.coverage;
  // Half of what was asked for stands nowhere, and a word that stands nowhere is rarer than one that stands once.
  expect(coverage('otters')).toBeCloseTo(1, 0);
  expect(coverage('otters walruses')).toBeLessThan(0.5 * coverage('otters'));
  store.close();
});

test('an irregular form stands for its word: it finds, and counts once with it', async () => {
  const store = openStore(path.join(tempFolder(), 'forms.sqlite'), { role: 'worker', create: true });
  const others = Array.from({ length: 30 }, (_, number) => ({ content: `entry ${number} about nothing` }));
  const [bought, asked] = await seedMemories(
    store,
    [{ content: 'Dana bought a canoe' }, { content: 'Dana wants to buy a kayak' }, ...others],
    NOW,
  );
  const hits = (query: string) =>
    searchText(store, planQuery(store, { query, k: LIMIT, filter: {} }, NOW), { wanted: LIMIT, limit: LIMIT }).hits;
  const found = hits('What did Dana buy?');
  expect(found.map(({ memoryNo }) => memoryNo).sort()).toEqual([bought!.memoryNo, asked!.memoryNo]);
  for (const { coverage } of found) expect(coverage).toBeCloseTo(1, 0);
  // A word that only its form stands for is not missed.
  expect(hits('Who bought the canoe?')[0]!.coverage).toBeCloseTo(1, 0);
  expect(hits('Who buys the canoe?')[0]!.memoryNo).toBe(bought!.memoryNo);
  store.close();
});

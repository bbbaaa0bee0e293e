import path from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { searchText } from '../../../src/engine/retrieve/lexical.ts';
import { planQuery } from '../../../src/engine/retrieve/plan.ts';
import { openStore, type Store } from '../../../src/engine/store/open-store.ts';
import { seedMemories } from '../../support/seed-store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const NOW = Date.UTC(2025, 0, 1);
const LIMIT = 10;

describe('words of a file with 20,100 meetings', () => {
  let store: Store;
  let zebra: number;
  let dan: number;
  beforeAll(async () => {
    store = openStore(path.join(tempFolder(), 'meetings.sqlite'), { role: 'worker', create: true });
    // 20 of them on a roof, 300 by the river, 670 in the rain, all of them meetings: more of these than are scored unless there is a
    // need. Every fourth by the river is in the rain, too.
    const meetings = Array.from({ length: 20_100 }, (_, number) => ({
      content: `meeting ${number}${number % 1_005 === 0 ? ' roof' : ''}${number % 67 === 0 ? ' river' : ''}${number % 268 === 0 || (number % 30 === 1 && number % 67 !== 0) ? ' rain' : ''}`,
      userId: 'bob',
    }));
    await seedMemories(store, meetings, NOW);
    const others = [
      { content: 'a zebra was seen in the yard', userId: 'dave' },
      { content: 'meeting with Dan', userId: 'carol' },
    ];
    [zebra, dan] = (await seedMemories(store, others, NOW)).map(({ seq }) => seq) as [number, number];
    return () => store.close();
  });
  const planOf = (query: string, userId: string, k = LIMIT) =>
    planQuery(store, { query, k, filter: { userIds: [userId] } }, NOW);
  const search = (query: string, userId: string) =>
    searchText(store, planOf(query, userId), { wanted: LIMIT, limit: LIMIT });

  test('are found though a rarer word stands only in what another user said', () => {
    const { hits, note } = search('zebra meeting', 'bob');
    expect(hits).toHaveLength(LIMIT);
    expect(hits.map(({ seq }) => seq)).not.toContain(zebra);
    expect(note).toBe('2 of 2 terms gave the candidates, widened');
  });

  test('widen no further than it takes', () => {
    // The river is beyond the postings that find at first (150) and within eight times as many; the meetings are not.
    const { hits, note } = search('zebra river meeting', 'bob');
    expect(hits).toHaveLength(LIMIT);
    expect(note).toBe('2 of 3 terms gave the candidates, widened');
  });

  test('are not searched again where the rare ones find enough', () => {
    const { hits, note } = search('roof meeting', 'bob');
    expect(hits).toHaveLength(LIMIT);
    expect(note).toBe('1 of 1 terms gave the candidates; too common to count: meeting');
  });

  test('that stand together come before those that stand alone, so only they are scored', () => {
    const { hits, note } = search('river rain', 'bob');
    expect(note).toBe('the rarest with the one after of 2 terms gave the candidates');
    // The same as if every posting had been scored.
    const all = searchText(store, planOf('river rain', 'bob', 1_000), { wanted: 1_000, limit: 1_000 });
    expect(all.note).toBe('2 of 2 terms gave the candidates');
    expect(hits).toEqual(all.hits.slice(0, LIMIT));
  });

  test('that stand together join what a rare word finds, if that is too little', () => {
    // 5 stands in one meeting. The river and the rain are beyond the postings that find by themselves.
    const { hits, note } = search('5 river rain', 'bob');
    expect(note).toBe('1 and the next with the one after of 3 terms gave the candidates');
    const all = searchText(store, planOf('5 river rain', 'bob', 1_000), { wanted: 1_000, limit: 1_000 });
    expect(all.note).toBe('3 of 3 terms gave the candidates');
    expect(hits).toEqual(all.hits.slice(0, LIMIT));
  });

  test.each<[string, number, string]>([
    // query, rows scored at most, why
    ['roof meeting', 20, 'the roof is enough'],
    ['roof river rain meeting', 20, 'however many common words come with it'],
    ['5 river rain', 76, 'the 75 meetings by the river in the rain, and number 5'],
    ['meeting', 10_000, 'of a word that all have only the newest count'],
  ])('score no more than they must: %s', (query, most) => {
    const plan = planOf(query, 'bob');
    let scored = 0;
    store.db.function('counted', { varargs: false }, () => (scored += 1));
    searchText(
      store,
      { ...plan, filter: { ...plan.filter, sql: `${plan.filter.sql} AND counted()` } },
      { wanted: LIMIT, limit: LIMIT },
    );
    expect(scored).toBeGreaterThan(0);
    expect(scored).toBeLessThanOrEqual(most);
  });

  test('too common to be scored still find what a small user said', () => {
    const { hits, note } = search('zebra meeting', 'carol');
    expect(hits.map(({ seq }) => seq)).toEqual([dan]);
    expect(note).toBe('scope was read');
  });

  test('are not searched again for a small user whom the rare ones serve', () => {
    const { hits, note } = search('zebra meeting', 'dave');
    expect(hits.map(({ seq }) => seq)).toEqual([zebra]);
    expect(note).toBe('scope gave the candidates; too common to count: meeting');
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
    [named, told, reply] = (await seedMemories(store, memories, NOW)).map(({ seq }) => seq) as [number, number, number];
    return () => store.close();
  });
  const search = (columnWeights: Parameters<typeof searchText>[2]['columnWeights']) =>
    searchText(store, planQuery(store, { query: 'glacier', k: LIMIT, filter: {} }, NOW), {
      wanted: LIMIT,
      limit: LIMIT,
      columnWeights,
    }).hits;

  test('put a title before the content, and both before what was said just before', () => {
    expect(search(undefined).map(({ seq }) => seq)).toEqual([named, told, reply]);
  });

  test('are the request’s where it gives them, and the defaults otherwise', () => {
    expect(search({ title: 0.1 }).map(({ seq }) => seq)).toEqual([told, reply, named]);
    const [first, ...others] = search({ title: 0.1, content: 0, context: 5 });
    expect(first!.seq).toBe(reply);
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

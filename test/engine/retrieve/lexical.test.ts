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
  const search = (query: string, userId: string) =>
    searchText(store, planQuery(store, { query, k: LIMIT, filter: { userIds: [userId] } }, NOW), {
      wanted: LIMIT,
      limit: LIMIT,
    });

  test('are found though a rarer word stands only in what another user said', () => {
    const { hits, note } = search('zebra meeting', 'bob');
    expect(hits.map(({ seq }) => seq)).toEqual(search('meeting', 'bob').hits.map(({ seq }) => seq));
    expect(hits).toHaveLength(LIMIT);
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
    expect(note).toBe('the 2 rarest together of 2 terms gave the candidates');
    // The same as if every posting had been scored.
    const all = searchText(
      store,
      planQuery(store, { query: 'river rain', k: 1_000, filter: { userIds: ['bob'] } }, NOW),
      {
        wanted: 1_000,
        limit: 1_000,
      },
    );
    expect(all.note).toBe('2 of 2 terms gave the candidates');
    expect(hits).toEqual(all.hits.slice(0, LIMIT));
  });

  test('too common to be scored still find what a small user said', () => {
    const { hits, note } = search('zebra meeting', 'carol');
    expect(hits.map(({ seq }) => seq)).toEqual([dan]);
    expect(note).toBe('scope gave the candidates, widened');
  });

  test('are not searched again for a small user whom the rare ones serve', () => {
    const { hits, note } = search('zebra meeting', 'dave');
    expect(hits.map(({ seq }) => seq)).toEqual([zebra]);
    expect(note).toBe('scope gave the candidates; too common to count: meeting');
  });
});

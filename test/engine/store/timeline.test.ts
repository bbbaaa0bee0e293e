import path from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import type { TimelineOptions } from '../../../src/engine/types.ts';
import { compileFilter } from '../../../src/engine/store/filter.ts';
import { openStore, type SqliteStore } from '../../../src/engine/store/open-store.ts';
import { neighboursOf, readTimeline } from '../../../src/engine/store/timeline.ts';
import { type SeedMemory, type Seeded, seedMemories } from '../../support/seed-store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const NOW = 1_000_000;
const at = (content: string, eventTime: number, fields: Partial<SeedMemory> = {}): SeedMemory => ({
  content,
  eventTime,
  userId: 'ann',
  sessionId: 'day',
  ...fields,
});

/** Not in the order of time, since what is imported later may be older. */
const MEMORIES: readonly SeedMemory[] = [
  at('noon', 1200),
  at('dawn', 600),
  at('dusk', 1800),
  at('dusk, too', 1800),
  at('night', 2200, { sessionId: 'evening' }),
  at('breakfast', 700, { sessionId: '' }),
  at('archived', 1100, { status: 'archived' }),
  at('expired', 1150, { expiresAt: NOW }),
  at('of bob', 1210, { userId: 'bob' }),
];

let store: SqliteStore;
let seeded: Map<string, Seeded>;
beforeAll(async () => {
  store = openStore(path.join(tempFolder(), 'timeline.sqlite'), { role: 'worker', create: true });
  const rows = await seedMemories(store, MEMORIES, NOW);
  seeded = new Map(MEMORIES.map(({ content }, place) => [content, rows[place]!]));
  return () => store.close();
});

describe('a timeline', () => {
  const around = (content: string, options: Partial<TimelineOptions> = {}) => {
    const read = readTimeline(store, seeded.get(content)!.id, {
      before: 5,
      after: 5,
      sameSession: false,
      ...options,
      now: NOW,
    });
    const names = (memories: readonly { content: string }[]) => memories.map((memory) => memory.content);
    return { before: names(read.before), anchor: read.anchor.content, after: names(read.after) };
  };

  test("runs through a user's sessions, earlier first, and shows only what is visible", () => {
    expect(around('noon')).toEqual({
      before: ['dawn', 'breakfast'],
      anchor: 'noon',
      after: ['dusk', 'dusk, too', 'night'],
    });
  });

  test('keeps to a session on demand', () => {
    expect(around('noon', { sameSession: true })).toMatchObject({ before: ['dawn'], after: ['dusk', 'dusk, too'] });
    expect(around('breakfast', { sameSession: true })).toMatchObject({ before: [], after: [] });
  });

  test('puts the nearest first where there are more than asked for', () => {
    expect(around('dusk, too', { before: 2, after: 0 })).toMatchObject({ before: ['noon', 'dusk'], after: [] });
    expect(around('dawn', { before: 3, after: 1 })).toMatchObject({ before: [], after: ['breakfast'] });
  });

  test('takes an archived memory as its anchor, but no expired and no unknown one', () => {
    expect(around('archived')).toMatchObject({ before: ['dawn', 'breakfast'], anchor: 'archived' });
    expect(() => around('expired')).toThrow(expect.objectContaining({ code: 'not_found' }));
    expect(() => readTimeline(store, 'unknown', { before: 1, after: 1, sameSession: false, now: NOW })).toThrow(
      expect.objectContaining({ code: 'not_found' }),
    );
  });

  test('reaches past any number of hidden memories, and takes no more than asked for', async () => {
    const hidden = Array.from({ length: 700 }, (_, place) =>
      at(`hidden ${place}`, 10 + place, { userId: 'eve', status: 'superseded' }),
    );
    const [first, second, , ...rest] = await seedMemories(
      store,
      [
        ...[1, 2].map((time) => at(`early ${time}`, time, { userId: 'eve' })),
        ...hidden,
        at('now', 5_000, { userId: 'eve' }),
      ],
      NOW,
    );
    const last = rest.at(-1)!;
    const { before } = readTimeline(store, last.id, { before: 5, after: 5, sameSession: false, now: NOW });
    expect(before.map(({ content }) => content)).toEqual(['early 1', 'early 2']);
    const { after } = readTimeline(store, first!.id, { before: 5, after: 2, sameSession: true, now: NOW });
    expect(after.map(({ content }) => content)).toEqual(['early 2', 'now']);
    const visible = compileFilter({}, NOW);
    expect(neighboursOf(store, [last.memoryNo, second!.memoryNo], { visible, each: 2 })).toEqual(
      new Map([
        [second!.memoryNo, { before: [first!.memoryNo], after: [last.memoryNo] }],
        [last.memoryNo, { before: [first!.memoryNo, second!.memoryNo], after: [] }],
      ]),
    );
  });

  test('says that it is incomplete where 5,000 hidden memories stand before a visible one', async () => {
    const hidden = Array.from({ length: 5_000 }, (_, place) =>
      at(`hidden ${place}`, 10 + place, { userId: 'dan', sessionId: '', status: 'superseded' }),
    );
    const rows = await seedMemories(
      store,
      [at('early', 1, { userId: 'dan' }), ...hidden, at('late', 9_000, { userId: 'dan' })],
      NOW,
    );
    const before = (id: string, limit: number) =>
      readTimeline(store, id, { before: limit, after: 0, sameSession: false, now: NOW });
    expect(before(rows.at(-1)!.id, 1)).toMatchObject({ before: [], isCut: true });
    expect(before(rows.at(-2)!.id, 1)).toMatchObject({ before: [{ content: 'early' }], isCut: false });
    expect(before(rows.at(-2)!.id, 2)).toMatchObject({ before: [{ content: 'early' }], isCut: false });
    expect(before(rows.at(-1)!.id, 0)).toMatchObject({ before: [], isCut: false });
  });

  test('is found by an index, however many memories the user has', () => {
    const plan = store.db
      .prepare(
        'EXPLAIN QUERY PLAN SELECT seq FROM memories WHERE user_no = ? AND (event_time, seq) < (?, ?) ORDER BY event_time DESC, seq DESC LIMIT 5',
      )
      .all(1, 1, 1) as { detail: string }[];
    // Nothing is sorted: the number of a row stands at the end of every entry of an index.
    expect(plan.map(({ detail }) => detail)).toEqual([expect.stringMatching(/^SEARCH .* memories_by_time/)]);
  });
});

test('neighbours are the visible ones just before and after in the session, of several at once', () => {
  const neighbours = (filter: Parameters<typeof compileFilter>[0]) =>
    neighboursOf(
      store,
      ['noon', 'dusk', 'night', 'breakfast'].map((name) => seeded.get(name)!.memoryNo),
      { visible: compileFilter(filter, NOW), each: 1 },
    );
  const [dawn, noon, dusk, duskToo, night] = ['dawn', 'noon', 'dusk', 'dusk, too', 'night'].map(
    (name) => seeded.get(name)!.memoryNo,
  );
  expect(Object.fromEntries(neighbours({}))).toEqual({
    [noon!]: { before: [dawn], after: [dusk] },
    [dusk!]: { before: [noon], after: [duskToo] },
    // Alone in its session; what is in none has no neighbours.
    [night!]: { before: [], after: [] },
  });
  expect(neighbours({ eventFrom: 1000 }).get(noon!)).toEqual({ before: [], after: [dusk] });
});

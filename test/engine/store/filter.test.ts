import path from 'node:path';
import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { isEngineError } from '../../../src/engine/errors.ts';
import { compileFilter, type FilterOptions } from '../../../src/engine/store/filter.ts';
import { openStore, type Store } from '../../../src/engine/store/open-store.ts';
import { listPassing } from '../../../src/engine/store/passing-memories.ts';
import { MEMORY_STATUSES, type MemoryFilter, type MemoryStatus, type Metadata } from '../../../src/engine/types.ts';
import { type SeedMemory, seedMemories } from '../../support/seed-store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const NOW = 1_000_000;

/** Named by their content, so that an expectation reads as a list of names. */
const MEMORIES: readonly SeedMemory[] = [
  { content: 'plain' },
  { content: 'ann', userId: 'ann', sessionId: 's1', type: 'fact', externalId: 'x-1', tags: ['red', 'blue'] },
  { content: 'ann s2', userId: 'ann', sessionId: 's2', sectors: ['episodic', 'emotional'], tags: ['red'] },
  { content: 'bob', userId: 'bob', sessionId: 's1', sectors: ['procedural'], eventTime: 500, createdAt: 700 },
  { content: 'superseded', status: 'superseded' },
  { content: 'archived', status: 'archived' },
  { content: 'expired', expiresAt: NOW },
  { content: 'expires next', expiresAt: NOW + 1 },
  { content: 'not yet valid', validFrom: NOW + 1 },
  { content: 'valid from now', validFrom: NOW },
  { content: 'no longer valid', validTo: NOW },
];

describe('a filter', () => {
  const { select } = storeOf(MEMORIES);
  const shown = ['plain', 'ann', 'ann s2', 'bob', 'expires next', 'valid from now'];

  test.each<[string, MemoryFilter, readonly string[]]>([
    ['without conditions shows what is active, valid and not expired', {}, shown],
    ['selects a user', { userIds: ['ann'] }, ['ann', 'ann s2']],
    ['joins users by or', { userIds: ['ann', 'bob'] }, ['ann', 'ann s2', 'bob']],
    ['takes the empty user as the ones without', { userIds: [''] }, ['plain', 'expires next', 'valid from now']],
    ['finds nothing of an unknown user', { userIds: ['nobody'] }, []],
    ['finds nothing where no alternative is left', { userIds: [] }, []],
    ['joins fields by and', { userIds: ['ann', 'bob'], sessionIds: ['s1'] }, ['ann', 'bob']],
    ['selects a sector, be it primary or additional', { sectors: ['emotional', 'procedural'] }, ['ann s2', 'bob']],
    ['selects a type', { types: ['fact'] }, ['ann']],
    ['wants all tags', { tags: ['blue', 'red'] }, ['ann']],
    ['asks nothing with no tags', { tags: [] }, shown],
    ['selects by external id', { externalIds: ['x-1', 'x-2'] }, ['ann']],
    ['selects other statuses on request', { statuses: ['superseded', 'archived'] }, ['superseded', 'archived']],
    ['includes the start of a time', { eventFrom: 500, eventTo: 501 }, ['bob']],
    ['excludes the end of a time', { eventFrom: 0, eventTo: 500 }, []],
    ['knows when a memory was stored', { createdFrom: 700, createdTo: 701 }, ['bob']],
  ])('%s', (_, filter, expected) => {
    expect(select(filter)).toEqual(expected);
  });

  test('cannot ask for what still holds now and for an earlier time in one', () => {
    // @ts-expect-error: the time of `orStillHolds` is the present.
    expect(() => compileFilter({}, NOW, { orStillHolds: true, asOf: { recorded: NOW - 1 } })).not.toThrow();
  });

  test('shows what is hidden when a caller lists or deletes', () => {
    expect(select({}, { includeHidden: true })).toEqual(MEMORIES.map(({ content }) => content));
    expect(select({ statuses: ['archived'] }, { includeHidden: true })).toEqual(['archived']);
  });

  test('has the same text for every filter of its shape, so that its statement is prepared once', () => {
    const few = compileFilter({ sessionIds: ['a'], tags: ['b'], metadata: { c: { $in: [1] } } }, 1);
    const many = compileFilter(
      { sessionIds: ['a', 'b'], tags: ['c', 'd'], metadata: { e: { $in: [2, 'f', true] } } },
      2,
    );
    expect(many.sql).toBe(few.sql);
  });

  test('never lets text become SQL', () => {
    fc.assert(
      fc.property(hostileText, hostileText, (text, key) => {
        expect(select({ userIds: [text, `${text}'`], sessionIds: [text], tags: [text], types: [text] })).toEqual([]);
        expect(select({ metadata: { [key]: { $eq: text } } })).toEqual([]);
      }),
    );
  });
});

describe('a condition on metadata', () => {
  const { select } = storeOf([
    entry('one', { n: 1, s: 'b', flag: true, 'a.b': 'dotted', 'quo"te': 1, list: [1, 2] }),
    entry('float', { n: 1.5, s: 'a', flag: 1 }),
    entry('text', { n: '1', s: '', flag: 'true', nothing: null }),
    entry('empty', {}),
    entry('nested', { a: { b: 'nested' } }),
  ]);

  test.each<[string, MemoryFilter['metadata'], readonly string[]]>([
    ['compares a bare value', { s: 'b' }, ['one']],
    ['tells a number from its text', { n: 1 }, ['one']],
    ['tells true from 1', { flag: true }, ['one']],
    ['takes a dot in a key as a dot', { 'a.b': 'dotted' }, ['one']],
    ['takes any character in a key', { 'quo"te': 1 }, ['one']],
    ['compares lists as a whole', { list: { $eq: [1, 2] } }, ['one']],
    ['compares objects as a whole', { a: { b: 'nested' } }, ['nested']],
    ['$ne holds where the key is missing', { n: { $ne: 1 } }, ['float', 'text', 'empty', 'nested']],
    ['null stands for a missing key too', { n: null }, ['empty', 'nested']],
    ['$gt compares numbers with numbers only', { n: { $gt: 0 } }, ['one', 'float']],
    ['$gte and $lt make a range', { n: { $gte: 1, $lt: 1.5 } }, ['one']],
    ['$lte compares strings by code', { s: { $lte: 'a' } }, ['float', 'text']],
    ['$in takes any of a list', { n: { $in: [1.5, '1'] } }, ['float', 'text']],
    ['$nin takes none of a list', { n: { $nin: [1.5, '1'] } }, ['one', 'empty', 'nested']],
    ['$in of nothing finds nothing', { n: { $in: [] } }, []],
    ['$exists', { nothing: { $exists: true } }, ['text']],
    ['$exists: false', { s: { $exists: false } }, ['empty', 'nested']],
    ['joins keys by and', { n: 1, s: 'a' }, []],
  ])('%s', (_, metadata, expected) => {
    expect(select({ metadata })).toEqual(expected);
  });

  test.each([{ $regex: 'x' }, { $gt: true }, { $in: 1 }, { $exists: 1 }, { $eq: 1, plain: 2 }])(
    'that means nothing is refused: %j',
    (condition) => {
      const compile = () => compileFilter({ metadata: { key: condition } }, NOW);
      expect(compile).toThrow(expect.toSatisfy((error) => isEngineError(error, 'invalid')));
    },
  );
});

const hostileText = fc.oneof(
  fc.string({ minLength: 1, unit: 'binary' }).map((text) => text.toWellFormed()),
  fc.constantFrom("' OR 1 --", '") OR ("1"="1', '$.a', '$', '%', '\u0000x', '"; DROP TABLE memories; --'),
);

function entry(content: string, metadata: Metadata): SeedMemory {
  return { content, metadata };
}

function storeOf(memories: readonly SeedMemory[]) {
  let store: Store;
  const contents = new Map<number, string>();
  beforeAll(async () => {
    store = openStore(path.join(tempFolder(), 'filter.sqlite'), { role: 'worker', create: true });
    const seeded = await seedMemories(store, memories, NOW);
    for (const [place, { memoryNo }] of seeded.entries()) contents.set(memoryNo, memories[place]!.content);
    return () => store.close();
  });
  const select = (filter: MemoryFilter, options?: FilterOptions) =>
    listPassing(store, compileFilter(filter, NOW, options), 100).map((memoryNo) => contents.get(memoryNo));
  return { select };
}

test('all statuses together are no condition, which PostgreSQL would join to the memories before it reads their tags', () => {
  const sqlFor = (statuses: readonly MemoryStatus[]) => compileFilter({ statuses }, 0, { includeHidden: true }).sql;
  expect(sqlFor(MEMORY_STATUSES)).toBe('TRUE');
  expect(sqlFor(['active', 'archived'])).toContain('d.status');
});

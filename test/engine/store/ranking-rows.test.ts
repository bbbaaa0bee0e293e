import path from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { compileFilter } from '../../../src/engine/store/filter.ts';
import { openStore, type Store } from '../../../src/engine/store/open-store.ts';
import { firstPassing, listPassingOf } from '../../../src/engine/store/passing-memories.ts';
import { createRowReader, readRankingRows } from '../../../src/engine/store/ranking-rows.ts';
import { seedMemories } from '../../support/seed-store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const NOW = Date.UTC(2025, 0, 1);
const MEMORIES = 600;

let store: Store;
let memoryNos: readonly number[];
beforeAll(async () => {
  store = openStore(path.join(tempFolder(), 'rows.sqlite'), { role: 'worker', create: true });
  const memories = Array.from({ length: MEMORIES }, (_, place) => ({
    content: `memory ${place}`,
    sessionId: `third ${place % 3}`,
    userId: place % 150 === 149 ? 'rare' : 'ann',
  }));
  memoryNos = (await seedMemories(store, memories, NOW)).map(({ memoryNo }) => memoryNo);
  return () => store.close();
});

const filters = {
  all: compileFilter({}, NOW),
  'a third': compileFilter({ sessionIds: ['third 1'] }, NOW),
  few: compileFilter({ userIds: ['rare'] }, NOW),
  none: compileFilter({ userIds: ['nobody'] }, NOW),
};

test.for(Object.keys(filters) as (keyof typeof filters)[])(
  'the first memories that pass are the same whatever share of them passes: %s',
  (share) => {
    const filter = filters[share];
    const inOrder = memoryNos.toReversed().map((memoryNo) => ({ memoryNo }));
    for (const limit of [1, 3, 20, MEMORIES + 1]) {
      expect(createRowReader(store).firstPassing(filter, inOrder, limit)).toEqual(
        firstPassing(store, filter, inOrder, limit),
      );
    }
    expect(createRowReader(store).firstPassing(filter, [], 5)).toEqual([]);
  },
);

test('rows are those of the file, however they were read first, and unknown numbers have none', () => {
  const rows = createRowReader(store);
  const wanted = memoryNos.slice(0, 90).toReversed();
  const passing = rows.listPassingOf(filters['a third'], wanted);
  expect(passing.toSorted((a, b) => a - b)).toEqual(
    listPassingOf(store, filters['a third'], wanted).toSorted((a, b) => a - b),
  );
  expect(passing).toHaveLength(30);
  const read = rows.read([...wanted, 1_000_000]);
  expect(read.toSorted((a, b) => a.memoryNo - b.memoryNo)).toEqual(readRankingRows(store, wanted));
});

test('a row is read once: what is written meanwhile does not show', () => {
  const rows = createRowReader(store);
  const [first, second] = memoryNos as [number, number];
  rows.listPassingOf(filters.all, [first]);
  rows.read([second]);
  const put = (salience: number) =>
    store.prepare('UPDATE memory_dynamics SET salience = ? WHERE seq <= ?').run(salience, second);
  const before = readRankingRows(store, [first, second]);
  put(0.123);
  expect(rows.read([first, second])).toEqual(before);
  expect(readRankingRows(store, [first]).map(({ salience }) => salience)).toEqual([0.123]);
});

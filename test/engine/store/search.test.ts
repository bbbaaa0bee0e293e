import path from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { TEXT_WEIGHTS } from '../../../src/engine/retrieve/lexical.ts';
import { compileFilter } from '../../../src/engine/store/filter.ts';
import { openStore, type Store } from '../../../src/engine/store/open-store.ts';
import { countMemories, countText, findText, rankText, snapshotVersion } from '../../../src/engine/store/search.ts';
import { seedMemories } from '../../support/seed-store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const NOW = Date.UTC(2025, 0, 1);
const everything = compileFilter({}, NOW);

let file: string;
let store: Store;
let seqs: number[];
beforeAll(async () => {
  file = path.join(tempFolder(), 'search.sqlite');
  store = openStore(file, { role: 'worker', create: true });
  const contents = ['an apple', 'an apple', 'apples and pears', 'a pear tree', 'plums'];
  seqs = (
    await seedMemories(
      store,
      contents.map((content) => ({ content })),
      NOW,
    )
  ).map(({ seq }) => seq);
  return () => store.close();
});

test('words are found in any of their forms, the newest first and no more than asked for', () => {
  expect(findText(store, '"apple"', 10)).toEqual([seqs[2], seqs[1], seqs[0]]);
  expect(findText(store, '"pears"', 1)).toEqual([seqs[3]]);
  expect(countText(store, '"apple"', 10)).toBe(3);
  expect(countText(store, '"apple"', 2)).toBe(2);
  expect(countMemories(store)).toBe(5);
});

test('equal fits stand in the order of their numbers', () => {
  const search = { match: '"apple"', weights: TEXT_WEIGHTS, filter: everything };
  const ranked = rankText(store, { ...search, limit: 10 });
  expect(ranked.map(({ seq }) => seq)).toEqual([seqs[0], seqs[1], seqs[2]]);
  expect(ranked[0]!.bm25).toBe(ranked[1]!.bm25);
  expect(rankText(store, { ...search, limit: -1 })).toEqual(ranked);
  expect(rankText(store, { ...search, among: [seqs[1]!, seqs[4]!], limit: 10 }).map(({ seq }) => seq)).toEqual([
    seqs[1],
  ]);
});

test('the snapshot has another name after any write, of this connection or of another', async () => {
  const other = openStore(file, { role: 'worker' });
  const names = [snapshotVersion(store), snapshotVersion(store)];
  expect(new Set(names).size).toBe(1);
  await seedMemories(store, [{ content: 'quinces' }], NOW);
  names.push(snapshotVersion(store));
  await seedMemories(other, [{ content: 'medlars' }], NOW);
  names.push(snapshotVersion(store));
  expect(new Set(names).size).toBe(3);
  other.close();
});

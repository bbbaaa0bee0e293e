import path from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { TEXT_WEIGHTS } from '../../../src/engine/retrieve/lexical.ts';
import { putStatedEdge } from '../../../src/engine/store/edges.ts';
import { compileFilter } from '../../../src/engine/store/filter.ts';
import { openStore, type Store } from '../../../src/engine/store/open-store.ts';
import {
  countMemories,
  countText,
  findText,
  rankText,
  snapshotVersion,
  stepsFrom,
} from '../../../src/engine/store/search.ts';
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
  expect(countText(store, '"apple"', { after: 0, limit: 10 })).toBe(3);
  expect(countText(store, '"apple"', { after: 0, limit: 2 })).toBe(2);
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

test('where the filter lets none of the best pass, those behind them are found in their order', async () => {
  const of = (userId: string, content: string) => ({ userId, content });
  const loud = Array.from({ length: 30 }, () => of('ann', 'figs'));
  const quiet = [
    of('ben', 'figs and dates'),
    of('ben', 'figs, dates and more of what else there is'),
    of('ben', 'figs too'),
  ];
  const own = (await seedMemories(store, [...loud, ...quiet], NOW)).slice(loud.length).map(({ seq }) => seq);
  const filter = compileFilter({ userIds: ['ben'] }, NOW);
  const ranked = rankText(store, { match: '"figs"', weights: TEXT_WEIGHTS, filter, limit: 2 });
  expect(ranked.map(({ seq }) => seq)).toEqual([own[2], own[0]]);
  const all = rankText(store, { match: '"figs"', weights: TEXT_WEIGHTS, filter, limit: -1 });
  expect(all.map(({ seq }) => seq)).toEqual([own[2], own[0], own[1]]);
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

test('the strongest link of a hub is followed, and that of another origin, however many links the hub has', async () => {
  const own = openStore(path.join(tempFolder(), 'hub.sqlite'), { role: 'worker', create: true });
  const names = ['hub', 'other', 'far', ...Array.from({ length: 1_500 }, (_, place) => `child ${place}`)];
  const seeded = await seedMemories(
    own,
    names.map((content) => ({ content, userId: content === 'far' ? 'ben' : 'ann', sessionId: content.slice(0, 9) })),
    NOW,
  );
  const [hub, other, far, ...children] = seeded.map(({ seq }) => seq) as [number, number, number, ...number[]];
  const last = children.at(-1)!;
  own.write(() => {
    for (const [place, child] of children.entries()) {
      putStatedEdge(own, { src: child, dst: hub, type: 'derived_from' }, place / 1_500, NOW);
      putStatedEdge(own, { src: hub, dst: child, type: 'contradicts' }, 1, NOW);
    }
    putStatedEdge(own, { src: hub, dst: far, type: 'supports' }, 0.1, NOW);
    putStatedEdge(own, { src: far, dst: other, type: 'supports' }, 0.1 + 0.2, NOW);
  });
  const steps = stepsFrom(own, [hub, other], everything, 2);
  expect(steps).toEqual([
    { origin: hub, reached: last, type: 'derived_from', weight: 1_499 / 1_500 },
    { origin: hub, reached: children.at(-2), type: 'derived_from', weight: 1_498 / 1_500 },
    // To the last bit.
    { origin: other, reached: far, type: 'supports', weight: 0.1 + 0.2 },
  ]);
  // Those outside the filter take no place.
  expect(stepsFrom(own, [hub], compileFilter({ userIds: ['ben'] }, NOW), 2).map(({ reached }) => reached)).toEqual([
    far,
  ]);
  const weakest = compileFilter({ sessionIds: ['child 0'] }, NOW);
  expect(stepsFrom(own, [hub], weakest, 2).map(({ reached }) => reached)).toEqual([children[0]]);
  own.close();
});

import path from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { boundsOf, originsOf } from '../../../src/engine/store/derivations.ts';
import { compileFilter } from '../../../src/engine/store/filter.ts';
import { foundByTheWay } from '../../../src/engine/store/found-by-the-way.ts';
import { stepsFrom } from '../../../src/engine/store/link-steps.ts';
import { openStore, type SqliteStore } from '../../../src/engine/store/open-store.ts';
import { readRankingRows } from '../../../src/engine/store/ranking-rows.ts';
import { seedEdge, seedMemories } from '../../support/seed-store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const NOW = Date.UTC(2026, 0, 5);

describe('what a read finds by the way', () => {
  let store: SqliteStore;
  beforeAll(() => {
    store = openStore(path.join(tempFolder(), 'found.sqlite'), { role: 'worker', create: true });
    return () => store.close();
  });
  const filter = compileFilter({}, NOW, { statuses: ['active'] });
  const bounds = boundsOf({});
  const all = { followed: bounds, bounds };
  const seed = async (count: number) =>
    (
      await seedMemories(
        store,
        Array.from({ length: count }, (_, n) => ({ content: `Text ${n}` })),
        NOW,
      )
    ).map(({ memoryNo }) => memoryNo);
  const derive = (src: number, dst: number) =>
    store.write(() => seedEdge(store, { src, dst, weight: 1, type: 'derived_from' }));
  const readLinks = (memoryNos: readonly number[]) => stepsFrom(store, memoryNos, { filter }, 10);

  test('says of no memory that it has no origin if it has one, in either direction', async () => {
    const [part, source, waypoint, alone] = (await seed(4)) as [number, number, number, number];
    derive(part, source);
    store.write(() => seedEdge(store, { src: waypoint, dst: alone, weight: 1, type: 'waypoint' }));
    store.read(() => {
      readLinks([part, source, waypoint]);
      expect([...foundByTheWay(store).underived]).toEqual([waypoint]);
      expect(Object.fromEntries(originsOf(store, [alone, waypoint, source, part], all))).toEqual({
        [part]: { root: source, isSource: false, hasAutomaticSource: false },
        [source]: { root: source, isSource: true, hasAutomaticSource: false },
      });
    });
  });

  test('counts in its own snapshot only, and not inside a write', async () => {
    const [part, source] = (await seed(2)) as [number, number];
    const rootOf = () => originsOf(store, [part], all).get(part)?.root;
    store.read(() => {
      readLinks([part, source]);
      readRankingRows(store, [part]);
      expect(rootOf()).toBe(undefined);
      expect(foundByTheWay(store)).toMatchObject({ underived: new Set([part, source]), inNoDocument: new Set([part]) });
    });
    store.write(() => {
      readLinks([part, source]);
      seedEdge(store, { src: part, dst: source, weight: 1, type: 'derived_from' });
      expect(rootOf()).toBe(source);
    });
    store.read(() => expect(rootOf()).toBe(source));
  });
});

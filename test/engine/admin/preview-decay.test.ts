import { afterEach, beforeEach, expect, test } from 'vitest';
import { previewDecay } from '../../../src/engine/admin/preview-decay.ts';
import { DAY_MS } from '../../../src/engine/dynamics.ts';
import { openStore, type Store } from '../../../src/engine/store/open-store.ts';
import { seedMemories } from '../../support/seed-store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const NOW = Date.UTC(2030, 0, 1);
const AT = NOW + 100 * DAY_MS;
const PLAIN = { now: NOW, at: AT, lambda: undefined, archiveBelow: 0 };
let store: Store;

beforeEach(() => {
  store = openStore(`${tempFolder()}/cairn.sqlite`, { role: 'worker', create: true });
});
afterEach(() => store.close());

test('each sector falls by its own λ; values and counts are those that reading then would give', async () => {
  await seedMemories(
    store,
    [
      { content: 'moved', sectors: ['emotional'], salience: 0.8, createdAt: NOW },
      { content: 'known', sectors: ['semantic'], salience: 0.8, createdAt: NOW },
      { content: 'known too', sectors: ['semantic'], salience: 0.35, createdAt: NOW },
    ],
    NOW,
  );
  const { sectors, falls } = previewDecay(store, PLAIN);
  expect(sectors.map(({ sector, count }) => [sector, count])).toEqual([
    ['semantic', 2],
    ['emotional', 1],
  ]);
  expect(sectors[1]!.after.average).toBeCloseTo(0.8 * Math.exp(-0.02 * 100), 10);
  expect(sectors[0]!.before.tenths).toEqual([0, 0, 0, 1, 0, 0, 0, 0, 1, 0]);
  expect(sectors[0]!.after.tenths).toEqual([0, 0, 1, 0, 1, 0, 0, 0, 0, 0]);
  expect(falls.map(({ memory }) => memory.content)).toEqual(['moved', 'known', 'known too']);
});

test('what lies behind keeps the λ it had, what is to come takes that of the settings', async () => {
  const created = NOW - 50 * DAY_MS;
  await seedMemories(store, [{ content: 'old', sectors: ['semantic'], salience: 1, createdAt: created }], NOW);
  const { falls } = previewDecay(store, { ...PLAIN, lambda: 0.1 });
  expect(falls[0]!.before).toBeCloseTo(Math.exp(-0.005 * 50), 10);
  expect(falls[0]!.after).toBeCloseTo(Math.exp(-0.005 * 50) * Math.exp(-0.1 * 100), 10);
});

test('only active memories count, ten falls are named, and what would be archived is counted', async () => {
  const many = Array.from({ length: 3_000 }, (_, n) => ({
    content: `memory ${n}`,
    sectors: ['episodic'] as const,
    salience: (n % 1_000) / 1_000,
    createdAt: NOW,
  }));
  await seedMemories(store, [...many, { content: 'gone', status: 'archived', salience: 1, createdAt: NOW }], NOW);
  const { sectors, falls, archived, archives } = previewDecay(store, { ...PLAIN, archiveBelow: 0.1 });
  expect(sectors).toHaveLength(1);
  expect(sectors[0]!.count).toBe(3_000);
  expect(falls.map(({ memory }) => memory.content)).toEqual(
    ['999', '1999', '2999', '998', '1998', '2998', '997', '1997', '2997', '996'].map((n) => `memory ${n}`),
  );
  const fades = (salience: number) => salience * Math.exp(-0.015 * 100) < 0.1;
  expect(archived).toBe(many.filter(({ salience }) => fades(salience)).length);
  expect(archives).toHaveLength(50);
  expect(archives.slice(0, 4).map(({ memory }) => memory.content)).toEqual(
    ['0', '1000', '2000', '1'].map((n) => `memory ${n}`),
  );
});

test('writes nothing, and says nothing about an empty store', async () => {
  expect(previewDecay(store, PLAIN)).toEqual({ sectors: [], falls: [], archived: 0, archives: [], isCut: false });
  await seedMemories(store, [{ content: 'stays' }], NOW);
  const before = store.prepare('SELECT * FROM memory_dynamics').all();
  previewDecay(store, PLAIN);
  expect(store.prepare('SELECT * FROM memory_dynamics').all()).toEqual(before);
});

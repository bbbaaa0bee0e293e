import { expect, test } from 'vitest';
import type { ReadCommandName } from '../../../src/engine/readers/commands.ts';
import { noteCost, ReadCosts } from '../../../src/engine/readers/read-costs.ts';
import { createThreadPlaces } from '../../../src/engine/readers/thread-places.ts';

/** Places of two threads, with a clock that is set by hand. */
function startPlaces(threads = 2) {
  const clock = { now: 0 };
  const costs = new ReadCosts();
  let asked = 0;
  const places = createThreadPlaces(threads, () => clock.now);
  const ask = (path: string, options: { name?: ReadCommandName; key?: string; tookMs?: number } = {}) => {
    const { name = 'query', key = '', tookMs = 0 } = options;
    const cost = costs.of(path, key, name);
    if (tookMs > 0) noteCost(cost, tookMs);
    const read = { id: (asked += 1), path, key, name, cost, sentAt: clock.now };
    places.note(read);
    return read;
  };
  return { clock, places, ask };
}

test('explanations, exports and the like leave one thread free', () => {
  const { places, ask } = startPlaces();
  const first = ask('a', { name: 'explain' });
  for (const name of [
    'explain',
    'readExportSlice',
    'diff',
    'learnWeights',
    'readRecalls',
    'proposeConsolidations',
  ] as const)
    expect(places.hasRoom(ask('b', { name }), [first])).toBe(false);
  expect(places.hasRoom(ask('b'), [first])).toBe(true);
  expect(places.hasRoom(ask('b', { name: 'explain' }), [])).toBe(true);
});

test('weights are learned for one tenant at a time', () => {
  const { places, ask } = startPlaces(4);
  const first = ask('a', { name: 'learnWeights' });
  expect(places.hasRoom(ask('b', { name: 'learnWeights' }), [first])).toBe(false);
  expect(places.hasRoom(ask('b', { name: 'explain' }), [first])).toBe(true);
  expect(places.hasRoom(ask('b', { name: 'learnWeights' }), [])).toBe(true);
});

test('with one thread, one long read runs at a time', () => {
  const { places, ask } = startPlaces(1);
  const read = ask('a', { name: 'explain' });
  expect(places.hasRoom(read, [])).toBe(true);
  expect(places.hasRoom(ask('b', { name: 'explain' }), [read])).toBe(false);
});

test('a key that is alone has all threads for its slow queries', () => {
  const { places, ask } = startPlaces();
  const slow = ask('a', { tookMs: 5_000 });
  expect(places.hasRoom(ask('a', { tookMs: 5_000 }), [slow])).toBe(true);
});

test.each([
  ['of another tenant', { path: 'b', key: '' }],
  ['of the same tenant', { path: 'a', key: 'other' }],
])('slow queries leave a thread to a key %s that asks short ones, until it is silent', (_, { path, key }) => {
  const { clock, places, ask } = startPlaces();
  ask(path, { key });
  ask('a');
  const slow = ask('a', { tookMs: 5_000 });
  expect(places.hasRoom(ask('a'), [slow])).toBe(false);
  expect(places.hasRoom(ask(path, { key }), [slow])).toBe(true);
  clock.now += 10_001;
  expect(places.hasRoom(ask('a'), [slow])).toBe(true);
});

test('slow queries of two keys have all threads, if nobody asks short ones', () => {
  const { places, ask } = startPlaces();
  for (const path of ['a', 'b']) ask(path, { tookMs: 5_000 });
  expect(places.hasRoom(ask('b'), [ask('a')])).toBe(true);
});

test('only a quick read waits behind another, and only behind a quick one that has just begun', () => {
  const { clock, places, ask } = startPlaces();
  const quick = ask('a', { tookMs: 2 });
  expect([places.isQuick(quick), places.endsSoon(quick)]).toEqual([true, true]);
  clock.now += 1_000;
  expect(places.endsSoon(quick)).toBe(false);
  expect(places.isQuick(ask('a', { name: 'explain' }))).toBe(false);
  expect(places.isQuick(ask('a', { tookMs: 200 }))).toBe(false);
});

test('a key that asks slow and quick questions in turn is taken for slow', () => {
  const { places, ask } = startPlaces();
  for (let turn = 0; turn < 10; turn += 1) {
    ask('a', { tookMs: 3_000 });
    expect(places.isQuick(ask('a', { tookMs: 1 }))).toBe(false);
  }
  for (let turn = 0; turn < 30; turn += 1) ask('a', { tookMs: 1 });
  expect(places.isQuick(ask('a'))).toBe(true);
});

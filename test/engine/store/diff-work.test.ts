import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createFirstEntries } from '../../../src/engine/store/first-entries.ts';
import { diffTopics } from '../../conformance/diff-topics.ts';
import { diffWork } from '../../conformance/diff-work.ts';
import { newMemory, openTestEngine, START } from '../../support/engine-fixture.ts';

test('a difference counts its rows while it reads them, and ends with its work', async () => {
  await using fixture = await openTestEngine();
  await diffWork(fixture);
});

test('a topic leaves out nothing that is about it', async () => {
  await using fixture = await openTestEngine();
  await diffTopics(fixture);
});

const WINDOW = { from: START - 1, to: START, axis: 'recorded', fadedBelow: 0, limit: 5, filter: {} } as const;

test('a difference says so if its topic was not searched to the end', async () => {
  await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none', OM_QUERY_WORK_MB: '1' } });
  const { tenant } = fixture;
  // 800 kB of metadata, which the search reads more than once and the difference once.
  const metadata = { notes: 'n'.repeat(4_000) };
  const contents = Array.from({ length: 200 }, (_, place) => `Harbour note ${place}.`);
  await tenant.addMemories(contents.map((content) => newMemory({ content, metadata })));
  const filter = { metadata: { size: { $exists: false } } };
  const { degradedReasons } = await tenant.query({ query: 'harbour', k: 200, filter });
  expect(degradedReasons).toEqual(['work_budget']);
  expect((await tenant.diff({ ...WINDOW, filter })).degraded).toBe(false);
  expect((await tenant.diff({ ...WINDOW, filter, topic: 'harbour' })).degraded).toBe(true);
  expect((await tenant.diff({ ...WINDOW, topic: 'harbour' })).degraded).toBe(false);
});

test('a difference says so if its topic has more than an answer holds', async () => {
  await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none' } });
  const { tenant } = fixture;
  // 8 MB of texts, where one answer has at most 6 MiB.
  const contents = Array.from({ length: 200 }, (_, place) => `Harbour note ${place}. `.padEnd(40_000, 'tide '));
  await tenant.addMemories(contents.map((content) => newMemory({ content })));
  expect((await tenant.diff(WINDOW)).degraded).toBe(false);
  expect((await tenant.diff({ ...WINDOW, topic: 'note 7' })).degraded).toBe(false);
  expect((await tenant.diff({ ...WINDOW, topic: 'harbour' })).degraded).toBe(true);
});

test('the first entries are those of the whole list, sorted', () =>
  fc.assert(
    fc.property(fc.nat(20), fc.array(fc.nat(500), { maxLength: 50 }), fc.nat(100), (limit, added, repeats) => {
      const ascending = (one: number, other: number) => one - other;
      const entries = createFirstEntries(limit, ascending);
      const whole = Array.from({ length: repeats }, () => added).flat();
      for (const entry of whole) entries.add(entry);
      expect(entries.list()).toEqual(whole.sort(ascending).slice(0, limit));
      expect(entries.count).toBe(whole.length);
    }),
  ));

import { expect } from 'vitest';
import { DAY_MS } from '../../src/engine/dynamics.ts';
import type { DiffOptions } from '../../src/engine/types.ts';
import { newMemory, START, type TestEngine } from '../support/engine-fixture.ts';

/** Checks that a topic leaves out nothing that is about it: what ended, what is yet to begin, and what is alike. */
export async function diffTopics({ tenant, clock, drain }: TestEngine): Promise<void> {
  const ann = tenant.as('ann');
  const day = (number: number) => START + number * DAY_MS;
  clock.set(day(1));
  const report = (pallets: number) =>
    `Weekly report from Ana: the northern warehouse shipped ${pallets} pallets of green coffee to Hamburg.`;
  const added = [
    { content: 'Ben lived in Rome for work.', eventTime: day(-90), validTo: day(5) },
    { content: 'Ben lives in Rome again.', eventTime: day(1), validFrom: day(60) },
    ...[41, 57, 63].map((pallets) => ({ content: report(pallets), eventTime: day(1) })),
  ];
  await ann.addMemories(added.map((memory) => newMemory(memory)));
  await drain();
  clock.set(day(10));
  const textsOf = async (options: Partial<DiffOptions>) => {
    const window = { from: START, to: day(10), axis: 'recorded', fadedBelow: 0, limit: 50, filter: {} } as const;
    const { counts, degraded, added, ended } = await ann.diff({ ...window, ...options });
    const lists = [added, ended].map((list) => list.map(({ memory }) => memory.content).sort());
    return { counts: [counts.added, counts.ended], degraded, lists };
  };
  const [past, future] = [added[0]!.content, added[1]!.content];
  const ofBen = await textsOf({ topic: 'where does Ben live in Rome?' });
  expect(ofBen).toEqual({ counts: [2, 1], degraded: false, lists: [[past, future], [past]] });
  expect((await textsOf({ axis: 'valid', topic: 'where does Ben live in Rome?' })).lists[1]).toEqual([past]);
  const shipped = await textsOf({ topic: 'northern warehouse green coffee shipped' });
  expect(shipped.lists[0]).toEqual([41, 57, 63].map(report));
  // A question still finds none that does not hold, and one of those that are alike.
  const { hits } = await ann.query({ query: 'where does Ben live in Rome?', k: 50, filter: {} });
  expect(hits.map(({ memory }) => memory.content)).not.toContain(past);
}

import { expect, test } from 'vitest';
import { takeInTurn } from '../../../src/engine/readers/large-results.ts';
import { countTurns } from '../../support/turns-during.ts';

const KIB = 1024;

/** Returns the turns of the event loop in which results of these sizes are taken that arrive together. */
async function turnsOf(sizes: readonly number[]): Promise<number[]> {
  const turns = countTurns();
  const taken = sizes.map(
    (bytes) =>
      new Promise<number>((resolve) => {
        takeInTurn({ bytes, take: () => resolve(turns.turn) });
      }),
  );
  const all = await Promise.all(taken);
  turns.stop();
  return all;
}

test('a large result that comes alone is taken at once', async () => {
  let taken = 0;
  takeInTurn({ bytes: 5_000 * KIB, take: () => (taken += 1) });
  expect(taken).toBe(1);
  await new Promise(setImmediate);
});

test('of large results that arrive together each turn takes 256 KiB, or one, in their order', async () => {
  const alone = await turnsOf([300, 300, 300, 300, 300].map((kib) => kib * KIB));
  expect(new Set(alone).size).toBe(5);
  expect(alone).toEqual(alone.toSorted((a, b) => a - b));
  const byTurn = Object.values(Object.groupBy(await turnsOf(Array.from({ length: 9 }, () => 100 * KIB)), String));
  expect(Math.max(...byTurn.map((turn) => turn!.length))).toBe(2);
});

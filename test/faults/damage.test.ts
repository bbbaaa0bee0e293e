import { expect, test } from 'vitest';
import { makeTwoTenants, tryDamagedCopies } from '../support/damaged-copies.ts';

/** Failures name the seed of the copy, which damages it in the same way again. */
test('100 damaged copies end in clear errors, never in a hang, a crash or the text of another tenant', async () => {
  const seeds = Array.from({ length: 100 }, (_, seed) => seed);
  const { refused, wrong } = await tryDamagedCopies(await makeTwoTenants(), seeds);
  expect(wrong).toEqual([]);
  expect(refused).toBeGreaterThan(50);
});

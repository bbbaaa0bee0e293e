import { expect, test } from 'vitest';
import { makeTwoTenants, tryDamagedCopies } from '../support/damaged-copies.ts';
import { newKey } from '../support/sealed-folder.ts';

const seedsFrom = (first: number, copies: number) => Array.from({ length: copies }, (_, n) => first + n);

/** Failures name the seed of the copy, which damages it in the same way again. */
test('a damaged file ends in clear errors, never in a hang, a crash or the text of another tenant', async () => {
  const { refused, wrong } = await tryDamagedCopies(await makeTwoTenants(), seedsFrom(0, 24));
  expect(wrong).toEqual([]);
  expect(refused).toBeGreaterThan(12);
});

test('so does a damaged file that is encrypted', async () => {
  const settings = { OM_ENCRYPTION_KEY: newKey() };
  const { refused, wrong } = await tryDamagedCopies(await makeTwoTenants(settings), seedsFrom(0, 8), settings);
  expect(wrong).toEqual([]);
  // Every page that is read is refused; one of a table that no request of the copy reads may go unnoticed.
  expect(refused).toBeGreaterThanOrEqual(7);
});

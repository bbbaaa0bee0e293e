import { expect, test } from 'vitest';
import { makeTwoTenants, tryDamagedCopies } from '../support/damaged-copies.ts';

const COPIES = Number(process.env.COPIES ?? 20);
const FIRST = Number(process.env.FIRST ?? 0);

test('a damaged file ends in clear errors, never in a hang, a crash or the text of another tenant', async () => {
  const seeds = Array.from({ length: COPIES }, (_, n) => FIRST + n);
  const { refused, wrong } = await tryDamagedCopies(await makeTwoTenants(), seeds);
  expect(wrong).toEqual([]);
  expect(refused).toBeGreaterThan(COPIES / 4);
});

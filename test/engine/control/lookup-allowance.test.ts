import { expect, test } from 'vitest';
import { createLookupAllowance } from '../../../src/engine/control/lookup-allowance.ts';

test('twenty look-ups a second are allowed, and none is saved up for later', () => {
  let now = 0;
  const mayLookUp = createLookupAllowance(() => now);
  const allowed = () => Array.from({ length: 100 }, mayLookUp).filter(Boolean).length;
  expect(allowed()).toBe(20);
  now += 250;
  expect(allowed()).toBe(5);
  now += 60_000;
  expect(allowed()).toBe(20);
});

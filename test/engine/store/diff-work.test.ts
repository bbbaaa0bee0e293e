import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createFirstEntries } from '../../../src/engine/store/first-entries.ts';
import { diffWork } from '../../conformance/diff-work.ts';
import { openTestEngine } from '../../support/engine-fixture.ts';

test('a difference counts its rows while it reads them, and ends with its work', async () => {
  await using fixture = await openTestEngine();
  await diffWork(fixture);
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

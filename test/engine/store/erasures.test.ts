/** The chain of receipts of deletes. */
import { expect, test } from 'vitest';
import {
  addToErasure,
  closeErasure,
  giveUpErasure,
  listErasures,
  purgeErasures,
  verifyErasures,
} from '../../../src/engine/store/erasures.ts';
import type { Store } from '../../../src/engine/store/open-store.ts';
import { openTemporaryStore } from '../../support/temporary-store.ts';

function close(store: Store, id: string, now: number): void {
  const detail = { by: ['ids'], counts: { memories: 1 }, searched: ['file'] };
  store.write(() => closeErasure(store, { id, kind: 'memories', salt: 'A'.repeat(22) }, detail, { keyId: null, now }));
}

test.each([
  ['changed', `UPDATE erasures SET ids = '["x"]' WHERE id = 'receipt 2'`, 2],
  ['taken out', `DELETE FROM erasures WHERE id = 'receipt 2'`, 2],
  ['cut off the end', `DELETE FROM erasures WHERE id = 'receipt 3'`, 3],
])('a receipt that was %s is missed', (_, sql, brokenAt) => {
  using store = openTemporaryStore();
  for (const now of [1, 2, 3]) close(store, `receipt ${now}`, now);
  expect(verifyErasures(store)).toMatchObject({ records: 3, brokenAt: null });
  store.write(() => store.prepare(sql).run());
  expect(verifyErasures(store)).toMatchObject({ brokenAt });
  close(store, 'receipt 4', 4);
  expect(verifyErasures(store)).toMatchObject({ brokenAt });
});

test('receipts of deletes that broke off are removed as late as the others', () => {
  using store = openTemporaryStore();
  for (const now of [1, 2, 3]) {
    const erasure = { id: `open ${now}`, kind: 'memories', salt: 'A'.repeat(22) } as const;
    const erased = { ids: [`memory ${now}`], words: [], phrases: [] };
    store.write(() => addToErasure(store, erasure, erased, { keyId: null, now }));
  }
  // A delete that was given up.
  store.write(() => giveUpErasure(store, 'open 2'));
  close(store, 'closed', 3);
  const left = () => listErasures(store, { limit: 10, offset: 0 }).items.map(({ id }) => id);
  expect([store.write(() => purgeErasures(store, 3, 1)), left()]).toEqual([1, ['closed', 'open 3', 'open 2']]);
  expect([store.write(() => purgeErasures(store, 3, 10)), left()]).toEqual([1, ['closed', 'open 3']]);
  expect([store.write(() => purgeErasures(store, 4, 10)), left()]).toEqual([2, []]);
});

test('receipts that retention removed are not missed, the last one neither', () => {
  using store = openTemporaryStore();
  for (const now of [1, 2, 3]) close(store, `receipt ${now}`, now);
  expect(store.write(() => purgeErasures(store, 3, 10))).toBe(2);
  expect(verifyErasures(store)).toMatchObject({ records: 1, brokenAt: null });
  expect(store.write(() => purgeErasures(store, 4, 10))).toBe(1);
  expect(verifyErasures(store)).toMatchObject({ records: 0, brokenAt: null });
  close(store, 'receipt 4', 4);
  expect(verifyErasures(store)).toMatchObject({ records: 1, brokenAt: null });
});

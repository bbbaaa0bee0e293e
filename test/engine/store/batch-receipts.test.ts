import { expect, test } from 'vitest';
import { insertReceiptPart, readBatchReceipt } from '../../../src/engine/store/batch-receipts.ts';
import { openTestEngine, START } from '../../support/engine-fixture.ts';

test('a receipt compares each memory once with the changes since, however many items name it', async () => {
  await using fixture = await openTestEngine();
  const { tenant, store } = fixture;
  const [kept, changed] = [await fixture.add({ content: 'kept' }), await fixture.add({ content: 'before' })];
  const note = (first: number, isLast = false) => {
    const items = [kept, changed].map(({ id }, place) => ({
      ...{ item: first + place, fate: 'merged' as const, memoryId: id, error: null },
      content: place === 0 ? 'kept' : first < 5 ? 'before' : 'after',
    }));
    const stored = { id: 'receipt', keyId: '', now: START };
    store.write(() => insertReceiptPart(store, { items, first, isLast }, stored));
  };
  for (const first of [1, 3]) note(first);
  await tenant.patchMemory(kept.id, { title: 'a title' });
  await tenant.patchMemory(changed.id, { content: 'after' });
  for (const first of [5, 7]) note(first, first === 7);

  const asked: string[] = [];
  const counted = { ...store, prepare: (sql: string) => (asked.push(sql), store.prepare(sql)) };
  const read = () => readBatchReceipt(counted, 'receipt', { limit: 10, offset: 0, since: 0 });
  expect(read().items.map(({ isHeld }) => isHeld)).toEqual([true, false, true, false, true, true, true, true]);
  expect(asked.filter((sql) => sql.includes('memory_revisions'))).toHaveLength(1);
  await tenant.deleteMemory(kept.id);
  expect(
    read()
      .items.map(({ memoryId, isHeld }) => [memoryId, isHeld])
      .slice(-2),
  ).toEqual([
    [null, false],
    [changed.id, true],
  ]);
});

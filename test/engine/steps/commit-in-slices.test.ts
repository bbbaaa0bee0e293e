import path from 'node:path';
import { expect, test } from 'vitest';
import { commitInSlices, isAlone } from '../../../src/engine/steps/commit-in-slices.ts';
import { openStore, type Store } from '../../../src/engine/store/open-store.ts';
import { putInfo } from '../../../src/engine/store/store-info.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const ITEMS = Array.from({ length: 30 }, (_, place) => place);

/**
 * Writes items that take longer than the shortest slice. @returns in how many transactions, and how to ask whether it
 * is alone now
 */
async function countSlices(store: Store, between: () => void): Promise<{ slices: number; isAloneNow: () => boolean }> {
  let slices = 0;
  const counted: Store = {
    ...store,
    write(work) {
      slices += 1;
      between();
      return store.write(work);
    },
  };
  await commitInSlices(
    () => counted,
    ITEMS,
    (current, item) => {
      putInfo(current, `item ${item}`, '');
      for (const until = performance.now() + 1.2; performance.now() < until;);
    },
  );
  return { slices, isAloneNow: () => isAlone(counted) };
}

test('slices are short for as long as others commit, and longer while nobody does', async () => {
  const file = path.join(tempFolder(), 'slices.sqlite');
  const store = openStore(file, { role: 'worker', create: true });
  const other = openStore(file, { role: 'worker' });
  let round = 0;
  const among = await countSlices(store, () => other.write(() => putInfo(other, 'round', `${round++}`)));
  const alone = await countSlices(store, () => {});
  expect(among.slices).toBe(ITEMS.length);
  expect(alone.slices).toBeLessThan(ITEMS.length);
  await expect.poll(alone.isAloneNow).toBe(true);
  other.write(() => putInfo(other, 'round', `${round++}`));
  expect(alone.isAloneNow()).toBe(false);
  const stored = store.prepare(`SELECT count(*) FROM store_info WHERE key LIKE 'item %'`).pluck().get();
  expect(stored).toBe(ITEMS.length);
  other.close();
  store.close();
});

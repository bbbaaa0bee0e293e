import { expect, test } from 'vitest';
import { appendRecall } from '../../../src/engine/store/recalls.ts';
import { openTestEngine } from '../../support/engine-fixture.ts';

test('an answer takes in the file about as many bytes as are counted against the bound of the log', async () => {
  await using fixture = await openTestEngine();
  const { store } = fixture;
  const { memoryNo } = await fixture.add({ content: 'The harbour ferry leaves.' });
  // As large as most candidates are: more than a quarter of a page, on which some layouts spill to another page.
  const candidate = { memoryNo, id: 'an id', data: JSON.stringify({ score: 'x'.repeat(1_100) }) };
  for (let n = 0; n < 40; n += 1) {
    store.write(() =>
      appendRecall(store, {
        recallId: `recall ${n}`,
        at: n,
        asked: { userIds: undefined, sessionIds: undefined },
        head: JSON.stringify({ question: 'x'.repeat(1_500) }),
        candidates: Array.from({ length: 13 }, () => candidate),
        supersededNos: [],
      }),
    );
  }
  const counted = fixture.get<number>('SELECT bytes FROM recall_total');
  const taken = fixture.get<number>(
    `SELECT sum(pgsize) FROM dbstat
     WHERE name IN (SELECT name FROM sqlite_schema WHERE tbl_name IN ('recalls', 'recall_candidates'))`,
  );
  expect(counted).toBeGreaterThan(40 * 13 * 1_100);
  expect(taken / counted).toBeLessThan(1.4);
});

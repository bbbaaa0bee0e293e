/** A memory may be an answer of all standing queries, so what supersedes it is compared with some of them at a time. */
import { expect, test } from 'vitest';
import { createSupersededFinder } from '../../../src/engine/store/superseded-answers.ts';
import { openTestEngine } from '../../support/engine-fixture.ts';

const QUERIES = 5_000;

test('the answers that a memory supersedes are read in slices, and each is told once', async () => {
  await using fixture = await openTestEngine();
  const { store, tenant } = fixture;
  const userId = 'ana-superseded';
  const older = await fixture.add({ content: 'The ferry leaves at noon.', userId });
  const other = await fixture.add({ content: 'A heron waits.', userId });
  await fixture.drain();
  store.write(() => {
    store.db.exec(
      `WITH RECURSIVE counted (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < ${QUERIES})
       INSERT INTO standing_queries (id, query, filter, given, created_at)
         SELECT 'superseded ' || n, 'tower', '{}', '{}', 0 FROM counted`,
    );
    store.db
      .prepare('INSERT INTO standing_answers (query_no, memory, at) SELECT query_no, ?, 0 FROM standing_queries')
      .run(older.memoryNo);
  });
  const newer = await fixture.add({ content: 'It leaves at one.', userId, supersedes: older.id });
  await fixture.drain();
  store.read(() => {
    const find = createSupersededFinder(store, [newer.memoryNo, other.memoryNo], 10);
    const wanted = (from: number) => Array.from({ length: 10 }, (_, n) => [from + n, older.memoryNo]);
    expect([...find(newer.memoryNo, 0)]).toEqual(wanted(1));
    expect([...find(newer.memoryNo, 10)]).toEqual(wanted(11));
    expect(find(other.memoryNo, 0).size).toBe(0);
  });

  const told = () => fixture.get<number>('SELECT count(*) FROM standing_answers WHERE supersedes = ?', older.memoryNo);
  expect(await tenant.tendStanding(new AbortController().signal)).toBe('busy');
  expect(told()).toBeLessThan(QUERIES);
  while ((await tenant.tendStanding(new AbortController().signal)) === 'busy');
  expect(told()).toBe(QUERIES);
});

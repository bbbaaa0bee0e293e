import { expect, test } from 'vitest';
import { DAY_MS } from '../../../src/engine/dynamics.ts';
import { runDueSchedules } from '../../../src/engine/upkeep/maintain.ts';
import { openTestEngine, START } from '../../support/engine-fixture.ts';

test('cached vectors go once nobody needed them for so many days, in more than one slice', async () => {
  await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none', OM_EMBED_CACHE_DAYS: '7' } });
  const { store, maintenance, clock } = fixture;
  const put = (from: number, count: number, at: number) =>
    store.write(() => {
      const insert = store.prepare('INSERT INTO embedding_cache VALUES (1, ?, ?, ?)');
      for (let number = from; number < from + count; number++)
        insert.run(Buffer.from(String(number).padStart(16)), Buffer.alloc(4), at);
    });
  put(0, 1_200, START);
  put(2_000, 5, START + 3 * DAY_MS);
  const left = () => fixture.get<number>('SELECT count(*) FROM embedding_cache');
  clock.advance(7 * DAY_MS - 1_000);
  await runDueSchedules(maintenance);
  expect(left()).toBe(1_205);
  clock.advance(DAY_MS);
  await runDueSchedules(maintenance);
  expect(left()).toBe(5);
});

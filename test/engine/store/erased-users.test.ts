/** The number of an erased user is given to nobody else while the change feed has events of it. */
import { expect, test } from 'vitest';
import { purgeEvents } from '../../../src/engine/store/events.ts';
import { openTestEngine } from '../../support/engine-fixture.ts';

test('the number of an erased user is kept with its events, also after a clock was set back', async () => {
  await using fixture = await openTestEngine();
  const { tenant } = fixture;
  const { store } = fixture.batch.open();
  await fixture.add({ content: 'Of nobody.', userId: 'ana' });
  const { id } = await fixture.add({ content: 'Of somebody.', userId: 'ben' });
  const numberOf = (user: string) =>
    store.prepare('SELECT user_no FROM users WHERE user_id = ?').pluck().get(user) as number;
  const number = numberOf('ben');
  const setTimes = () => store.write(() => store.prepare('UPDATE events SET at = ?').run(Date.now() + 3_600_000));
  // The feed began while the clock was ahead by an hour.
  setTimes();
  await tenant.deleteMemory(id);
  const purge = (rows: number) => store.write(() => purgeEvents(store, { before: 0, rows, limit: 1_000 }));
  purge(1_000);
  await fixture.add({ content: 'Of a third.', userId: 'cleo' });
  expect(numberOf('cleo')).toBeGreaterThan(number);
  const kept = () => store.prepare('SELECT count(*) FROM erased_users').pluck().get();
  expect(kept()).toBe(1);
  // Without events of it the number may go, once the oldest event is later than the erasure.
  setTimes();
  purge(1);
  expect(kept()).toBe(0);
});

import path from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { migrate } from '../../../src/engine/store/migrate.ts';
import {
  BOUNDS_SETTINGS,
  boundsAnswers,
  boundsTenant,
  boundsUser,
  boundsWebhook,
  countsRetries,
  notes,
  notesReadyMemories,
  outlivesSetBackClock,
} from '../../conformance/standing-bounds.ts';
import { newMemory, openTestEngine, type TestEngine } from '../../support/engine-fixture.ts';
import { unpackFixture } from '../../support/schema-fixture.ts';

test.each([
  ['for a webhook', boundsWebhook],
  ['for the webhooks of a user', boundsUser],
  ['for a tenant', boundsTenant],
  ['with those that are tried again', countsRetries],
  ['that the answers of one memory make', boundsAnswers],
])('deliveries that wait are bounded: %s', async (_, check) => {
  await using fixture = await openTestEngine({ settings: BOUNDS_SETTINGS });
  await check(fixture);
});

test('memories that wait to be encoded are not noted for standing queries', async () => {
  await using fixture = await openTestEngine({ settings: BOUNDS_SETTINGS });
  await notesReadyMemories(fixture);
});

test('deliveries and comparisons do not wait for a clock that was set back', async () => {
  await using fixture = await openTestEngine({ settings: BOUNDS_SETTINGS });
  await outlivesSetBackClock(fixture);
});

test('a file of an earlier schema loses the notes of memories that wait to be encoded, and no others', () => {
  const file = unpackFixture(21);
  const db = new Database(file);
  db.exec(`INSERT INTO standing_queries (id, query, filter, given, created_at) VALUES ('q', 'ferry', '{}', '{}', 0);
    INSERT INTO standing_due (memory) SELECT seq FROM memory_dynamics`);
  const read = (condition: string) => db.prepare(`SELECT seq FROM memory_dynamics WHERE ${condition}`).pluck().all();
  expect(read(`state = 'queued'`)).toHaveLength(1);
  migrate(db, file, path.resolve(import.meta.dirname, '../../../src/engine/store/migrations'));
  expect(db.prepare('SELECT memory FROM standing_due ORDER BY memory').pluck().all()).toEqual(
    read(`state <> 'queued' ORDER BY seq`),
  );
  db.close();
});

test('nothing is compared and handed over while a tenant is over its quota of disk space', async () => {
  await using fixture = await openTestEngine({ settings: { ...BOUNDS_SETTINGS, OM_TENANT_MAX_MB: '8' } });
  const { tenant } = fixture;
  const about = { query: 'harbour ferry', filter: {}, given: {}, minScore: 0 };
  await tenant.createStandingQuery({ ...about, webhookUrl: 'http://127.0.0.1:9/hook' });
  await tenant.createWebhook({ url: 'http://127.0.0.1:9/hook', kinds: ['memory.stored'] });
  await tenant.addMemories([newMemory({ content: 'The ferry leaves the harbour.' })]);
  await fixture.drain();
  takeSpace(fixture, 9);
  const tend = () => tenant.tendStanding(AbortSignal.abort());
  expect(await tend()).toBe('idle');
  expect(counts(fixture)).toEqual({ answers: 0, deliveries: 0 });
  expect(notes(fixture)).toHaveLength(1);
  takeSpace(fixture, 0);
  while ((await tend()) === 'busy');
  expect(counts(fixture)).toEqual({ answers: 1, deliveries: 2 });
});

const counts = ({ get }: TestEngine) =>
  get('SELECT (SELECT count(*) FROM standing_answers) AS answers, (SELECT count(*) FROM deliveries) AS deliveries');

/** Makes a row of that many MB in place of an earlier one. */
function takeSpace({ store }: TestEngine, mb: number): void {
  const put = `INSERT OR REPLACE INTO store_info (key, value) VALUES ('space', printf('%.*c', ?, 'x'))`;
  store.write(() => store.prepare(put).run(mb * 1024 * 1024));
}

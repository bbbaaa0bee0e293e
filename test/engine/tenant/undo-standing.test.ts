/** An undo of a key takes along the standing queries and webhooks that the key registered. */
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { eraseStanding } from '../../../src/engine/commands/standing.ts';
import { erasesNames, undoStanding, UNDO_SETTINGS } from '../../conformance/undo-standing.ts';
import { openTestEngine } from '../../support/engine-fixture.ts';
import { runCommand } from '../../support/run-command.ts';
import { unpackFixture } from '../../support/schema-fixture.ts';

/** Last schema whose standing queries and webhooks name no writer. */
const WITHOUT_WRITERS = 19;

test('what a key registered goes with its answers and deliveries, and what others registered stays', async () => {
  await using fixture = await openTestEngine({ settings: UNDO_SETTINGS });
  await undoStanding(fixture);
});

test('an erasure of a user leaves the name in no delivery that was made meanwhile', async () => {
  await using fixture = await openTestEngine({ settings: UNDO_SETTINGS });
  await erasesNames(fixture);
});

test('any number of standing queries and webhooks of a key are removed in bounded commits, and all are counted', async () => {
  await using fixture = await openTestEngine();
  const { store, tenant } = fixture;
  await tenant.as('leaked').createStandingQuery({ query: 'x', filter: {}, given: {} });
  store.write(() => {
    store
      .prepare(
        `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1499)
         INSERT INTO standing_queries (id, query, filter, given, created_at, writer_no)
         SELECT 'q' || i, 'x', '{}', '{}', 1, writer_no FROM n, writers WHERE key_id = 'leaked'`,
      )
      .run();
    store
      .prepare(
        `INSERT INTO webhooks (id, query_no, url, kinds, secret, since_no, created_at, writer_no)
         SELECT 'h' || query_no, query_no, 'https://example.com', '[]', '', 0, 1, writer_no FROM standing_queries`,
      )
      .run();
  });
  const owner = { writtenBy: ['leaked'] };
  const erase = () => runCommand(fixture, (context) => eraseStanding(context, { owner, limit: 1_000 }));
  expect([erase(), erase(), erase()]).toEqual([
    { webhooks: 1_000, standingQueries: 0, isDone: false },
    { webhooks: 500, standingQueries: 1_000, isDone: false },
    { webhooks: 0, standingQueries: 500, isDone: true },
  ]);
});

test('what was registered before there were writers has none, and no undo removes it', async () => {
  const file = unpackFixture(WITHOUT_WRITERS);
  const db = new Database(file);
  db.exec(`INSERT INTO standing_queries (id, query, filter, given, created_at) VALUES ('q', 'x', '{}', '{}', 1);
    INSERT INTO webhooks (id, url, kinds, secret, since_no, created_at) VALUES ('h', 'https://example.com', '[]', '', 0, 1)`);
  db.close();
  await using fixture = await openTestEngine({ file });
  const { tenant } = fixture;
  expect(await tenant.getStandingQuery('q')).toMatchObject({ writtenBy: null });
  expect(await tenant.getWebhook('h')).toMatchObject({ writtenBy: null });
  expect(await tenant.deleteMemories({ writtenBy: ['leaked'] })).toMatchObject({ standingQueries: 0, webhooks: 0 });
  expect((await tenant.listWebhooks({ limit: 9, offset: 0 })).total).toBe(1);
});

import { afterAll, describe, expect, test } from 'vitest';
import { openBlockingConnection } from '../../src/engine/store/postgres/blocking-connection.ts';
import { migrateSchema } from '../../src/engine/store/postgres/migrate-schema.ts';
import {
  BOUNDS_SETTINGS,
  boundsAnswers,
  boundsUser,
  boundsWebhook,
  countsRetries,
  notesReadyMemories,
  outlivesSetBackClock,
} from '../conformance/standing-bounds.ts';
import { UNDO_FROM_0021 } from '../support/earlier-schema.ts';
import { openTestEngine } from '../support/engine-fixture.ts';
import { startPostgres } from '../support/postgres.ts';

/** Statements that take the schema back to where the migration of bounds begins. */
const TO_EARLIER = `${UNDO_FROM_0021};
  DROP TRIGGER standing_of_queued_memories ON memory_dynamics;
  DROP FUNCTION standing_of_queued_memories;
  ALTER TABLE webhooks DROP COLUMN room, DROP COLUMN counted_at, DROP COLUMN dropped, DROP COLUMN dropped_at;
  ALTER TABLE webhook_cursor DROP COLUMN room, DROP COLUMN counted_at;
  ALTER TABLE session_logs DROP COLUMN operations_no; UPDATE schema_version SET version = 18`;

const server = await startPostgres();
describe.skipIf(server === undefined)('in PostgreSQL', () => {
  afterAll(() => server?.stop());
  const open = (url: string) => openTestEngine({ settings: { ...BOUNDS_SETTINGS, OM_DATABASE_URL: url } });

  test.each([
    ['for a webhook', boundsWebhook],
    ['for the webhooks of a user', boundsUser],
    ['with those that are tried again', countsRetries],
    ['that the answers of one memory make', boundsAnswers],
  ])('deliveries that wait are bounded: %s', async (_, check) => {
    await using fixture = await open(await server!.createSchema());
    await check(fixture);
  });

  test('memories that wait to be encoded are not noted for standing queries', async () => {
    await using fixture = await open(await server!.createSchema());
    await notesReadyMemories(fixture);
  });

  test('deliveries and comparisons do not wait for a clock that was set back', async () => {
    await using fixture = await open(await server!.createSchema());
    await outlivesSetBackClock(fixture);
  });

  test('a database of an earlier schema loses the notes of memories that wait to be encoded, and no others', async () => {
    const url = await server!.createSchema();
    const fixture = await open(url);
    await fixture.add({ content: 'The ferry leaves.' });
    await fixture.drain();
    await fixture.add({ content: 'It waits.' });
    await fixture.close();
    const connection = openBlockingConnection(url);
    connection.query(TO_EARLIER);
    await server!.read(
      url,
      'INSERT INTO standing_due (tenant, due_no, memory) SELECT tenant, seq, seq FROM memory_dynamics',
    );
    migrateSchema(connection);
    connection.close();
    const left = await server!.read(
      url,
      'SELECT d.state FROM standing_due s JOIN memory_dynamics d ON d.tenant = s.tenant AND d.seq = s.memory',
    );
    expect(left).toEqual([{ state: 'ready' }]);
  });
});

/** Receipts of deletes of documents in PostgreSQL name what these deletes have erased, and nothing else. */
import { afterAll, describe, expect, test } from 'vitest';
import { ERASING_CHECKS } from '../conformance/erasing-documents.ts';
import { openTestEngine } from '../support/engine-fixture.ts';
import { startPostgres } from '../support/postgres.ts';

const server = await startPostgres();
describe.skipIf(server === undefined)('in PostgreSQL', () => {
  afterAll(() => server?.stop());

  test.each(ERASING_CHECKS)('%s', async (_, check) => {
    await using fixture = await openTestEngine({ settings: { OM_DATABASE_URL: await server!.createSchema() } });
    expect.hasAssertions();
    const { tenant, batch, clock, maintenance } = fixture;
    await check({ tenant, batch, clock, maintenance, store: batch.open().store, drain: () => fixture.drain() });
  });
});

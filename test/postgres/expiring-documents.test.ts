/** A document in PostgreSQL lives until the last of its versions expires, and what has expired is found by nobody. */
import { afterAll, describe, expect, test } from 'vitest';
import { EXPIRING_CHECKS, EXPIRING_SETTINGS } from '../conformance/expiring-documents.ts';
import { openTestEngine } from '../support/engine-fixture.ts';
import { startPostgres } from '../support/postgres.ts';

const server = await startPostgres();
describe.skipIf(server === undefined)('in PostgreSQL', () => {
  afterAll(() => server?.stop());

  test.each(EXPIRING_CHECKS)('%s', async (_, check) => {
    const settings = { ...EXPIRING_SETTINGS, OM_DATABASE_URL: await server!.createSchema() };
    await using fixture = await openTestEngine({ settings });
    expect.hasAssertions();
    await check(fixture);
  });
});

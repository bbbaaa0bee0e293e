/** The quota of memories holds for documents of a tenant in PostgreSQL, too. */
import { afterAll, describe, test } from 'vitest';
import { expectToWaitForRoom, expectWaitingToCount } from '../support/document-quota.ts';
import { startPostgres } from '../support/postgres.ts';

const server = await startPostgres();
describe.skipIf(server === undefined)('the quota of memories', () => {
  afterAll(() => server?.stop());

  test('counts documents that wait', async () =>
    expectWaitingToCount({ OM_DATABASE_URL: await server!.createSchema() }));

  test('makes a document wait for room', async () =>
    expectToWaitForRoom({ OM_DATABASE_URL: await server!.createSchema() }));
});

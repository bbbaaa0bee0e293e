import { afterAll, describe, test } from 'vitest';
import { EXPIRED_NAMES } from '../conformance/expired-names.ts';
import { openTestEngine } from '../support/engine-fixture.ts';
import { startPostgres } from '../support/postgres.ts';

const server = await startPostgres();
describe.skipIf(server === undefined)('in PostgreSQL', () => {
  afterAll(() => server?.stop());

  test.each(EXPIRED_NAMES)('what has got the name of an expired memory %s', async (_, check) => {
    await using fixture = await openTestEngine({ settings: { OM_DATABASE_URL: await server!.createSchema() } });
    await check(fixture);
  });
});

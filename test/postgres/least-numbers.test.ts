import { afterAll, describe, test } from 'vitest';
import { leastSalience } from '../conformance/least-salience.ts';
import { openTestEngine } from '../support/engine-fixture.ts';
import { startPostgres } from '../support/postgres.ts';

const server = await startPostgres();
describe.skipIf(server === undefined)('in PostgreSQL', () => {
  afterAll(() => server?.stop());

  test('the least saliences and rates of decay fade to 0, or not at all', async () => {
    await using fixture = await openTestEngine({ settings: { OM_DATABASE_URL: await server!.createSchema() } });
    await leastSalience(fixture);
  });
});

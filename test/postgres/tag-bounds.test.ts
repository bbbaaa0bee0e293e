import { afterAll, describe, test } from 'vitest';
import { TAG_BOUNDS } from '../conformance/tag-bounds.ts';
import { openTestEngine } from '../support/engine-fixture.ts';
import { startPostgres } from '../support/postgres.ts';

const server = await startPostgres();
describe.skipIf(server === undefined)('in PostgreSQL', () => {
  afterAll(() => server?.stop());

  test.each(TAG_BOUNDS)('a key that is bound to tags is not told of %s', async (_, check) => {
    await using fixture = await openTestEngine({ settings: { OM_DATABASE_URL: await server!.createSchema() } });
    await check(fixture);
  });
});

/** An undo of a leaked key restores what the key changed, with what follows from it, in PostgreSQL. */
import { afterAll, describe } from 'vitest';
import { testUndoneChanges } from '../conformance/undo-changes.ts';
import { startPostgres } from '../support/postgres.ts';

const server = await startPostgres();
describe.skipIf(server === undefined)('an undo in PostgreSQL', () => {
  afterAll(() => server?.stop());
  testUndoneChanges(async () => ({ OM_DATABASE_URL: await server!.createSchema() }));
});

/** A memory in PostgreSQL is linked to its next neighbour if the nearest one is erased meanwhile. */
import { afterAll, describe } from 'vitest';
import { testErasedNeighbour } from '../conformance/erased-neighbour.ts';
import { startPostgres } from '../support/postgres.ts';

const server = await startPostgres();
describe.skipIf(server === undefined)('the link step', () => {
  afterAll(() => server?.stop());
  testErasedNeighbour(async () => ({ OM_DATABASE_URL: await server!.createSchema() }));
});

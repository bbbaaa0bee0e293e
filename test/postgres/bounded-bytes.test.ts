/** One commit rewrites and erases a bounded number of bytes in PostgreSQL, too. */

import { afterAll, describe, expect, test } from 'vitest';
import { dissolvesByBytes, erasesReflectionsByBytes, movesAfterErasing } from '../conformance/bounded-bytes.ts';
import { openTestEngine } from '../support/engine-fixture.ts';
import { startPostgres } from '../support/postgres.ts';

const server = await startPostgres();
describe.skipIf(server === undefined)('in PostgreSQL', () => {
  afterAll(() => server?.stop());

  test.each([
    ['expired items that a moved one replaces are erased in small commits before the move', movesAfterErasing],
    ['long reflections on an erased memory are erased a few in a commit', erasesReflectionsByBytes],
    ['long consolidations are dissolved a few in a commit', dissolvesByBytes],
  ])('%s', async (_, check) => {
    await using fixture = await openTestEngine({ settings: { OM_DATABASE_URL: await server!.createSchema() } });
    expect.hasAssertions();
    const { tenant, batch, clock } = fixture;
    await check({ tenant, batch, clock, store: batch.open().store });
  });
});

/** A commit writes the words of few long memories anew in PostgreSQL, too. */
import { afterAll, describe, expect, test } from 'vitest';
import { addsBefore, erasesBefore, patchesTime, undoesFew } from '../conformance/waiting-words.ts';
import { openTestEngine } from '../support/engine-fixture.ts';
import { startPostgres } from '../support/postgres.ts';

const server = await startPostgres();
describe.skipIf(server === undefined)('in PostgreSQL', () => {
  afterAll(() => server?.stop());

  test.each([
    ['a memory that moves before and after long ones', patchesTime],
    ['a memory that goes from before long ones', erasesBefore],
    ['a new memory before long ones', addsBefore],
    ['undoing what a key did to long memories', undoesFew],
  ])('%s makes the word index write few of them in a commit', async (_, check) => {
    await using fixture = await openTestEngine({ settings: { OM_DATABASE_URL: await server!.createSchema() } });
    expect.hasAssertions();
    const { engine, tenant, batch, clock } = fixture;
    await check({ engine, tenant, batch, clock, store: batch.open().store });
  });
});

/** One commit does a bounded amount of work in PostgreSQL, too. */
import { afterAll, describe, expect, test } from 'vitest';
import {
  archivesFew,
  importsByWork,
  passesNoHidden,
  purgesFewReceipts,
  walksFewChains,
} from '../conformance/bounded-work.ts';
import { openTestEngine } from '../support/engine-fixture.ts';
import { startPostgres } from '../support/postgres.ts';

const server = await startPostgres();
describe.skipIf(server === undefined)('in PostgreSQL', () => {
  afterAll(() => server?.stop());

  test.each([
    ['a link between long chains', walksFewChains],
    ['a new text of a memory on which long reflections rest', archivesFew],
    ['the removal of old receipts of deletes', purgesFewReceipts],
    ['the expiry of many documents', passesNoHidden],
    ['an import of lines with long labels', importsByWork],
  ])('%s goes on in another commit after a bounded amount of work', async (_, check) => {
    await using fixture = await openTestEngine({ settings: { OM_DATABASE_URL: await server!.createSchema() } });
    expect.hasAssertions();
    const { tenant, batch, clock, maintenance } = fixture;
    await check({ tenant, batch, clock, maintenance, store: batch.open().store });
  });
});

/** The round trips of an erasure within tags that meets parts of documents without these tags. */
import { afterAll, describe, expect, test } from 'vitest';
import { deleteMatching } from '../../src/engine/commands/erase.ts';
import type { WriteContext } from '../../src/engine/commands/write-context.ts';
import { tripTotals } from '../../src/engine/store/postgres/connection-channel.ts';
import { newMemory, openTestEngine, type TestEngine } from '../support/engine-fixture.ts';
import { importDocument } from '../support/import-document.ts';
import { runCommand } from '../support/run-command.ts';
import { startPostgres } from '../support/postgres.ts';

const DOCUMENTS = 20;
/** Greatest number of round trips of a write that erases one memory and leaves the documents. */
const MOST_TRIPS = 60;

const server = await startPostgres();
describe.skipIf(server === undefined)('an erasure within tags in PostgreSQL', () => {
  afterAll(() => server?.stop());

  test('reads the tags of documents together, and leaves the parts of those that lack one', async () => {
    await using fixture = await openTestEngine({ settings: { OM_DATABASE_URL: await server!.createSchema() } });
    const { tenant, batch, clock } = fixture;
    const { store } = batch.open();
    for (let no = 0; no < DOCUMENTS; no += 1) await importDocument(tenant, ['work']);
    await tenant.addMemories([newMemory({ content: 'The ferry leaves.', tags: ['work'] })]);
    store.write(() => store.prepare(`UPDATE document_generations SET tags = '[]'`).run());
    const memoryNos = store.prepare('SELECT seq FROM memories ORDER BY seq').pluck().all() as number[];
    const erase = (context: WriteContext) => deleteMatching(context, { filter: { withinTags: ['work'] }, memoryNos });
    const before = tripTotals().trips;
    const { receipt } = runCommand({ batch, clock, store } as unknown as TestEngine, erase);
    expect([receipt.memories, receipt.documents]).toEqual([1, 0]);
    expect(tripTotals().trips - before).toBeLessThanOrEqual(MOST_TRIPS);
    expect(memoryNos).toHaveLength(2 * DOCUMENTS + 1);
  });
});

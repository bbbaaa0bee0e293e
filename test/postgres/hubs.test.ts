/** Memories with very many links in PostgreSQL: what is done with them ends as in a file. */
import { afterAll, describe, test } from 'vitest';
import { eraseMemories } from '../../src/engine/commands/erase.ts';
import { undoLinks } from '../../src/engine/commands/undo-writer.ts';
import { readsFirstOfEqualLinks, settlesHubOnce, walksHub } from '../conformance/hubs.ts';
import { archivesManyReflections } from '../conformance/many-reflections.ts';
import { openTestEngine, type TestEngine } from '../support/engine-fixture.ts';
import { startPostgres } from '../support/postgres.ts';
import { runCommand } from '../support/run-command.ts';

const server = await startPostgres();
describe.skipIf(server === undefined)('in PostgreSQL', () => {
  afterAll(() => server?.stop());

  test('a memory that lost many contradictions is settled once in a commit that removes them', async () => {
    await using fixture = await openTestEngine({ settings: { OM_DATABASE_URL: await server!.createSchema() } });
    const { batch, clock } = fixture;
    const own = { batch, clock, store: batch.open().store } as unknown as TestEngine;
    await settlesHubOnce(fixture, {
      erase: (memoryNos) => runCommand(own, (context) => eraseMemories(context, memoryNos)),
      undo: (writtenBy) => runCommand(own, (context) => undoLinks(context, { writtenBy, limit: 100 })),
    });
  });

  test('reflections that one commit cannot find are archived in small commits ahead of the change', async () => {
    await using fixture = await openTestEngine({ settings: { OM_DATABASE_URL: await server!.createSchema() } });
    const { batch, clock } = fixture;
    await archivesManyReflections(fixture, { batch, clock, store: batch.open().store } as unknown as TestEngine);
  });

  test('a chain with a memory that superseded many others is walked as any other', async () => {
    await using fixture = await openTestEngine({ settings: { OM_DATABASE_URL: await server!.createSchema() } });
    await walksHub(fixture);
  });

  test('the first links of equal weight are read in the same order as from a file', async () => {
    await using fixture = await openTestEngine({ settings: { OM_DATABASE_URL: await server!.createSchema() } });
    await readsFirstOfEqualLinks(fixture);
  });
});

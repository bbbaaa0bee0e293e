/** One commit rewrites and erases a bounded number of bytes in PostgreSQL, too. */

import { afterAll, describe, expect, test } from 'vitest';
import {
  archivesByBytes,
  deletesWhatItBegan,
  deletesWhatItChecked,
  dissolvesByBytes,
  endsByBytes,
  endsInUpkeep,
  erasesReflectionsByBytes,
  keepsLastEvents,
  movesAfterErasing,
  recordsAllSlices,
  releasesByBytes,
  supersedesByBytes,
} from '../conformance/bounded-bytes.ts';
import { erasesBroadReflection, erasesGivenReflections, erasesLongChain } from '../conformance/deep-reflections.ts';
import { openTestEngine } from '../support/engine-fixture.ts';
import { startPostgres } from '../support/postgres.ts';

const server = await startPostgres();
describe.skipIf(server === undefined)('in PostgreSQL', () => {
  afterAll(() => server?.stop());

  test.each([
    ['expired items that a moved one replaces are erased in small commits before the move', movesAfterErasing],
    ['long reflections on an erased memory are erased a few in a commit', erasesReflectionsByBytes],
    ['a delete in several commits ends as it began, whatever is written between them', deletesWhatItChecked],
    ['a delete of an item ends what it began, though another memory gets its name', deletesWhatItBegan],
    ['the audit log counts what all commits of a delete have erased', recordsAllSlices],
    ['a long chain of reflections is erased a part in a commit, which walks only that', erasesLongChain],
    ['memories to be erased that rest on reflections go in commits of a bounded size', erasesGivenReflections],
    ['a reflection on which very many others rest is erased in small commits', erasesBroadReflection],
    ['long superseded memories end anew a few in a commit', endsByBytes],
    ['superseded memories that an interrupted change has left end anew in the upkeep', endsInUpkeep],
    ['long memories are settled a few in a commit before the one goes that changed them', releasesByBytes],
    ['an add or import supersedes a few long memories in a commit', supersedesByBytes],
    ['long faded memories are archived a few in a commit', archivesByBytes],
    ['the timeline of a job keeps its last events', keepsLastEvents],
    ['long consolidations are dissolved a few in a commit', dissolvesByBytes],
  ])('%s', async (_, check) => {
    await using fixture = await openTestEngine({ settings: { OM_DATABASE_URL: await server!.createSchema() } });
    expect.hasAssertions();
    const { tenant, batch, clock, maintenance } = fixture;
    await check({ tenant, batch, clock, maintenance, store: batch.open().store });
  });
});

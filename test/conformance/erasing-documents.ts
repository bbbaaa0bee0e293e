/** A document that a delete has hidden is erased by this delete, and recorded in its receipt. */
import { expect } from 'vitest';
import type { WriteContext } from '../../src/engine/commands/write-context.ts';
import type { OpenErasure } from '../../src/engine/types.ts';
import { tendDocuments } from '../../src/engine/upkeep/tend-documents.ts';
import { WRITE_COMMANDS } from '../../src/engine/writer/commands.ts';
import { newMemory, type TestEngine } from '../support/engine-fixture.ts';
import { newDocument, upload } from '../support/new-document.ts';
import { runCommand } from '../support/run-command.ts';

/** What a check needs: a tenant without data, and the store on which single commands run. */
export type ErasingFixture = Pick<TestEngine, 'tenant' | 'batch' | 'clock' | 'maintenance' | 'drain'> & {
  readonly store: WriteContext['store'];
};

const BENS: OpenErasure = { id: 'bens', kind: 'document', salt: 'a salt' };

const run = <T>(fixture: ErasingFixture, command: (context: WriteContext) => T): T =>
  runCommand(fixture as unknown as TestEngine, command);

/** Adds a document of Ben, and runs the first commit of its delete. @returns the ids of its memories */
async function beginDelete(fixture: ErasingFixture): Promise<string[]> {
  const { tenant } = fixture;
  const text = Array.from({ length: 120 }, (_, no) => `# Heron ${no}\n\n${`word${no} `.repeat(300)}`).join('\n\n');
  const { document } = await tenant.addDocument(newDocument(await upload(tenant, text), { userId: 'ben' }));
  await fixture.drain();
  const ids = fixture.store.prepare('SELECT id FROM memories').pluck().all() as string[];
  run(fixture, (context) => WRITE_COMMANDS.deleteDocument(context, { id: document.id, erasure: BENS }));
  expect(ids.length).toBeGreaterThan(30);
  return ids.sort();
}

const countMemories = ({ store }: ErasingFixture): number =>
  store.prepare('SELECT count(*) FROM memories').pluck().get() as number;

/** Checks deletes by others, and the upkeep, between two commits of a delete. */
export async function leavesToOthers(fixture: ErasingFixture): Promise<void> {
  const { tenant } = fixture;
  const bens = await beginDelete(fixture);
  await tenant.addMemories([newMemory({ content: 'a memory of Ana', userId: 'ana' })]);
  const deleted = await tenant.deleteMemories({ userIds: ['ana'] });
  expect(deleted).toMatchObject({ memories: 1, documents: 0 });
  // It would match, but is being erased already.
  expect(await tenant.deleteMemories({ userIds: ['ben'] })).toMatchObject({ memories: 0, documents: 0 });
  await tendDocuments(fixture.maintenance);
  expect((await tenant.getErasure(deleted.erasure!.split('.')[0]!)).ids).toHaveLength(1);

  expect(countMemories(fixture)).toBe(bens.length);
  const erase = () => run(fixture, (context) => WRITE_COMMANDS.eraseAbandoned(context, { limit: 100, erasure: BENS }));
  while (!erase().isDone);
  expect([countMemories(fixture), [...(await tenant.getErasure(BENS.id)).ids].sort()]).toEqual([0, bens]);
}

/** Checks that the upkeep erases what a delete has left that broke off. */
export async function goesOnAfterBreak(fixture: ErasingFixture): Promise<void> {
  const { tenant, clock, maintenance } = fixture;
  const bens = await beginDelete(fixture);
  clock.advance(14 * 60_000);
  await tendDocuments(maintenance);
  expect(countMemories(fixture)).toBe(bens.length);
  clock.advance(2 * 60_000);
  await tendDocuments(maintenance);
  expect(fixture.store.prepare('SELECT count(*) FROM documents').pluck().get()).toBe(0);
  expect([countMemories(fixture), [...(await tenant.getErasure(BENS.id)).ids].sort()]).toEqual([0, bens]);
}

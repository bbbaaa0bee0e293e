import { expect } from 'vitest';
import { archiveReflections } from '../../src/engine/commands/archive-reflections.ts';
import { patchMemory } from '../../src/engine/commands/patch.ts';
import { newMemory, type TestEngine } from '../support/engine-fixture.ts';
import { runCommand } from '../support/run-command.ts';

/** Number of reflections on one memory: more than one commit searches for. */
const REFLECTIONS = 1_200;

/**
 * Checks that the text of a memory with very many reflections changes in commits that are all small, and that no
 * reflection is active once it has changed.
 * @param own the fixture with the store of its engine, on which single commands run
 */
export async function archivesManyReflections({ tenant }: TestEngine, own: TestEngine): Promise<void> {
  const { store } = own;
  const count = (status: string): unknown =>
    store.prepare('SELECT count(*) FROM memory_dynamics WHERE status = ?').pluck().get(status);
  const lastNo = () => store.prepare('SELECT max(seq) FROM memories').pluck().get() as number;
  const idOf = async (content: string, from: readonly string[] = []) => {
    const derived = from.length === 0 ? [] : [{ item: 0, from }];
    const { outcomes } = await tenant.addMemories([newMemory({ content })], { derived });
    return outcomes[0]?.kind === 'accepted' ? outcomes[0].id : '';
  };
  const source = await idOf('the source');
  for (let at = 0; at < REFLECTIONS; at += 100) {
    const some = Array.from({ length: 100 }, (_, no) => newMemory({ content: `conclusion ${at + no}` }));
    await tenant.addMemories(some, { derived: some.map((_, item) => ({ item, from: [source] })) });
  }
  const first = (await tenant.listReflections('', 2_000)).at(-1)!.id;
  const second = await idOf('what follows from a conclusion', [first]);
  const other = await idOf('another source');

  const once = (content: string, archivedTo?: number) =>
    runCommand(own, (context) => patchMemory(context, { id: source, patch: { content }, archivedTo }));
  expect(once('the new source')).toBe('many reflections');
  expect([count('archived'), count('active')]).toEqual([0, REFLECTIONS + 3]);

  // If the process ends between two commits, the source has its old text, and what is still active was drawn from it.
  const memoryNos = Array.from({ length: 100 }, (_, no) => lastNo() - 500 + no);
  runCommand(own, (context) => archiveReflections(context, { memoryNos }));
  expect([count('archived'), (await tenant.getMemory(source)).content]).toEqual([100, 'the source']);

  expect(await tenant.patchMemory(source, { content: 'the new source' })).toMatchObject({ version: 2 });
  expect([count('archived'), count('active')]).toEqual([REFLECTIONS + 1, 2]);
  expect((await tenant.getMemory(second)).status).toBe('archived');

  // What was concluded after the reflections were listed is found by its number, and archived with the change.
  const listedAt = lastNo();
  const late = [await idOf('a late conclusion', [source]), await idOf('one more step', [second])];
  const unrelated = await idOf('of the other source', [other]);
  expect(once('the newest source', listedAt)).toMatchObject({ memory: { version: 3 } });
  const statuses = await Promise.all([...late, unrelated].map(async (id) => (await tenant.getMemory(id)).status));
  expect(statuses).toEqual(['archived', 'archived', 'active']);

  // A longer way to the source than one commit follows: the reflections are listed again.
  let last = unrelated;
  for (let step = 0; step < 12; step++) last = await idOf(`step ${step}`, [last]);
  expect(once('a text that waits', lastNo() - 1)).toBe('many reflections');
  expect(await tenant.patchMemory(source, { content: 'a text that waits' })).toMatchObject({ version: 4 });
  expect((await tenant.getMemory(last)).status).toBe('active');

  await tenant.patchMemory(other, { content: 'another text' });
  expect((await tenant.getMemory(last)).status).toBe('archived');
}

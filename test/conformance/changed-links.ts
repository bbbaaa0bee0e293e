/** Checks what becomes of memories when links that decide about them are made, weighted or taken back. */
import { expect } from 'vitest';
import { newMemory, type TestEngine, type TestMemory } from '../support/engine-fixture.ts';

async function add({ tenant, clock }: TestEngine, memory: TestMemory): Promise<string> {
  clock.advance(3_600_000);
  const { outcomes } = await tenant.addMemories([newMemory({ userId: 'ana', ...memory })]);
  return (outcomes[0] as { id: string }).id;
}

/** Adds a source, and a memory that is derived from it. @returns the ids of both */
async function addDerived(fixture: TestEngine, content: string): Promise<{ source: string; derived: string }> {
  const source = await add(fixture, { content: `The source of: ${content}` });
  const { outcomes } = await fixture.tenant.addMemories([newMemory({ userId: 'ana', content })], {
    derived: [{ item: 0, from: [source] }],
  });
  return { source, derived: (outcomes[0] as { id: string }).id };
}

/** Checks that an add of the text of a derived memory is stored, and outlives what that one is derived from. */
async function derivedIsNoDuplicate(fixture: TestEngine): Promise<void> {
  const { tenant } = fixture;
  const content = 'Ana likes trains.';
  const { source, derived } = await addDerived(fixture, content);
  const said = await add(fixture, { content });
  expect(said).not.toBe(derived);
  expect(await add(fixture, { content })).toBe(said);
  expect(await tenant.deleteMemory(source)).toMatchObject({ memories: 2 });
  expect(await tenant.getMemory(said)).toMatchObject({ content, status: 'active' });
}

/**
 * Checks that an undo leaves a memory superseded, and ended, by a link of another key, and that the memory has its own
 * status and end from before the undone changes once that link is removed.
 */
async function undoneStaysSuperseded(fixture: TestEngine): Promise<void> {
  const { tenant, clock } = fixture;
  const far = clock.now() + 1_000 * 86_400_000;
  const older = await Promise.all(['archived', 'ended', 'both'].map((content) => add(fixture, { content })));
  const [archived, ended, both] = older as [string, string, string];
  const leaked = tenant.as('leaked');
  await leaked.patchMemory(archived, { status: 'archived' });
  await leaked.patchMemory(ended, { validTo: far });
  await leaked.patchMemory(both, { status: 'archived', validTo: far });
  const starts = new Map<string, number>();
  for (const id of older) {
    const newId = await add(fixture, { content: `newer than ${id}` });
    await tenant.as('own').supersedeMemory({ oldId: id, newId });
    starts.set(newId, (await tenant.getMemory(newId)).eventTime);
  }
  const superseded = [...starts.values()].map((validTo) => ({ status: 'superseded', validTo }));
  const memories = () => Promise.all(older.map((id) => tenant.getMemory(id)));
  expect(await memories()).toMatchObject(superseded);
  expect(await tenant.as('own').deleteMemories({ writtenBy: ['leaked'] })).toMatchObject({ restored: 3 });
  expect(await memories()).toMatchObject(superseded);
  for (const [place, newId] of [...starts.keys()].entries())
    await tenant.unlinkMemories({ src: newId, dst: older[place]!, type: 'supersedes' });
  expect(await memories()).toMatchObject(Array(3).fill({ status: 'active', validTo: null }));
}

/** Checks that an undo leaves a memory contradicted, if another key decided that. */
async function undoneStaysContradicted(fixture: TestEngine): Promise<void> {
  const { tenant } = fixture;
  const [a, b] = [await add(fixture, { content: 'tea' }), await add(fixture, { content: 'coffee' })];
  await tenant.as('leaked').patchMemory(a, { status: 'archived' });
  await tenant.as('own').contradictMemories({ a, b, winner: b });
  expect(await tenant.deleteMemories({ writtenBy: ['leaked'] })).toMatchObject({ restored: 1 });
  expect(await tenant.getMemory(a)).toMatchObject({ status: 'contradicted' });
  await tenant.unlinkMemories({ src: a, dst: b, type: 'contradicts' });
  expect(await tenant.getMemory(a)).toMatchObject({ status: 'active' });
}

/** All checks of this file, by what they state. Each needs an engine without data. */
export const CHANGED_LINKS: readonly [string, (fixture: TestEngine) => Promise<void>][] = [
  ['an add of the text of a derived memory is no duplicate of it', derivedIsNoDuplicate],
  ['an undo leaves a memory superseded by others, with its own status and end below', undoneStaysSuperseded],
  ['an undo leaves a memory contradicted by others', undoneStaysContradicted],
];

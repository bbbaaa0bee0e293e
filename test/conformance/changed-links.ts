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
export async function derivedIsNoDuplicate(fixture: TestEngine): Promise<void> {
  const { tenant } = fixture;
  const content = 'Ana likes trains.';
  const { source, derived } = await addDerived(fixture, content);
  const said = await add(fixture, { content });
  expect(said).not.toBe(derived);
  expect(await add(fixture, { content })).toBe(said);
  expect(await tenant.deleteMemory(source)).toMatchObject({ memories: 2 });
  expect(await tenant.getMemory(said)).toMatchObject({ content, status: 'active' });
}

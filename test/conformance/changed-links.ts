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

/** Checks that a derived memory is erased with its source, also after its link to that one got another weight. */
async function weightedIsDerived(fixture: TestEngine): Promise<void> {
  const { tenant } = fixture;
  const { source, derived } = await addDerived(fixture, 'Ana likes trains.');
  const link = { src: derived, dst: source, type: 'derived_from', weight: 0.9 } as const;
  expect(await tenant.as('leaked').linkMemories(link)).toMatchObject({ weight: 0.9, automatic: true, writtenBy: null });
  await tenant.deleteMemories({ writtenBy: ['leaked'] });
  expect(await tenant.deleteMemory(source)).toMatchObject({ memories: 2 });
}

/** Checks that a link stays its first writer's if another key changes its weight, and goes with the first one. */
async function weightedKeepsWriter(fixture: TestEngine): Promise<void> {
  const { tenant } = fixture;
  const [src, dst] = [await add(fixture, { content: 'one' }), await add(fixture, { content: 'two' })];
  const link = { src, dst, type: 'supports' } as const;
  await tenant.as('own').linkMemories(link);
  const weighted = { weight: 0.1, automatic: false, writtenBy: 'own' };
  expect(await tenant.as('leaked').linkMemories({ ...link, weight: 0.1 })).toMatchObject(weighted);
  expect(await tenant.deleteMemories({ writtenBy: ['leaked'] })).toMatchObject({ edges: 0 });
  expect(await tenant.listLinks(src)).toMatchObject([weighted]);
  expect(await tenant.deleteMemories({ writtenBy: ['own'] })).toMatchObject({ edges: 1 });
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

/**
 * Checks that an undo gives a memory its own end of validity, and never that of a link, if the key has changed the end
 * of a memory that the key's own link, or one of another key, superseded.
 */
async function undoneHasOwnEnd(fixture: TestEngine): Promise<void> {
  const { tenant, clock } = fixture;
  const [far, farther] = [clock.now() + 1_000 * 86_400_000, clock.now() + 2_000 * 86_400_000];
  const leaked = tenant.as('leaked');
  for (const key of ['leaked', 'own'])
    for (const own of [null, far])
      for (const changed of [null, far, farther]) {
        const oldId = await add(fixture, { content: `older, ${key}, ${own}, ${changed}`, validTo: own });
        const newer = newMemory({ userId: 'ana', content: `newer, ${key}, ${own}, ${changed}` });
        const [outcome] = (await tenant.as(key).addMemories([newer])).outcomes;
        const { id: newId } = outcome as { id: string };
        await tenant.as(key).supersedeMemory({ oldId, newId });
        const { validTo } = await tenant.getMemory(oldId);
        await leaked.patchMemory(oldId, { validTo: changed });
        expect(await tenant.getMemory(oldId)).toMatchObject({ status: 'superseded', validTo: changed });
        await tenant.deleteMemories({ writtenBy: ['leaked'] });
        if (key === 'own') {
          expect(await tenant.getMemory(oldId)).toMatchObject({ status: 'superseded', validTo });
          await tenant.unlinkMemories({ src: newId, dst: oldId, type: 'supersedes' });
        }
        expect(await tenant.getMemory(oldId)).toMatchObject({ status: 'active', validTo: own });
      }
}

/** Checks that an undo takes back a changed end of a memory that another key superseded at its former end. */
async function undoneEndIsThatOfLink(fixture: TestEngine): Promise<void> {
  const { tenant, clock } = fixture;
  const end = clock.now() + 1_000 * 86_400_000;
  const oldId = await add(fixture, { content: 'older', validTo: end });
  await tenant.as('leaked').patchMemory(oldId, { validTo: end + 1_000 });
  const newId = await add(fixture, { content: 'newer', validFrom: end });
  await tenant.as('own').supersedeMemory({ oldId, newId });
  expect(await tenant.deleteMemories({ writtenBy: ['leaked'] })).toMatchObject({ restored: 1 });
  expect(await tenant.getMemory(oldId)).toMatchObject({ status: 'superseded', validTo: end });
  await tenant.unlinkMemories({ src: newId, dst: oldId, type: 'supersedes' });
  expect(await tenant.getMemory(oldId)).toMatchObject({ status: 'active', validTo: end });
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

/** Checks that an undo takes back what a key decided about a contradiction that another one stated or decided. */
async function decisionIsUndone(fixture: TestEngine): Promise<void> {
  const { tenant } = fixture;
  const [a, b] = [await add(fixture, { content: 'tea' }), await add(fixture, { content: 'coffee' })];
  const statuses = async () => [(await tenant.getMemory(a)).status, (await tenant.getMemory(b)).status];
  const [own, leaked] = [tenant.as('own'), tenant.as('leaked')];
  for (const winner of [undefined, a]) {
    await own.contradictMemories({ a, b, winner });
    expect(await leaked.contradictMemories({ a, b })).toMatchObject({ writtenBy: 'own' });
    expect(await leaked.contradictMemories({ a, b, winner: b })).toMatchObject({ writtenBy: 'leaked' });
    expect(await statuses()).toEqual(['contradicted', 'active']);
    expect(await tenant.deleteMemories({ writtenBy: ['leaked'] })).toMatchObject({ edges: 1 });
    expect(await statuses()).toEqual(['active', 'active']);
  }
  await leaked.contradictMemories({ a, b, winner: b });
  await own.contradictMemories({ a, b, winner: a });
  expect(await tenant.deleteMemories({ writtenBy: ['leaked'] })).toMatchObject({ edges: 0 });
  expect(await statuses()).toEqual(['active', 'contradicted']);
}

/** All checks of this file, by what they state. Each needs an engine without data. */
export const CHANGED_LINKS: readonly [string, (fixture: TestEngine) => Promise<void>][] = [
  ['an add of the text of a derived memory is no duplicate of it', derivedIsNoDuplicate],
  ['a derived memory goes with its source, whatever the weight of their link', weightedIsDerived],
  ['a link whose weight another key changes stays its first writer’s', weightedKeepsWriter],
  ['an undo leaves a memory superseded by others, with its own status and end below', undoneStaysSuperseded],
  ['an undo gives a memory its own end, and never that of a link', undoneHasOwnEnd],
  ['an undo takes back an end, also if a link gave its former value again', undoneEndIsThatOfLink],
  ['an undo leaves a memory contradicted by others', undoneStaysContradicted],
  ['an undo takes back the decision of a contradiction', decisionIsUndone],
];

/** A memory that has expired and is not erased yet gives its name up to the next one. */
import { expect } from 'vitest';
import { isEngineError } from '../../src/engine/errors.ts';
import { newMemory, START, type TestEngine } from '../support/engine-fixture.ts';
import { exportText, importText } from '../support/portable.ts';

const SOON = START + 60_000;
const named = { ...newMemory({ content: 'The ferry leaves.', userId: 'ana' }), externalId: 'ferry' };
const itemIn = (namespace: string) => ({
  ...newMemory({ content: 'The ferry leaves.', userId: 'ana' }),
  ...{ namespace, key: 'ferry', value: null },
});
const PLACE = { userId: 'ana', namespace: '', key: 'ferry' };

/** Returns the ids of the memories that have the external id, expired ones too, oldest first. */
const holders = ({ batch }: TestEngine): string[] =>
  batch.open().store.prepare(`SELECT id FROM memories WHERE external_id = 'ferry' ORDER BY seq`).pluck().all() as never;

/** Adds a memory that expires, and another of its external id once it has expired. @returns the id of the latter */
async function addAgain({ tenant, clock }: TestEngine): Promise<string> {
  await tenant.addMemories([{ ...named, content: 'It has left.', expiresAt: SOON }]);
  clock.set(SOON);
  const { outcomes } = await tenant.addMemories([named]);
  return (outcomes[0] as { id: string }).id;
}

async function isFound(fixture: TestEngine): Promise<void> {
  const { tenant } = fixture;
  const id = await addAgain(fixture);
  expect(await tenant.getItem(PLACE)).toMatchObject({ id });
  expect(holders(fixture)).toEqual([id]);
}

async function isReplaced(fixture: TestEngine): Promise<void> {
  const { tenant } = fixture;
  const id = await addAgain(fixture);
  const put = (ifVersion?: number) => tenant.putItem({ ...itemIn(''), content: 'It is late.' }, { ifVersion });
  await expect(put(0)).rejects.toSatisfy((error) => isEngineError(error, 'conflict'));
  expect(await put()).toMatchObject({ created: false, memory: { id } });
  expect(holders(fixture)).toEqual([id]);
}

async function isErased(fixture: TestEngine): Promise<void> {
  const { tenant } = fixture;
  await addAgain(fixture);
  await tenant.deleteItem(PLACE, {});
  await expect(tenant.getItem(PLACE)).rejects.toSatisfy((error) => isEngineError(error, 'not_found'));
  expect(holders(fixture)).toEqual([]);
}

/** Checks that an undo that makes an expired memory valid again gives it no name that another memory has by now. */
async function staysOneAfterUndo(fixture: TestEngine): Promise<void> {
  const { tenant, clock } = fixture;
  const own = tenant.as('own');
  const { outcomes } = await own.addMemories([{ ...named, content: 'It has left.' }]);
  const { id: first } = outcomes[0] as { id: string };
  await tenant.as('leaked').patchMemory(first, { expiresAt: SOON });
  clock.set(SOON);
  const again = await own.addMemories([named]);
  const { id } = again.outcomes[0] as { id: string };
  expect(await own.deleteMemories({ writtenBy: ['leaked'] })).toMatchObject({ restored: 1 });
  expect(await tenant.getMemory(first)).toMatchObject({ expiresAt: null, externalId: null });
  expect(holders(fixture)).toEqual([id]);
}

/** Checks that an import takes names of expired memories, in a namespace and in none. */
async function isImported(fixture: TestEngine): Promise<void> {
  const { tenant, clock } = fixture;
  const namespaces = ['', 'ships'];
  const ids: string[] = [];
  for (const namespace of namespaces) ids.push((await tenant.putItem(itemIn(namespace))).memory.id);
  const exported = await exportText(tenant);
  for (const namespace of namespaces) {
    await tenant.deleteItem({ ...PLACE, namespace }, {});
    await tenant.putItem({ ...itemIn(namespace), expiresAt: SOON });
  }
  clock.set(SOON);
  await importText(tenant, exported);
  for (const [no, namespace] of namespaces.entries())
    expect(await tenant.getItem({ ...PLACE, namespace })).toMatchObject({ id: ids[no], externalId: 'ferry' });
  expect(holders(fixture)).toEqual([ids[0]]);
}

/** The checks by what happens to the memory that has got the name. */
export const EXPIRED_NAMES: readonly (readonly [string, (fixture: TestEngine) => Promise<void>])[] = [
  ['is found by it', isFound],
  ['is replaced by a put', isReplaced],
  ['is erased by a delete', isErased],
  ['keeps it alone after an undo', staysOneAfterUndo],
  ['is imported with it', isImported],
];

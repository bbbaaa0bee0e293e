import { describe, expect, test } from 'vitest';
import { expectNoOrphans, openTestEngine, type TestEngine } from '../../support/engine-fixture.ts';
import { newDocument, upload } from '../../support/new-document.ts';

const MADRID = 'I live in Madrid.';
const VALENCIA = 'I have moved to Valencia.';

async function addAll(fixture: TestEngine, contents: readonly string[], userId = 'ana'): Promise<string[]> {
  const ids: string[] = [];
  for (const content of contents) {
    ids.push((await fixture.add({ content, userId })).id);
    await fixture.drain();
  }
  return ids;
}

const proposalsOf = async ({ tenant }: TestEngine, userId?: string) =>
  (await tenant.listProposals({ userId, limit: 50 })).map(({ earlier, later, by }) => [earlier.id, later.id, by]);

describe('two facts that cannot both hold', () => {
  test('are proposed as a contradiction without a model, and both stay active', async () => {
    await using fixture = await openTestEngine();
    const [madrid, , valencia] = await addAll(fixture, [MADRID, 'I like the sea.', VALENCIA]);
    expect(await proposalsOf(fixture)).toEqual([[madrid, valencia, 'form']]);
    expect(await proposalsOf(fixture, 'ben')).toEqual([]);
    expect(await fixture.tenant.listLinks(valencia!)).toContainEqual(
      expect.objectContaining({ id: madrid, type: 'contradicts', automatic: true, similarity: null }),
    );
    for (const id of [madrid!, valencia!])
      expect(await fixture.tenant.getMemory(id)).toMatchObject({ status: 'active', version: 1 });
    expectNoOrphans(fixture.store);
  });

  test('are both returned, the one said later first', async () => {
    await using fixture = await openTestEngine();
    const [paula, pedro] = await addAll(fixture, ['My boss is Paula.', 'My boss is Pedro.']);
    const query = { query: 'who is my boss', k: 10, filter: {}, explain: true };
    const { hits } = await fixture.tenant.query(query);
    expect(hits.map(({ memory }) => memory.id)).toEqual([pedro, paula]);
    expect(hits[1]!.explain!.adjustments).toContainEqual({
      by: 'contradicted',
      factor: 0.9,
      because: pedro,
      automatic: true,
    });
  });

  test('that are of two users, or not active, are not', async () => {
    await using fixture = await openTestEngine();
    const [madrid] = await addAll(fixture, [MADRID]);
    await addAll(fixture, [VALENCIA], 'ben');
    await fixture.tenant.patchMemory(madrid!, { status: 'archived' });
    await addAll(fixture, [VALENCIA]);
    expect(await proposalsOf(fixture)).toEqual([]);
  });

  test('are not looked for with the setting off, nor in documents', async () => {
    await using off = await openTestEngine({ settings: { OM_CONTRADICTIONS: 'off' } });
    await addAll(off, [MADRID, VALENCIA]);
    expect(await proposalsOf(off)).toEqual([]);
    await using fixture = await openTestEngine();
    await addAll(fixture, [MADRID]);
    await fixture.tenant.addDocument(newDocument(await upload(fixture.tenant, VALENCIA), { userId: 'ana' }));
    await fixture.drain();
    expect(await proposalsOf(fixture)).toEqual([]);
  });
});

describe('a proposal', () => {
  test('that is dismissed does not come back when a neighbour goes, but with another text', async () => {
    await using fixture = await openTestEngine();
    const { tenant } = fixture;
    const [madrid, valencia, near] = await addAll(fixture, [
      MADRID,
      VALENCIA,
      'I live in a house in Madrid with a garden.',
    ]);
    await tenant.unlinkMemories({ src: madrid!, dst: valencia!, type: 'contradicts' });
    await tenant.deleteMemory(near!);
    await fixture.drain();
    expect(await proposalsOf(fixture)).toEqual([]);
    await tenant.patchMemory(valencia!, { content: 'I live in Toledo.' });
    await fixture.drain();
    expect(await proposalsOf(fixture)).toEqual([[madrid, valencia, 'form']]);
  });

  test('that is decided, or followed, is no longer listed', async () => {
    await using fixture = await openTestEngine();
    const { tenant } = fixture;
    const [madrid, valencia] = await addAll(fixture, [MADRID, VALENCIA]);
    await tenant.contradictMemories({ a: madrid!, b: valencia!, winner: valencia });
    expect((await tenant.getMemory(madrid!)).status).toBe('contradicted');
    const [paula, pedro] = await addAll(fixture, ['My boss is Paula.', 'My boss is Pedro.']);
    await tenant.supersedeMemory({ oldId: paula!, newId: pedro! });
    expect(await proposalsOf(fixture)).toEqual([]);
  });
});

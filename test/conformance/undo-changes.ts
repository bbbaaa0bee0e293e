/** What the undo of a leaked key restores of memories and items that others wrote, on each engine. */
import { expect, test } from 'vitest';
import { putConcludedEdge } from '../../src/engine/store/edges.ts';
import { decayMemories } from '../../src/engine/upkeep/decay-memories.ts';
import { openTestEngine, type TestEngine } from '../support/engine-fixture.ts';
import { exportText, jsonLines } from '../support/portable.ts';
import { newMemory } from '../support/new-memory.ts';

export const HOUR_MS = 3_600_000;
export const PLACE = { userId: 'ana', namespace: 'config', key: 'theme' } as const;

/** Puts `PLACE` as one of the keys, with a lifetime (ms) or, with null, without an end. */
export async function put(
  { tenant, clock }: TestEngine,
  by: string,
  value: string,
  ttlMs: number | null,
): Promise<void> {
  const expiresAt = ttlMs === null ? null : clock.now() + ttlMs;
  await tenant.as(by).putItem({ ...newMemory({ content: '' }), ...PLACE, content: null, value, ttlMs, expiresAt });
}

/** Reads the item `hours` times, once an hour. */
export async function readHourly({ tenant, clock }: TestEngine, hours: number): Promise<void> {
  for (let hour = 0; hour < hours; hour += 1) {
    clock.advance(HOUR_MS);
    await tenant.renewItems([(await tenant.getItem(PLACE)).id]);
  }
}

export const undo = ({ tenant }: TestEngine) => tenant.as('own').deleteMemories({ writtenBy: ['leaked'] });

/** Defines the tests. @param settings the database in which each test stores its memories */
export function testUndoneChanges(settings: () => Promise<Record<string, string>>): void {
  const open = async (more: Record<string, string> = {}) =>
    openTestEngine({ settings: { ...(await settings()), OM_EMBEDDINGS: 'none', ...more } });

  test.each([
    ['replaced it with a lifetime of its own', 3 * HOUR_MS],
    ['replaced it with no end', null],
  ])('an item that is read lives on when the put of a leaked key is undone that %s', async (_, ttlMs) => {
    await using fixture = await open();
    const { tenant, clock } = fixture;
    await put(fixture, 'own', 'dark', 2 * HOUR_MS);
    await readHourly(fixture, 3);
    await put(fixture, 'leaked', 'pink', ttlMs);
    await readHourly(fixture, 5);
    expect(await undo(fixture)).toMatchObject({ restored: 1, unrestored: 0 });
    expect(await tenant.getItem(PLACE)).toMatchObject({ value: 'dark', expiresAt: clock.now() + 2 * HOUR_MS });
    const revisions = await tenant.listRevisions((await tenant.getItem(PLACE)).id, { limit: 9 });
    expect(revisions.map(({ replaced }) => Object.keys(replaced).sort())).toEqual(
      Array.from({ length: 2 }, () => ['content', 'expiresAt', 'value']),
    );
    // What an undo needs beside the earlier fields is not exported; the present lifetime is.
    const lines = jsonLines(await exportText(tenant));
    expect(JSON.stringify(lines.filter(({ type }) => type === 'revision'))).not.toMatch(/ttl|aside/iu);
    expect(JSON.stringify(lines)).not.toMatch(/aside/iu);
    expect(lines.find(({ type }) => type === 'memory')).toMatchObject({ item: { ttl_ms: 2 * HOUR_MS } });
    // Reads renew it as before.
    await readHourly(fixture, 3);
    expect(await tenant.getItem(PLACE)).toMatchObject({ expiresAt: clock.now() + 2 * HOUR_MS });
    clock.advance(2 * HOUR_MS);
    await expect(tenant.getItem(PLACE)).rejects.toMatchObject({ code: 'not_found' });
  });

  test('an item without an end has none again when the lifetime of a leaked key is undone', async () => {
    await using fixture = await open();
    await put(fixture, 'own', 'dark', null);
    await put(fixture, 'leaked', 'pink', HOUR_MS);
    expect(await undo(fixture)).toMatchObject({ restored: 1, unrestored: 0 });
    fixture.clock.advance(2 * HOUR_MS);
    expect(await fixture.tenant.getItem(PLACE)).toMatchObject({ value: 'dark', expiresAt: null });
  });

  test('an undo gives a memory the salience back that it would have but for the changes of a leaked key', async () => {
    await using fixture = await open();
    const { tenant, clock } = fixture;
    const ids: string[] = [];
    for (const importance of [null, 0.9])
      for (const day of ['Monday', 'Tuesday'])
        ids.push((await fixture.add({ content: `Anna sails on ${day} at ${importance ?? 'noon'}.`, importance })).id);
    await fixture.drain();
    clock.advanceDays(20);
    for (const importance of [0, 1])
      for (const id of [ids[0]!, ids[2]!]) await tenant.as('leaked').patchMemory(id, { importance });
    clock.advanceDays(20);
    for (const id of ids.slice(0, 2)) await tenant.reinforceMemory(id, 0.15);
    clock.advanceDays(20);
    expect(await undo(fixture)).toMatchObject({ restored: 2, unrestored: 0 });
    clock.advanceDays(20);
    const [first, second, third, fourth] = await Promise.all(ids.map((id) => tenant.getMemory(id)));
    expect(second!.salience).toBeGreaterThan(0);
    expect(first).toMatchObject({ importance: null, salience: expect.closeTo(second!.salience, 9) as number });
    expect(third).toMatchObject({ importance: 0.9, salience: expect.closeTo(fourth!.salience, 9) as number });
  });

  test('a memory that Cairn archived since gets its values back, and is active again if its importance was changed', async () => {
    await using fixture = await open({ OM_ARCHIVE_BELOW: '0.1' });
    const { tenant, clock } = fixture;
    const ids: string[] = [];
    for (const content of ['Anna sails.', 'Ben rows.']) ids.push((await fixture.add({ content, importance: 0.8 })).id);
    await fixture.drain();
    const leaked = tenant.as('leaked');
    await leaked.patchMemory(ids[0]!, { importance: 0 });
    await leaked.patchMemory(ids[0]!, { tags: ['pink'] });
    await leaked.patchMemory(ids[1]!, { content: 'Ben drowns.' });
    await decayMemories(fixture.maintenance);
    const archived = { status: 'archived' };
    expect(await tenant.getMemory(ids[0]!)).toMatchObject(archived);
    clock.advanceDays(2_000);
    await decayMemories(fixture.maintenance);
    expect(await tenant.getMemory(ids[1]!)).toMatchObject(archived);
    expect(await undo(fixture)).toMatchObject({ restored: 2, unrestored: 0 });
    expect(await tenant.getMemory(ids[0]!)).toMatchObject({ status: 'active', tags: [], importance: 0.8 });
    expect(await tenant.getMemory(ids[1]!)).toMatchObject({ ...archived, content: 'Ben rows.' });
    expect(await undo(fixture)).toMatchObject({ restored: 0, unrestored: 0 });
  });

  test('a conclusion gets its values back although it was archived since, as what it rests on has changed', async () => {
    await using fixture = await open();
    const { tenant } = fixture;
    const source = await fixture.add({ content: 'Anna sails.' });
    const conclusion = await fixture.add({ content: 'Anna likes the sea.', type: 'reflection' });
    await fixture.drain();
    const link = { src: conclusion.memoryNo, dst: source.memoryNo, type: 'derived_from' } as const;
    const { store } = fixture.batch.open();
    store.write(() => putConcludedEdge(store, link, { similarity: null, weight: 0.9 }, fixture.clock.now()));
    await tenant.as('leaked').patchMemory(conclusion.id, { content: 'Anna hates the sea.', importance: 0.1 });
    await tenant.as('own').patchMemory(source.id, { content: 'Anna rows.' });
    expect(await tenant.getMemory(conclusion.id)).toMatchObject({ status: 'archived' });
    expect(await undo(fixture)).toMatchObject({ restored: 1, unrestored: 0 });
    expect(await tenant.getMemory(conclusion.id)).toMatchObject({ status: 'archived', content: 'Anna likes the sea.' });
  });
}

/** What the undo of a leaked key restores of memories and items that others wrote, on each engine. */
import { expect, test } from 'vitest';
import { openTestEngine, type TestEngine } from '../support/engine-fixture.ts';
import { exportText } from '../support/portable.ts';
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
  const open = async () => openTestEngine({ settings: { ...(await settings()), OM_EMBEDDINGS: 'none' } });

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
    expect(await exportText(tenant)).not.toMatch(/ttl|aside/iu);
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
}

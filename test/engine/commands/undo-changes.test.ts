/** An undo of a leaked key restores what the key changed, with what follows from it. */
import { expect, test } from 'vitest';
import { HOUR_MS, PLACE, put, readHourly, testUndoneChanges, undo } from '../../conformance/undo-changes.ts';
import { openTestEngine } from '../../support/engine-fixture.ts';

testUndoneChanges(() => Promise.resolve({}));

test.each([2 * HOUR_MS, null])(
  'an item whose revision does not tell its lifetime outlives an undo (lifetime now: %s ms)',
  async (ttlMs) => {
    await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none' } });
    const { tenant, clock, store } = fixture;
    await put(fixture, 'own', 'dark', 2 * HOUR_MS);
    await put(fixture, 'leaked', 'pink', ttlMs);
    store.db.exec(`UPDATE memory_revisions SET snapshot = json_remove(snapshot, '$.aside')`);
    await readHourly(fixture, 5);
    expect(await undo(fixture)).toMatchObject({ restored: 1, unrestored: 0 });
    const expiresAt = ttlMs === null ? null : clock.now() + ttlMs;
    expect(await tenant.getItem(PLACE)).toMatchObject({ value: 'dark', expiresAt });
  },
);

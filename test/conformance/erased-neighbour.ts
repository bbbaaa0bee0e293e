/** What is expected of a memory whose nearest neighbour is erased while it is being linked, on each engine. */
import { expect, test } from 'vitest';
import { deleteMemory } from '../../src/engine/commands/erase.ts';
import { placeOf } from '../../src/engine/control/place-of.ts';
import type { VectorIndex } from '../../src/engine/ports.ts';
import { linkMemories } from '../../src/engine/steps/link.ts';
import { writeContextOf } from '../../src/engine/steps/step-context.ts';
import { claimJobs } from '../../src/engine/store/job-claims.ts';
import { openTenant, type OpenTenant } from '../../src/engine/tenant-file/open-tenant.ts';
import { openTestEngine } from '../support/engine-fixture.ts';

const NEAR = 'The wallaby hops across the long road at night.';

/** Defines the test. @param settings the database in which it stores memories */
export function testErasedNeighbour(settings: () => Promise<Record<string, string>>): void {
  test('a memory is linked to its next neighbour if the nearest one is erased after the search', async () => {
    await using fixture = await openTestEngine({ settings: await settings() });
    const { batch, clock, file } = fixture;
    const next = await fixture.add({ content: 'The wallaby hops across the road.' });
    const nearest = await fixture.add({ content: NEAR });
    const own = await fixture.add({ content: `${NEAR} Again.` });
    await fixture.drain();
    const { store } = batch.open();
    const links = async () =>
      (await fixture.tenant.listLinks(own.id)).filter(({ direction }) => direction === 'out').map(({ id }) => id);
    expect(await links()).toEqual([nearest.id]);

    // As it is before it is linked, when nothing tells an erasure that it will lead to the neighbour.
    store.write(() => {
      store.prepare('DELETE FROM edges WHERE src = ?').run(own.memoryNo);
      store.prepare(`UPDATE jobs SET step = 'link', state = 'queued' WHERE memory = ?`).run(own.memoryNo);
    });
    const claim = { owner: batch.owner, leaseMs: 15_000, now: clock.now(), limit: 1, step: 'link' } as const;
    const claims = store.write(() => claimJobs(store, claim));
    const place = placeOf(batch.config, file);
    using other = disposable(openTenant(file, { role: 'worker', identity: null, now: clock.now(), place }));
    let searches = 0;
    let isErased = false;
    const open = () => {
      if (searches > 0 && !isErased) {
        isErased = true;
        other.store.write(() => deleteMemory(writeContextOf({ ...batch, open: () => other }), { id: nearest.id }));
      }
      return afterSearch(batch.open(), () => (searches += 1));
    };
    expect(await linkMemories({ ...batch, open }, claims)).toBe(1);
    expect(searches).toBe(2);
    expect(await links()).toEqual([next.id]);
    expect(await fixture.tenant.getMemory(own.id)).toMatchObject({ state: 'ready' });
  });
}

/** The tenant, with indexes that call `call` at the end of each search. */
function afterSearch(tenant: OpenTenant, call: () => void): OpenTenant {
  const wrap = (index: VectorIndex): VectorIndex => ({
    ...index,
    searchAll(searches) {
      const found = index.searchAll(searches);
      call();
      return found;
    },
  });
  const indexes = () => new Map([...tenant.indexes].map(([modelNo, index]) => [modelNo, wrap(index)]));
  return Object.create(tenant, { indexes: { get: indexes } }) as OpenTenant;
}

const disposable = (tenant: OpenTenant) => Object.assign(tenant, { [Symbol.dispose]: () => tenant.close() });

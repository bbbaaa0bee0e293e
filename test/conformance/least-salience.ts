/** Saliences and rates of decay that are so small that a product with them is no number any more. */
import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import { LINE_SCHEMAS } from '../../src/api/schemas/portable.ts';
import type { PortableMemory } from '../../src/engine/types.ts';
import { decayMemories } from '../../src/engine/upkeep/decay-memories.ts';
import { START, type TestEngine } from '../support/engine-fixture.ts';

/** Least number above 0. */
const LEAST = Number.MIN_VALUE;

/** Checks that memories of these values fade, and are counted, found, compared, recalled and reinforced. */
export async function leastSalience({ tenant, clock, add, drain, maintenance }: TestEngine): Promise<void> {
  const added = await add({ content: 'The ferry leaves at noon.', userId: 'ana', importance: LEAST });
  const at = new Date(START - 86_400_000).toISOString();
  const line = (values: object) =>
    LINE_SCHEMAS.memory.parse({
      ...{ type: 'memory', id: randomUUID(), user_id: 'ana', content: `The ferry is late ${JSON.stringify(values)}.` },
      ...{ state: 'ready', sectors: ['semantic'], ...values },
    }) as PortableMemory;
  const [small, lasting] = [
    line({ salience: { value: LEAST, at }, strength: { value: LEAST, at }, decay_lambda: 1_000 }),
    line({ salience: { value: 0.5, at }, decay_lambda: LEAST }),
  ] as const;
  expect(await tenant.importLines([small, lasting])).toEqual([{ kind: 'stored' }, { kind: 'stored' }]);
  await drain();
  clock.advanceDays(200);

  const asked = { query: 'ferry', k: 5, minScore: 0, reinforce: false } as const;
  const found = async (minSalience: number) =>
    (await tenant.query({ ...asked, filter: { userIds: ['ana'], minSalience } })).hits.length;
  expect([await found(0), await found(0.01)]).toEqual([3, 1]);
  const memories = (await tenant.sectorStats()).reduce((sum, { count }) => sum + count, 0);
  expect(memories).toBe(3);
  expect((await tenant.userGraph('ana', { limit: 10 })).memories).toHaveLength(3);
  const window = { from: START + 1, to: clock.now(), axis: 'recorded', fadedBelow: LEAST, limit: 5 } as const;
  const { counts } = await tenant.diff({ ...window, filter: { userIds: ['ana'] } });
  expect(counts.faded).toBe(1);
  for (const id of [added.id, small.id]) expect(await tenant.reinforceMemory(id, 0.5)).toMatchObject({ salience: 0.5 });
  expect(await decayMemories(maintenance)).toBe(3);
}

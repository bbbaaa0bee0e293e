import { expect, vi } from 'vitest';
import { joinsLargeParts, MAX_RELABELLED, splitChain } from '../../src/engine/store/chains.ts';
import { hasLostContradiction, listLinks, listLostContradictions } from '../../src/engine/store/edges.ts';
import { readNeighbourhood } from '../../src/engine/store/graph.ts';
import type { Store } from '../../src/engine/store/open-store.ts';
import { newMemory, type TestEngine } from '../support/engine-fixture.ts';

/** Number of contradictions of the hub that were decided against it. */
const LOST = 30;
/** Asks whether a memory has lost a contradiction. */
const ASKS_LOST = /^SELECT 1 FROM edges WHERE .*type = 'contradicts' AND winner/;

/** Adds memories, and returns their ids. */
async function addAll({ tenant }: TestEngine, name: string, count: number): Promise<string[]> {
  const { outcomes } = await tenant.addMemories(
    Array.from({ length: count }, (_, no) => newMemory({ content: `${name} ${no}`, tags: [name] })),
  );
  return outcomes.map((outcome) => (outcome.kind === 'accepted' ? outcome.id : ''));
}

function memoryNoOf(store: Store, id: string): number {
  return store.prepare('SELECT seq FROM memories WHERE id = ?').pluck().get(id) as number;
}

/** Counts how often it is asked, while `work` runs, whether a memory has lost a contradiction. */
async function countAsked(store: Store, work: () => unknown): Promise<number> {
  using prepare = vi.spyOn(store, 'prepare');
  await work();
  return prepare.mock.calls.filter(([sql]) => ASKS_LOST.test(sql.trim())).length;
}

/**
 * Checks, in a tenant without data, that a memory which lost many contradictions is settled once in a commit that
 * removes them: by an erasure of the winners, or by an undo of the key that stated the links.
 */
export async function settlesHubOnce(
  fixture: TestEngine,
  run: { readonly erase: (memoryNos: readonly number[]) => void; readonly undo: (writtenBy: string) => void },
): Promise<void> {
  const { tenant } = fixture;
  const { store } = fixture.batch.open();
  const [hub] = await addAll(fixture, 'hub', 1);
  const undecided = await addAll(fixture, 'open', 10);
  for (const b of undecided) await tenant.contradictMemories({ a: hub!, b });
  const hubNo = memoryNoOf(store, hub!);
  for (const [name, by, end] of [
    ['erased', tenant, (winners: readonly string[]) => run.erase(winners.map((id) => memoryNoOf(store, id)))],
    ['undone', tenant.as('leaked'), () => run.undo('leaked')],
  ] as const) {
    const winners = await addAll(fixture, name, LOST);
    for (const b of winners) await by.contradictMemories({ a: hub!, b, winner: b });
    expect((await tenant.getMemory(hub!)).status).toBe('contradicted');
    expect(hasLostContradiction(store, hubNo)).toBe(true);
    expect(hasLostContradiction(store, memoryNoOf(store, winners[0]!))).toBe(false);
    expect(listLostContradictions(store, hubNo, 7)).toHaveLength(7);
    expect(await countAsked(store, () => end(winners))).toBe(1);
    expect((await tenant.getMemory(hub!)).status).toBe('active');
    expect(hasLostContradiction(store, hubNo)).toBe(false);
  }
  expect(await tenant.listLinks(hub!)).toHaveLength(undecided.length);
}

/**
 * Adds a memory that superseded `wide` others, of which the last two superseded one and the same, and a line of
 * memories above it, to a tenant without data.
 * @returns the numbers of the members: the hub, those below it, and those above it from the nearest on
 */
async function addHub(
  fixture: TestEngine,
  { wide, above }: { readonly wide: number; readonly above: number },
): Promise<{ readonly hub: number; readonly below: number[]; readonly above: number[]; readonly shared: number }> {
  const { store } = fixture.batch.open();
  const numbersOf = async (name: string, count: number) => {
    const numbers: number[] = [];
    for (let left = count; left > 0; left -= 500)
      for (const id of await addAll(fixture, `${name} ${left}`, Math.min(500, left)))
        numbers.push(memoryNoOf(store, id));
    return numbers;
  };
  const below = await numbersOf('below', wide);
  const [hub, shared] = (await numbersOf('hub', 2)) as [number, number];
  const line = await numbersOf('above', above);
  store.write(() => {
    const supersede = store.prepare(
      `INSERT INTO edges (src, dst, type, automatic, weight, created_at, updated_at)
       SELECT ?, seq, 'supersedes', 0, 1, 1, 1 FROM memories WHERE seq IN (SELECT value FROM json_each(?))`,
    );
    supersede.run(hub, JSON.stringify(below));
    for (const src of below.slice(-2)) supersede.run(src, JSON.stringify([shared]));
    for (const [place, src] of line.entries()) supersede.run(src, JSON.stringify([line[place - 1] ?? hub]));
    store.prepare('INSERT INTO chains (live_end) VALUES (?)').run(line.at(-1)!);
    const members = JSON.stringify([hub, shared, ...below, ...line]);
    store
      .prepare(
        `UPDATE memory_dynamics SET chain_no = (SELECT max(chain_no) FROM chains)
         WHERE seq IN (SELECT value FROM json_each(?))`,
      )
      .run(members);
  });
  return { hub, below, above: line, shared };
}

/** Checks, in a tenant without data, which memories belong to the two parts of a chain with a memory of many others. */
export async function walksHub(fixture: TestEngine): Promise<void> {
  const { store } = fixture.batch.open();
  const { hub, below, above, shared } = await addHub(fixture, { wide: MAX_RELABELLED + 5, above: 3 });
  const sizeOf = (memoryNo: number) =>
    store
      .prepare(
        `SELECT count(*) FROM memory_dynamics
         WHERE chain_no = (SELECT chain_no FROM memory_dynamics WHERE seq = ?)`,
      )
      .pluck()
      .get(memoryNo);
  expect(joinsLargeParts(store, { older: hub, newer: above[0]! })).toBe(false);
  expect(joinsLargeParts(store, { older: below[0]!, newer: hub })).toBe(false);
  // All but the first of those below go, whichever comes first in the walk.
  const cut = (newer: number, older: number) =>
    store.write(() => {
      store.prepare(`DELETE FROM edges WHERE src = ? AND dst = ? AND type = 'supersedes'`).run(newer, older);
      return splitChain(store, older);
    });
  expect(cut(hub, below[0]!)).toBe(1);
  expect(sizeOf(below[0]!)).toBe(0);
  expect(cut(above[0]!, hub)).toBe(3);
  expect([sizeOf(above[0]!), sizeOf(hub)]).toEqual([3, MAX_RELABELLED + 6]);
  expect(sizeOf(shared)).toBe(MAX_RELABELLED + 6);
}

/**
 * Checks, in a tenant without data, that of a hub's links of equal weight the first ones in the order of the other
 * memories are read, in each direction, whatever the order in which they were made.
 */
export async function readsFirstOfEqualLinks(fixture: TestEngine): Promise<void> {
  const { store } = fixture.batch.open();
  const [hub] = (await addAll(fixture, 'hub', 1)) as [string];
  const hubNo = memoryNoOf(store, hub);
  const others: string[] = [];
  for (const part of ['first', 'second', 'third']) others.push(...(await addAll(fixture, part, 400)));
  const numbers = others.map((id) => memoryNoOf(store, id));
  const link = store.prepare(
    `INSERT INTO edges (src, dst, type, automatic, weight, created_at, updated_at) VALUES (?, ?, ?, 0, 1, 1, 1)`,
  );
  for (const outward of [true, false]) {
    store.write(() => {
      store.prepare('DELETE FROM edges').run();
      for (const other of numbers.toReversed())
        for (const type of ['supports', 'depends_on']) link.run(...(outward ? [hubNo, other] : [other, hubNo]), type);
    });
    const listed = store.read(() => listLinks(store, hubNo));
    expect(listed.map(({ id, type }) => [id, type])).toEqual(
      others.slice(0, 500).flatMap((id) => [
        [id, 'depends_on'],
        [id, 'supports'],
      ]),
    );
    const bounds = { userId: '', hops: 1, limit: 200, now: fixture.clock.now() };
    const { memories } = store.read(() => readNeighbourhood(store, hubNo, bounds));
    expect(memories.map(({ id }) => id)).toEqual([hub, ...others.slice(0, 32)]);
  }
}

import { expect } from 'vitest';
import { deleteMemory, ERASE_SLICE, eraseInSlices } from '../../src/engine/commands/erase.ts';
import type { Store } from '../../src/engine/store/open-store.ts';
import type { Statement } from '../../src/engine/store/statement.ts';
import { newMemory, type TestEngine } from '../support/engine-fixture.ts';
import { runCommand } from '../support/run-command.ts';
import type { CommitFixture } from './bounded-bytes.ts';

/** Number of memories of a chain, each of which is a reflection on the one before. */
const CHAIN = 400;
/** Number of steps from the first memory of a chain that one commit walks. */
const STEPS = 50;

/** Adds memories. @returns their ids */
async function addAll({ tenant }: CommitFixture, name: string, count: number): Promise<string[]> {
  const ids: string[] = [];
  while (ids.length < count) {
    const some = Array.from({ length: Math.min(100, count - ids.length) }, (_, no) =>
      newMemory({ content: `${name} ${ids.length + no}`, userId: 'ana' }),
    );
    const { outcomes } = await tenant.addMemories(some);
    ids.push(...outcomes.map((outcome) => (outcome as { readonly id: string }).id));
  }
  return ids;
}

const ask = <T>(store: Store, sql: string, ...values: unknown[]) =>
  store
    .prepare(sql)
    .pluck()
    .get(...values) as T;

/** Counts how often a list of reflections is read while `work` runs. */
function countReads(store: Store, work: () => unknown): number {
  const { prepare } = store;
  let reads = 0;
  const counting = (statement: Statement): Statement => ({
    get: (...values) => statement.get(...values),
    run: (...values) => statement.run(...values),
    iterate: (...values) => statement.iterate(...values),
    raw: () => counting(statement.raw()),
    pluck: () => counting(statement.pluck()),
    all(...values) {
      reads += 1;
      return statement.all(...values);
    },
  });
  store.prepare = (sql) => {
    const statement = prepare.call(store, sql);
    return sql.includes(`'derived_from'`) ? counting(statement) : statement;
  };
  try {
    work();
  } finally {
    store.prepare = prepare;
  }
  return reads;
}

/** Checks that a chain of reflections of any length is erased in commits that each walk a part of it. */
export async function erasesLongChain(fixture: CommitFixture): Promise<void> {
  const { store } = fixture;
  const ids = await addAll(fixture, 'on the one before', CHAIN);
  const first = ask<number>(store, 'SELECT min(seq) FROM memories');
  const link = store.prepare(
    `INSERT INTO edges (src, dst, type, weight, automatic, created_at, updated_at)
     VALUES (?, ?, 'derived_from', 0.8, ?, 1, 1)`,
  );
  /** A consolidation of a memory that the first commit erases, without a link to it. */
  const gathered = first + STEPS + 1;
  /** A memory that the caller has linked with the first one, too. */
  const linked = first + 2 * STEPS + 1;
  store.write(() => {
    for (let at = 1; at < CHAIN; at += 1) if (first + at !== gathered) link.run(first + at, first + at - 1, 1);
    link.run(linked, first, 0);
    store
      .prepare(
        `INSERT INTO consolidations (id, run_id, user_no, memory, method, created_at)
         SELECT 'c', 'r', user_no, seq, 'sentences', 1 FROM memories WHERE seq = ?`,
      )
      .run(gathered);
    store
      .prepare(
        'INSERT INTO consolidation_sources (source, consolidation_no) SELECT ?, consolidation_no FROM consolidations',
      )
      .run(gathered - 1);
  });
  const erase = () => runCommand(fixture as unknown as TestEngine, (context) => deleteMemory(context, { id: ids[0]! }));
  const left = () => ask<number>(store, 'SELECT count(*) FROM memories');
  expect(countReads(store, erase)).toBeLessThan(STEPS + 10);
  expect([left(), ask(store, 'SELECT count(*) FROM consolidations')]).toEqual([CHAIN - STEPS, 0]);
  // What is left is found from the first memory, if the delete ends here.
  expect(ask(store, `SELECT src FROM edges WHERE dst = ? AND automatic = 1`, first)).toBe(gathered);
  let commits = 1;
  for (let isDone = false; !isDone; commits += 1) {
    const reads = countReads(store, () => ({ isDone } = erase()));
    expect(reads).toBeLessThan(STEPS + 10);
  }
  expect([left(), commits]).toEqual([0, CHAIN / STEPS]);
}

/** Checks that a reflection on which very many others rest is erased in commits of a bounded size. */
export async function erasesBroadReflection(fixture: CommitFixture): Promise<void> {
  const { tenant, store } = fixture;
  const [source] = await addAll(fixture, 'the source', 1);
  const { outcomes } = await tenant.addMemories([newMemory({ content: 'the middle' })], {
    derived: [{ item: 0, from: [source!] }],
  });
  const middle = (outcomes[0] as { readonly id: string }).id;
  for (let at = 0; at < 1_200; at += 100) {
    const some = Array.from({ length: 100 }, (_, no) => newMemory({ content: `on the middle ${at + no}` }));
    await tenant.addMemories(some, { derived: some.map((_, item) => ({ item, from: [middle] })) });
  }
  const erased: number[] = [];
  for (let isDone = false; !isDone;) {
    const slice = runCommand(fixture as unknown as TestEngine, (context) => deleteMemory(context, { id: source! }));
    erased.push(slice.receipt.memories);
    ({ isDone } = slice);
  }
  expect(erased.reduce((sum, count) => sum + count)).toBe(1_202);
  expect(Math.max(...erased)).toBeLessThanOrEqual(ERASE_SLICE + 1);
  expect(ask(store, 'SELECT count(*) FROM memories')).toBe(0);
}

/**
 * Checks that memories to be erased which rest on reflections on them, by a cycle of links or by a list that has a
 * reflection on a reflection, are erased in commits of a bounded size, each memory by one of them.
 */
export async function erasesGivenReflections(fixture: CommitFixture): Promise<void> {
  const { tenant, store } = fixture;
  const on = async (source: string, count: number) => {
    const some = Array.from({ length: count }, (_, no) =>
      newMemory({ content: `${no} on ${source}`, onDuplicate: 'keep' }),
    );
    const { outcomes } = await tenant.addMemories(some, { derived: some.map((_, item) => ({ item, from: [source] })) });
    return outcomes.map((outcome) => (outcome as { readonly id: string }).id);
  };
  const numberOf = (id: string) => ask<number>(store, 'SELECT seq FROM memories WHERE id = ?', id);
  const [first, second] = await addAll(fixture, 'a source', 2);
  const [back] = await on(first!, 1);
  for (const count of [80, 70]) await on(first!, count);
  const link = store.prepare(
    `INSERT INTO edges (src, dst, type, weight, automatic, created_at, updated_at)
     VALUES (?, ?, 'derived_from', 0.8, 1, 1, 1)`,
  );
  store.write(() => link.run(numberOf(first!), numberOf(back!)));
  const [near] = await on(second!, 1);
  for (const count of [80, 70]) await on(second!, count);
  const [far] = await on(near!, 1);
  for (const count of [90, 90, 90]) await on(far!, count);

  const given = [[numberOf(first!)], [numberOf(second!), numberOf(far!)]];
  for (const [no, memoryNos] of given.entries()) {
    const erased: number[] = [];
    for (let isDone = false; !isDone;) {
      const slice = runCommand(fixture as unknown as TestEngine, (context) => eraseInSlices(context, memoryNos));
      // Whoever asks for a delete asks by the given memories, so they go with the last commit.
      expect(memoryNos.every((memoryNo) => ask(store, 'SELECT 1 FROM memories WHERE seq = ?', memoryNo) === 1)).toBe(
        !slice.isDone,
      );
      erased.push(slice.receipt.memories);
      ({ isDone } = slice);
    }
    expect(erased.reduce((sum, count) => sum + count)).toBe([152, 423][no]);
    expect(Math.max(...erased)).toBeLessThanOrEqual(ERASE_SLICE + memoryNos.length);
  }
  expect(ask(store, 'SELECT count(*) FROM memories')).toBe(0);
}

import { expect } from 'vitest';
import { dissolveGathered } from '../../src/engine/commands/consolidations.ts';
import { ERASE_SLICE, eraseInSlices } from '../../src/engine/commands/erase.ts';
import { moveNamespace, type MoveSlice } from '../../src/engine/commands/move-namespace.ts';
import { DAY_MS } from '../../src/engine/dynamics.ts';
import type { WriteContext } from '../../src/engine/commands/write-context.ts';
import type { NewItem } from '../../src/engine/types.ts';
import { newMemory, START, type TestEngine } from '../support/engine-fixture.ts';
import { runCommand } from '../support/run-command.ts';

/** What a check of commits needs: a tenant without data, and the store on which single commands run. */
export interface CommitFixture extends Pick<TestEngine, 'tenant' | 'batch' | 'clock'> {
  readonly store: WriteContext['store'];
}

const run = <T>(fixture: CommitFixture, command: (context: WriteContext) => T): T =>
  runCommand(fixture as unknown as TestEngine, command);

const ask = <T>({ store }: CommitFixture, sql: string, ...values: unknown[]): T =>
  store
    .prepare(sql)
    .pluck()
    .get(...values) as T;

const memoryNoOf = (fixture: CommitFixture, id: string) =>
  ask<number>(fixture, 'SELECT seq FROM memories WHERE id = ?', id);

const item = (namespace: string, key: string, more: Partial<NewItem> = {}): NewItem => ({
  ...newMemory({ content: `${namespace} ${key}`, userId: 'ana' }),
  ...{ namespace, key, value: null, ...more },
});

/** Adds a memory that is derived from others. @returns its id */
async function derive({ tenant }: CommitFixture, content: string, from: readonly string[]): Promise<string> {
  const { outcomes } = await tenant.addMemories([newMemory({ content })], {
    derived: from.length === 0 ? [] : [{ item: 0, from }],
  });
  return outcomes[0]?.kind === 'accepted' ? outcomes[0].id : '';
}

/** Checks that expired items which give way to moved ones are erased before the move, in commits of a bounded size. */
export async function movesAfterErasing(fixture: CommitFixture): Promise<void> {
  const { tenant, store, clock } = fixture;
  const long = 'x'.repeat(20_000);
  for (const key of ['1', '2', '3']) {
    await tenant.putItem(item('old', key, { content: `${long} ${key}`, expiresAt: START + 1_000 }));
    await tenant.putItem(item('new', key));
  }
  const first = ask<number>(fixture, 'SELECT min(seq) FROM memories');
  store.write(() => {
    const insert = store.prepare(
      `INSERT INTO memory_revisions (memory, version, replaced_at, fields, by_link, status, event_time, snapshot)
       VALUES (?, ?, 0, 'tags', 0, 'active', 0, '{"tags":[]}')`,
    );
    for (let version = -1_500; version < 0; version += 1) insert.run(first, version);
  });
  clock.advance(1_000);
  const move = { userId: 'ana', namespace: 'new', to: 'old', limit: 1_000, withinTags: [] };
  const slices: number[][] = [];
  for (let after: MoveSlice['after'] = null, isDone = false; !isDone;) {
    const { items, next } = run(fixture, (context) => moveNamespace(context, { ...move, after }));
    const left = ['memories', 'memory_revisions'].map((table) => ask<number>(fixture, `SELECT count(*) FROM ${table}`));
    slices.push([items, ...left]);
    [after, isDone] = [next, next === null];
  }
  expect(slices).toEqual([
    [0, 6, 500],
    [0, 5, 0],
    [0, 4, 0],
    [3, 3, 0],
  ]);
}

/** Checks that the reflections on an erased memory are erased in commits of a bounded size. */
export async function erasesReflectionsByBytes(fixture: CommitFixture): Promise<void> {
  const source = await derive(fixture, 'the source', []);
  for (let no = 0; no < 5; no += 1) await derive(fixture, `${'x'.repeat(20_000)} ${no}`, [source]);
  const erase = () => run(fixture, (context) => eraseInSlices(context, [memoryNoOf(fixture, source)]));
  const slices = [erase()];
  while (!slices.at(-1)!.isDone) slices.push(erase());
  expect(slices.map(({ receipt }) => receipt.memories)).toEqual([1, 1, 1, 1, 2]);
}

/** Checks that erasing the reflections on a memory indexes a bounded amount of text anew in each commit. */
export async function erasesReflectionsByFollowers(fixture: CommitFixture): Promise<void> {
  const { tenant } = fixture;
  const source = await derive(fixture, 'the source', []);
  const inSession = (content: string, day: number) =>
    newMemory({ content, sessionId: 's', eventTime: START + day * DAY_MS });
  const short = Array.from({ length: 9 }, (_, no) => inSession(`ibis ${no}`, 2 * no));
  await tenant.addMemories(short, { derived: short.map((_, no) => ({ item: no, from: [source] })) });
  for (let no = 0; no < 9; no += 1) await tenant.addMemories([inSession(`heron ${no} `.repeat(25_000), 2 * no + 1)]);
  const erase = () => run(fixture, (context) => eraseInSlices(context, [memoryNoOf(fixture, source)]));
  const slices = [erase()];
  while (!slices.at(-1)!.isDone) slices.push(erase());
  expect(slices.length).toBeGreaterThan(1);
  expect(ask<number>(fixture, 'SELECT count(*) FROM memories')).toBe(9);
}

/**
 * Checks that a reflection goes after all that rest on it, even if these rest on its source as well and are as near to
 * it, and are too many to be found from there.
 */
export async function erasesRestingFirst(fixture: CommitFixture): Promise<void> {
  const { tenant } = fixture;
  const source = await derive(fixture, 'the source', []);
  const middle = await derive(fixture, 'the middle', [await derive(fixture, 'the first', [source])]);
  for (let at = 0; at < 1_200; at += 100) {
    const some = Array.from({ length: 100 }, (_, no) => newMemory({ content: `on both ${at + no}` }));
    await tenant.addMemories(some, { derived: some.map((_, no) => ({ item: no, from: [source, middle] })) });
  }
  const erase = () => run(fixture, (context) => eraseInSlices(context, [memoryNoOf(fixture, source)]));
  const slices = [erase()];
  while (!slices.at(-1)!.isDone) slices.push(erase());
  const erased = slices.map(({ receipt }) => receipt.memories);
  expect(erased.reduce((sum, count) => sum + count)).toBe(1_203);
  expect(Math.max(...erased)).toBeLessThanOrEqual(2 * ERASE_SLICE);
}

/** Checks that consolidations are dissolved in commits of a bounded size. */
export async function dissolvesByBytes(fixture: CommitFixture): Promise<void> {
  const ids = [];
  for (let no = 0; no < 3; no += 1) ids.push(await derive(fixture, `${'x'.repeat(20_000)} ${no}`, []));
  const gathered = ids.map((id) => memoryNoOf(fixture, id));
  const dissolve = () => run(fixture, (context) => dissolveGathered(context, gathered));
  const left = () => ask<number>(fixture, 'SELECT count(*) FROM memories');
  const slices = Array.from({ length: 3 }, () => [dissolve(), left()]);
  expect(slices).toEqual([
    [false, 2],
    [false, 1],
    [true, 0],
  ]);
}

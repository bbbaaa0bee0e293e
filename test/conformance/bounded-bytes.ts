import { setImmediate } from 'node:timers/promises';
import { expect } from 'vitest';
import { addMemories } from '../../src/engine/commands/accept.ts';
import { dissolveGathered } from '../../src/engine/commands/consolidations.ts';
import { deleteMemory, ERASE_SLICE, eraseInSlices } from '../../src/engine/commands/erase.ts';
import { importLines } from '../../src/engine/commands/import-lines.ts';
import { moveNamespace, type MoveSlice } from '../../src/engine/commands/move-namespace.ts';
import { patchMemory } from '../../src/engine/commands/patch.ts';
import { settleEnds } from '../../src/engine/commands/settle-ends.ts';
import { undoLinks } from '../../src/engine/commands/undo-writer.ts';
import type { WriteContext } from '../../src/engine/commands/write-context.ts';
import { noteEvents } from '../../src/engine/store/job-timeline.ts';
import { archiveFaded } from '../../src/engine/store/revisions.ts';
import type { NewItem, PortableLine } from '../../src/engine/types.ts';
import { runDueSchedules } from '../../src/engine/upkeep/schedules.ts';
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

/** Checks that the audit log counts what all commits of a delete have erased. */
export async function recordsAllSlices(fixture: CommitFixture): Promise<void> {
  const { tenant } = fixture;
  const { memory } = await tenant.putItem(item('long', 'key'));
  const source = await derive(fixture, 'the source', []);
  for (const from of [source, memory.id])
    for (let no = 0; no < 5; no += 1) await derive(fixture, `${'x'.repeat(20_000)} ${no} of ${from}`, [from]);
  await tenant.deleteMemory(source);
  await tenant.deleteItem({ userId: 'ana', namespace: 'long', key: 'key' });
  for (const action of ['memory.delete', 'item.delete']) {
    const records = await tenant.listAudit({ action, limit: 100 });
    expect(records.length).toBeGreaterThan(1);
    expect(records.reduce((sum, { detail }) => sum + Number(detail['memories']), 0)).toBe(6);
  }
}

/**
 * Begins a delete of a memory on which five long reflections rest, and resolves once its first commit is done and
 * further ones are to come.
 */
async function begin<T>(
  fixture: CommitFixture,
  id: string,
  erase: () => Promise<T>,
): Promise<{ readonly whole: Promise<T> }> {
  for (let no = 0; no < 5; no += 1) await derive(fixture, `${'x'.repeat(20_000)} ${no} of ${id}`, [id]);
  const count = () => ask<number>(fixture, 'SELECT count(*) FROM memories');
  const before = count();
  const whole = erase();
  whole.catch(() => {});
  while (count() === before) await setImmediate();
  expect(count()).toBeGreaterThan(before - 5);
  return { whole };
}

/** Checks that what is written between two commits of a delete neither ends the delete nor is lost by it. */
export async function deletesWhatItChecked(fixture: CommitFixture): Promise<void> {
  const { tenant } = fixture;
  const place = { userId: 'ana', namespace: 'long', key: 'key' };
  const put = (content: string, ifVersion?: number) => tenant.putItem(item('long', 'key', { content }), { ifVersion });

  // The delete has the item of version 1 already, so nobody else has.
  const { memory: first } = await put('first');
  const refused = await begin(fixture, first.id, () => tenant.deleteItem(place, { ifVersion: 1 }));
  await expect(put('changed', 1)).rejects.toMatchObject({ code: 'conflict' });
  const { erasure } = await refused.whole;
  const { ids } = await tenant.getErasure(erasure!.split('.')[0]!);
  expect(ids.filter((id) => id === first.id)).toHaveLength(1);
  await expect(tenant.getItem(place)).rejects.toMatchObject({ code: 'not_found' });

  // An item that is put meanwhile is another one, even if it has the version that was to be deleted.
  const { memory: second } = await put('second');
  const replaced = await begin(fixture, second.id, () => tenant.deleteItem(place, { ifVersion: 1 }));
  expect(await put('third')).toMatchObject({ created: true, memory: { version: 1 } });
  await replaced.whole;
  expect(await tenant.getItem(place)).toMatchObject({ content: 'third' });

  // The memory had the tag when the delete began.
  const [outcome] = (await tenant.addMemories([newMemory({ content: 'tagged', tags: ['work'] })])).outcomes;
  const { id } = outcome as { readonly id: string };
  const tagged = await begin(fixture, id, () => tenant.deleteMemory(id, { withinTags: ['work'] }));
  await tenant.patchMemory(id, { tags: [] });
  expect(await tagged.whole).toMatchObject({ memories: 6 });
}

/**
 * Checks that a delete of an item goes on with the memory with which it began, although another one gets its name
 * meanwhile and the clock is set back, and that the feed tells it as a delete.
 */
export async function deletesWhatItBegan(fixture: CommitFixture): Promise<void> {
  const { tenant, clock } = fixture;
  const place = { userId: 'ana', namespace: '', key: 'ferry' };
  const { memory: first } = await tenant.putItem(item('', 'ferry'));
  const { whole } = await begin(fixture, first.id, () => tenant.deleteItem(place));
  clock.advance(-60_000);
  const [second] = (
    await tenant.addMemories([{ ...newMemory({ content: 'It has left.', userId: 'ana' }), externalId: 'ferry' }])
  ).outcomes;
  expect(second).toMatchObject({ kind: 'accepted' });
  const { erasure, memories } = await whole;
  expect(memories).toBe(6);
  expect(await tenant.getErasure(erasure!.split('.')[0]!)).toMatchObject({ counts: { memories: 6 } });
  expect(ask(fixture, 'SELECT count(*) FROM memories WHERE id = ?', first.id)).toBe(0);
  expect(await tenant.getItem(place)).toMatchObject({ content: 'It has left.' });
  const { events } = await tenant.listEvents({ limit: 1_000, kinds: ['memory.deleted'] });
  expect(events.filter(({ subject }) => subject === first.id)).toHaveLength(1);
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

/** Number of long items of a check: two more than one commit rewrites. */
const LONG = 6;

/** Puts items of 500,000 bytes. @returns their ids */
async function putLong({ tenant }: CommitFixture, count = LONG): Promise<string[]> {
  const ids: string[] = [];
  for (let no = 0; no < count; no += 1) {
    const [content, value] = [`${'x'.repeat(249_990)} ${no}`, { text: 'y'.repeat(249_980) }];
    ids.push((await tenant.putItem(item('long', String(no), { content, value }))).memory.id);
  }
  return ids;
}

/** Checks that what a memory superseded ends anew, when its start changes, in commits of a bounded size. */
export async function endsByBytes(fixture: CommitFixture): Promise<void> {
  const { tenant } = fixture;
  const olds = await putLong(fixture);
  const { memory: newer } = await tenant.putItem(item('new', 'hub'));
  for (const oldId of olds) await tenant.supersedeMemory({ oldId, newId: newer.id });
  const ended = (at: number) => ask<number>(fixture, 'SELECT count(*) FROM memories WHERE valid_to = ?', at);
  expect(ended(START)).toBe(LONG);
  const patch = (eventTime: number) =>
    run(fixture, (context) => patchMemory(context, { id: newer.id, patch: { eventTime } }));
  const settle = () => run(fixture, (context) => settleEnds(context, {}));
  expect(patch(1)).toMatchObject({ memory: { eventTime: 1 }, endsWait: true });
  expect([ended(1), ended(START)]).toEqual([LONG - 2, 2]);
  expect([settle(), ended(1), settle()]).toEqual([false, LONG, false]);

  // What waits ends at the start that the newer one has by then.
  patch(2);
  patch(3);
  expect([ended(2), ended(3)]).toEqual([0, LONG - 2]);
  expect([settle(), ended(3)]).toEqual([false, LONG]);

  await tenant.patchMemory(newer.id, { validFrom: 4 });
  expect(ended(4)).toBe(LONG);
  await tenant.putItem(item('new', 'hub', { validFrom: 5 }));
  expect(ended(5)).toBe(LONG);
  await tenant.as('leaked').patchMemory(newer.id, { validFrom: 6 });
  await tenant.deleteMemories({ writtenBy: ['leaked'] });
  expect(ended(5)).toBe(LONG);
  // A put without a start removes the former one.
  await tenant.putItem(item('new', 'hub'));
  expect(ended(3)).toBe(LONG);

  // Nothing waits for a memory that is gone.
  patch(7);
  await tenant.deleteMemory(newer.id);
  expect([settle(), ask(fixture, "SELECT count(*) FROM store_info WHERE key = 'ends_waiting'")]).toEqual([false, 0]);
}

/** Checks that the upkeep ends superseded memories anew which an interrupted change has left. */
export async function endsInUpkeep(fixture: CommitFixture & Pick<TestEngine, 'maintenance'>): Promise<void> {
  const { tenant, maintenance } = fixture;
  const olds = await putLong(fixture);
  const { memory: newer } = await tenant.putItem(item('new', 'hub'));
  for (const oldId of olds) await tenant.supersedeMemory({ oldId, newId: newer.id });
  run(fixture, (context) => patchMemory(context, { id: newer.id, patch: { eventTime: 1 } }));
  expect(await runDueSchedules(maintenance)).toContain('words');
  expect(ask<number>(fixture, 'SELECT count(*) FROM memories WHERE valid_to = 1')).toBe(LONG);
}

/** Checks that memories whose status follows from an erased one are settled in commits of a bounded size. */
export async function releasesByBytes(fixture: CommitFixture): Promise<void> {
  const { tenant } = fixture;
  const others = await putLong(fixture);
  const active = () => ask<number>(fixture, `SELECT count(*) FROM memory_dynamics WHERE status = 'active'`);
  const eraseOnce = (id: string) =>
    run(fixture, (context) => {
      const { isDone, receipt } = deleteMemory(context, { id });
      return { isDone, edges: receipt.edges, active: active() };
    });
  const { memory: hub } = await tenant.putItem(item('new', 'hub'));
  for (const oldId of others) await tenant.supersedeMemory({ oldId, newId: hub.id });
  expect(eraseOnce(hub.id)).toEqual({ isDone: false, edges: LONG - 2, active: LONG - 1 });
  expect(eraseOnce(hub.id)).toMatchObject({ isDone: true, active: LONG });

  const { memory: winner } = await tenant.putItem(item('new', 'winner'));
  for (const b of others) await tenant.contradictMemories({ a: winner.id, b, winner: winner.id });
  expect(eraseOnce(winner.id)).toEqual({ isDone: false, edges: LONG - 2, active: LONG - 1 });
  expect(eraseOnce(winner.id)).toMatchObject({ isDone: true, active: LONG });

  const { memory: last } = await tenant.putItem(item('new', 'last'));
  for (const oldId of others) await tenant.as('leaked').supersedeMemory({ oldId, newId: last.id });
  const undo = () => run(fixture, (context) => undoLinks(context, { writtenBy: 'leaked', limit: 100 }));
  expect([undo(), undo()]).toEqual([
    { edges: LONG - 1, isDone: false },
    { edges: 1, isDone: true },
  ]);
}

/** Checks that a commit of an add, or of an import, supersedes memories of a bounded size. */
export async function supersedesByBytes(fixture: CommitFixture): Promise<void> {
  const { tenant, store } = fixture;
  const olds = await putLong(fixture, 20);
  /** In PostgreSQL a commit may end before, at 150 round trips. */
  const isBounded = (count: number) => count <= 9 && count > (store.ahead === null ? 7 : 5);
  const items = olds.map((supersedes, no) => newMemory({ content: `new ${no}`, userId: 'ana', supersedes }));
  const first = run(fixture, (context) => addMemories(context, { items, options: {} }));
  expect(first.taken).toSatisfy(isBounded);
  const newer = first.outcomes.slice(0, first.taken).map((outcome) => (outcome as { readonly id: string }).id);
  await tenant.deleteMemory(newer[0]!);

  const { memory: hub } = await tenant.putItem(item('new', 'hub'));
  for (const id of newer.slice(1)) await tenant.deleteMemory(id);
  const unset = { weight: null, similarity: null, winner: null, created_at: null, updated_at: null, written_by: null };
  const lines = olds.map((dst): PortableLine => {
    const ends = { link_type: 'supersedes', src: hub.id, dst } as const;
    return { type: 'link', automatic: false, ...ends, ...unset };
  });
  expect(run(fixture, (context) => importLines(context, { lines })).outcomes.length).toSatisfy(isBounded);
  await tenant.deleteMemory(hub.id);

  // An add that cannot be divided is refused.
  const whole = tenant.addMemories(items, { allOrNothing: true });
  await expect(whole).rejects.toMatchObject({ code: 'conflict', message: expect.stringContaining('4 MB') as string });
}

/** Checks that faded memories are archived in commits of a bounded size. */
export async function archivesByBytes(fixture: CommitFixture): Promise<void> {
  const { store } = fixture;
  await putLong(fixture);
  const last = ask<number>(fixture, 'SELECT max(seq) FROM memories');
  const archive = () =>
    store.write(() => archiveFaded(store, { afterMemoryNo: 0, last, below: 2, limit: 100, now: START }));
  expect([archive(), archive(), archive()]).toEqual([LONG - 2, 2, 0]);
  expect(ask<number>(fixture, 'SELECT count(*) FROM memory_revisions')).toBe(LONG);
}

/** Checks that the timeline of a job keeps a bounded number of events, the last ones, with their times. */
export async function keepsLastEvents(fixture: CommitFixture): Promise<void> {
  const { store, tenant } = fixture;
  const { outcomes } = await tenant.addMemories([newMemory({ content: 'a memory' })]);
  const [outcome] = outcomes;
  if (outcome?.kind !== 'accepted') throw new Error('the memory is not accepted');
  const note = store.prepare(`UPDATE jobs SET ${noteEvents(['failed', 'requeued'])}`);
  store.write(() => {
    for (let no = 1; no <= 800; no += 1) note.run(START + no);
  });
  expect(ask<number>(fixture, 'SELECT length(timeline) FROM jobs')).toBeLessThan(2_010);
  const [queued, first, ...events] = (await tenant.getJob(outcome.jobId)).timeline;
  expect([queued, first]).toMatchObject([{ event: 'queued', at: START }, { event: 'failed' }]);
  expect(events.length).toBeGreaterThan(300);
  const later = [first!, ...events];
  const from = first!.at - START;
  expect(later).toEqual(
    later.map((_, place) => ({
      event: place % 2 === 0 ? 'failed' : 'requeued',
      at: START + from + Math.floor(place / 2),
    })),
  );
  expect(later.at(-1)).toEqual({ event: 'requeued', at: START + 800 });
}

/** Changes of memories on which much rests: each commit of a change is bounded, since the writes of all wait for it. */

import { expect, test } from 'vitest';
import { patchMemory } from '../../../src/engine/commands/patch.ts';
import { undoChanges, type UndoneChanges } from '../../../src/engine/commands/undo-writer.ts';
import { archivesManyReflections } from '../../conformance/many-reflections.ts';
import type { NewItem } from '../../../src/engine/types.ts';
import { newMemory, openTestEngine, type TestEngine } from '../../support/engine-fixture.ts';
import { runCommand } from '../../support/run-command.ts';
import { seedEdge } from '../../support/seed-store.ts';

/** Adds a memory with reflections drawn from it. @returns its id */
async function addReflectedOn({ tenant }: TestEngine, reflections: number): Promise<string> {
  const [source, ...derived] = Array.from({ length: reflections + 1 }, (_, no) => newMemory({ content: `text ${no}` }));
  const { outcomes } = await tenant.addMemories([source!, ...derived], {
    derived: derived.map((_, no) => ({ item: no + 1, from: [0] })),
  });
  return outcomes[0]?.kind === 'accepted' ? outcomes[0].id : '';
}

const countOf = (fixture: TestEngine, status: string) =>
  fixture.get<number>('SELECT count(*) FROM memory_dynamics WHERE status = ?', status);

test('many reflections are archived ahead of the change of their source', async () => {
  await using fixture = await openTestEngine();
  const id = await addReflectedOn(fixture, 150);
  const patch = { content: 'another text' };
  expect(runCommand(fixture, (context) => patchMemory(context, { id, patch }))).toBeUndefined();
  expect([countOf(fixture, 'archived'), (await fixture.tenant.getMemory(id)).content]).toEqual([100, 'text 0']);
  expect(await fixture.tenant.patchMemory(id, patch)).toMatchObject({ content: 'another text', version: 2 });
  expect(countOf(fixture, 'archived')).toBe(150);
  const records = await fixture.tenant.listAudit({ limit: 10, action: 'memory.patch' });
  expect(records).toHaveLength(1);
});

test('reflections that one commit cannot find are archived in small commits ahead of the change', async () => {
  await using fixture = await openTestEngine();
  await archivesManyReflections(fixture, fixture);
});

test('an item is put, and a change undone, whose memory has more reflections than one commit can find', async () => {
  await using fixture = await openTestEngine();
  const { tenant } = fixture;
  const place = { userId: '', namespace: 'n', key: 'k' };
  const item = (content: string): NewItem => ({ ...newMemory({ content }), ...place, value: null, ttlMs: null });
  const { memory } = await tenant.putItem(item('the first'));
  const leaked = tenant.as('leaked');
  const derived = Array.from({ length: 1_200 }, (_, no) => newMemory({ content: `text ${no}` }));
  const setActive = () =>
    fixture.store.write(() =>
      fixture.store.db.prepare(`UPDATE memory_dynamics SET status = 'active' WHERE status = 'archived'`).run(),
    );
  for (let at = 0; at < 1_200; at += 100) {
    const some = derived.slice(at, at + 100);
    await tenant.addMemories(some, { derived: some.map((_, item) => ({ item, from: [memory.id] })) });
  }
  await leaked.putItem(item('spoiled'));
  expect(countOf(fixture, 'archived')).toBe(1_200);
  setActive();
  expect(await tenant.deleteMemories({ writtenBy: ['leaked'] })).toMatchObject({ restored: 1 });
  expect([countOf(fixture, 'archived'), (await tenant.getItem(place)).content]).toEqual([1_200, 'the first']);
});

test('a change that is refused for what it supersedes archives no reflections first', async () => {
  await using fixture = await openTestEngine();
  const id = await addReflectedOn(fixture, 150);
  const older = Array.from({ length: 201 }, (_, no) => newMemory({ content: `older ${no}` }));
  await fixture.tenant.addMemories(older);
  const src = fixture.memoryNoOf(id);
  fixture.store.write(() => {
    for (let place = 1; place <= 201; place++)
      seedEdge(fixture.store, { src, dst: src + 150 + place, weight: 1, type: 'supersedes' });
  });
  const patch = { content: 'another text', validFrom: 5 };
  await expect(fixture.tenant.patchMemory(id, patch)).rejects.toMatchObject({ code: 'conflict' });
  expect(countOf(fixture, 'archived')).toBe(0);
});

test('what hangs on a consolidation goes ahead of the change of its source', async () => {
  await using fixture = await openTestEngine();
  const source = await fixture.add({ content: 'a source' });
  const gathered = await fixture.add({ content: 'what was gathered' });
  const { db } = fixture.store;
  fixture.store.write(() => {
    const insert = db.prepare(
      `INSERT INTO memory_revisions (memory, version, replaced_at, fields, by_link, status, event_time, snapshot)
       VALUES (?, ?, 0, 'tags', 0, 'active', 0, '{"tags":[]}')`,
    );
    for (let version = -2_500; version < 0; version++) insert.run(gathered.memoryNo, version);
    const { lastInsertRowid } = db
      .prepare(
        `INSERT INTO consolidations (id, run_id, user_no, memory, method, created_at)
         SELECT 'c', 'r', user_no, seq, 'sentences', 0 FROM memories WHERE seq = ?`,
      )
      .run(gathered.memoryNo);
    db.prepare('INSERT INTO consolidation_sources (source, consolidation_no) VALUES (?, ?)').run(
      source.memoryNo,
      lastInsertRowid,
    );
  });
  const patch = { tags: ['new'] };
  const once = () => runCommand(fixture, (context) => patchMemory(context, { id: source.id, patch }));
  expect(once()).toBeUndefined();
  expect((await fixture.tenant.getMemory(gathered.id)).content).toBe('what was gathered');
  expect(await fixture.tenant.patchMemory(source.id, patch)).toMatchObject({ tags: ['new'] });
  await expect(fixture.tenant.getMemory(gathered.id)).rejects.toMatchObject({ code: 'not_found' });
  expect(fixture.get('SELECT count(*) FROM consolidations')).toBe(0);
});

test('undoing what a key changed goes on where much rests on a memory', async () => {
  await using fixture = await openTestEngine();
  const first = await fixture.add({ content: 'the first' });
  const id = await addReflectedOn(fixture, 150);
  const byLeaked = async (memory: string) =>
    runCommand(fixture, (context) => {
      const change = { id: memory, patch: { content: `spoiled ${memory}` } };
      return patchMemory({ ...context, writtenBy: 'leaked' }, change);
    });
  await byLeaked(first.id);
  for (let done; done === undefined;) done = await byLeaked(id);
  fixture.store.write(() =>
    fixture.store.db.prepare(`UPDATE memory_dynamics SET status = 'active' WHERE status = 'archived'`).run(),
  );
  const undo = (after: number) =>
    runCommand(fixture, (context) => undoChanges(context, { writtenBy: 'leaked', after, limit: 10 }));
  expect(undo(0)).toMatchObject({ restored: 1, unrestored: 0, last: first.memoryNo });
  expect(undo(first.memoryNo)).toMatchObject({ restored: 1, unrestored: 0 });
  expect((await fixture.tenant.getMemory(id)).content).toBe('text 0');
});

/**
 * Adds a memory, which a key then changes twice. Between the two changes come `count` further ones of the same key,
 * whose former values are no JSON and so cannot be read.
 */
async function addChangedOften(fixture: TestEngine, count: number): Promise<{ id: string; memoryNo: number }> {
  const { tenant, store } = fixture;
  const added = await fixture.add({ content: 'the first text', title: 'the first title' });
  const leaked = tenant.as('leaked');
  await leaked.patchMemory(added.id, { content: 'spoiled once' });
  store.write(() => {
    store.db
      .prepare(
        `INSERT INTO memory_revisions (memory, version, replaced_at, fields, by_link, status, event_time, snapshot,
           writer_no)
         WITH RECURSIVE versions (version) AS (SELECT 2 UNION ALL SELECT version + 1 FROM versions WHERE version <= ?)
         SELECT memory, versions.version, replaced_at, 'content', 0, status, event_time, 'not to be read', writer_no
         FROM versions, memory_revisions r WHERE r.memory = ? AND r.version = 1`,
      )
      .run(count, added.memoryNo);
    store.db.prepare('UPDATE memories SET version = ? WHERE seq = ?').run(count + 2, added.memoryNo);
  });
  await leaked.patchMemory(added.id, { content: 'spoiled again', title: 'spoiled', tags: ['spoiled'] });
  return added;
}

test('of many changes that are undone only those are read whose values come back', async () => {
  await using fixture = await openTestEngine();
  const { id } = await addChangedOften(fixture, 400);
  expect(await fixture.tenant.deleteMemories({ writtenBy: ['leaked'] })).toMatchObject({ restored: 1, unrestored: 0 });
  expect(await fixture.tenant.getMemory(id)).toMatchObject({
    ...{ content: 'the first text', title: 'the first title', tags: [], version: 404 },
  });
});

test('a commit looks at some of the changes that are undone, and the next one goes on', async () => {
  await using fixture = await openTestEngine();
  const { id, memoryNo } = await addChangedOften(fixture, 4_500);
  const undo = (begun?: UndoneChanges['begun']) =>
    runCommand(fixture, (context) => undoChanges(context, { writtenBy: 'leaked', after: 0, limit: 10, begun }));
  const first = undo();
  expect(first).toMatchObject({ restored: 0, unrestored: 0, last: 0, begun: { memoryNo, isDone: false } });
  expect(undo(undo(first.begun).begun)).toEqual({ restored: 1, unrestored: 0, last: memoryNo });
  expect(await fixture.tenant.getMemory(id)).toMatchObject({ content: 'the first text', tags: [] });
});

test('a search for what is undone begins anew if the memory was changed meanwhile', async () => {
  await using fixture = await openTestEngine();
  const { id, memoryNo } = await addChangedOften(fixture, 2_500);
  const undo = (begun?: UndoneChanges['begun']) =>
    runCommand(fixture, (context) => undoChanges(context, { writtenBy: 'leaked', after: 0, limit: 10, begun }));
  const { begun } = undo();
  await fixture.tenant.as('owner').patchMemory(id, { title: 'mended by hand' });
  expect(undo(begun)).toEqual({ restored: 0, unrestored: 1, last: memoryNo });
  expect(await fixture.tenant.getMemory(id)).toMatchObject({ title: 'mended by hand', content: 'spoiled again' });
});

test('memories with long former values are restored in commits of few', async () => {
  await using fixture = await openTestEngine();
  const added = [];
  for (const name of ['one', 'two', 'three'])
    added.push(await fixture.add({ content: `${name} heron `.repeat(20_000), sessionId: name }));
  for (const { id } of added) await fixture.tenant.as('leaked').patchMemory(id, { content: `spoiled ${id}` });
  const undo = (after: number) =>
    runCommand(fixture, (context) => undoChanges(context, { writtenBy: 'leaked', after, limit: 4 }));
  expect(undo(0)).toMatchObject({ restored: 2, last: added[1]!.memoryNo });
  expect(undo(added[1]!.memoryNo)).toMatchObject({ restored: 1, last: added[2]!.memoryNo });
});

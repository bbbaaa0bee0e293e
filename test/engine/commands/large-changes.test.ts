/** Changes of memories on which much rests: each commit of a change is bounded, since the writes of all wait for it. */

import { expect, test } from 'vitest';
import { patchMemory } from '../../../src/engine/commands/patch.ts';
import { undoChanges } from '../../../src/engine/commands/undo-writer.ts';
import { newMemory, openTestEngine, type TestEngine } from '../../support/engine-fixture.ts';
import { runCommand } from '../../support/run-command.ts';

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
  expect(undo(0)).toEqual({ restored: 1, unrestored: 0, last: first.memoryNo });
  expect(undo(first.memoryNo)).toMatchObject({ restored: 1, unrestored: 0 });
  expect((await fixture.tenant.getMemory(id)).content).toBe('text 0');
});

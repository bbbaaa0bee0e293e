/** Rows about a memory that any number of queries may have made go before the memory, in commits of their own. */
import { expect, test, vi } from 'vitest';
import { deleteDocument, deleteMemory, eraseAbandoned } from '../../../src/engine/commands/erase.ts';
import { EngineError } from '../../../src/engine/errors.ts';
import { WRITE_COMMANDS } from '../../../src/engine/writer/commands.ts';
import { newMemory, openTestEngine } from '../../support/engine-fixture.ts';
import { newDocument, upload } from '../../support/new-document.ts';
import { runCommand } from '../../support/run-command.ts';

const COUNTED = 'WITH RECURSIVE counted (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < 2500)';

test.each([
  {
    table: 'standing_answers',
    owners: `INSERT INTO standing_queries (query_no, id, query, filter, given, created_at)
      ${COUNTED} SELECT n, 'standing ' || n, 'heron', '{}', '{}', 0 FROM counted`,
    rows: `INSERT INTO standing_answers (query_no, memory, at) ${COUNTED} SELECT n, 1, 0 FROM counted`,
  },
  {
    table: 'recall_feedback',
    owners: `INSERT INTO recalls (recall_no, recall_id, asked_at, users, sessions, head, bytes)
      ${COUNTED} SELECT n, 'recall ' || n, 0, '[]', '[]', '{}', 0 FROM counted`,
    rows: `INSERT INTO recall_feedback (recall_no, memory, verdict, given_at)
      ${COUNTED} SELECT n, 1, 'helpful', 0 FROM counted`,
  },
])('rows of $table go before their memory, a thousand in a commit', async ({ table, owners, rows }) => {
  await using fixture = await openTestEngine();
  const { store, get } = fixture;
  const { id } = await fixture.add(newMemory({ content: 'a heron', userId: 'ana-rows' }));
  store.write(() => {
    store.db.exec(owners);
    store.db.exec(rows);
  });
  const left = () => get<number>(`SELECT count(*) FROM ${table}`);
  const erase = () => runCommand(fixture, (context) => deleteMemory(context, { id }));
  expect(erase()).toMatchObject({ isDone: false, receipt: { memories: 0 } });
  expect(left()).toBe(1_499);
  expect(erase().isDone).toBe(false);
  expect(left()).toBe(498);
  expect(erase()).toMatchObject({ isDone: true, receipt: { memories: 1 } });
  expect(left()).toBe(0);
});

test('a document goes once its jobs are detached, a thousand in a commit', async () => {
  await using fixture = await openTestEngine();
  const { store, tenant, get } = fixture;
  await tenant.addDocument(newDocument(await upload(tenant, 'a heron'), { userId: 'ana-rows' }));
  await fixture.drain();
  store.write(() => {
    store.db.exec(`${COUNTED} INSERT INTO jobs (uuid, kind, step, state, run_at, created_at, updated_at, document)
      SELECT randomblob(16), 'document', 'done', 'done', 0, 0, 0, 1 FROM counted`);
  });
  const left = () => get<number>('SELECT count(*) FROM jobs WHERE document = 1');
  const id = get<string>('SELECT id FROM documents');
  runCommand(fixture, (context) => deleteDocument(context, { id }));
  const detached: number[] = [];
  for (let isDone = false; !isDone;) {
    const before = left();
    ({ isDone } = runCommand(fixture, (context) => eraseAbandoned(context, { limit: 100 })));
    if (before > left()) detached.push(before - left());
  }
  expect(detached.slice(0, 2)).toEqual([1_000, 1_000]);
  expect([left(), get('SELECT count(*) FROM documents')]).toEqual([0, 0]);
});

test('a delete of an item that a put finishes is in the audit log', async () => {
  await using fixture = await openTestEngine();
  const { store } = fixture;
  const tenant = fixture.tenant.as('own');
  const item = { ...newMemory({ content: 'a heron' }), namespace: '', key: 'bird', value: null };
  const { memory } = await tenant.putItem(item);
  store.write(() => {
    store.db.exec(
      `INSERT INTO memory_revisions (memory, version, replaced_at, fields, by_link, status, event_time, snapshot)
       ${COUNTED} SELECT 1, -n, 0, 'tags', 0, 'active', 0, '{"tags":[]}' FROM counted`,
    );
  });
  const { deleteItem } = WRITE_COMMANDS;
  const breaking = vi.spyOn(WRITE_COMMANDS, 'deleteItem').mockImplementation((context, options) => {
    if (options.begun !== undefined) throw new EngineError('unavailable', 'the writer has ended');
    return deleteItem(context, options);
  });
  await expect(tenant.deleteItem({ userId: '', namespace: '', key: 'bird' })).rejects.toThrow('the writer has ended');
  breaking.mockRestore();
  const put = await tenant.putItem(item);
  expect([put.created, put.memory.id === memory.id]).toEqual([true, false]);
  const records = await tenant.listAudit({ limit: 100, action: 'item.delete' });
  expect(records).toMatchObject([{ keyId: 'own', detail: { memories: 0 } }]);
});

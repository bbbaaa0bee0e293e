/** Deletes of what is large: each commit of a delete is bounded, since the writes of all tenants wait for it. */

import { expect, test } from 'vitest';
import { deleteExpired, deleteMemory, ERASE_BYTES, type ErasedSlice } from '../../../src/engine/commands/erase.ts';
import { HASHED_OF_TEXT } from '../../../src/engine/commands/recorded-erasure.ts';
import { eraseRecalls } from '../../../src/engine/commands/recalls.ts';
import { undoConsolidations } from '../../../src/engine/commands/consolidations.ts';
import { putItem } from '../../../src/engine/commands/items.ts';
import { eraseItemsOfWriters } from '../../../src/engine/commands/session-logs.ts';
import type { ErasedLogItems, LogProgress } from '../../../src/engine/store/writers-log-items.ts';
import { listChainEnds } from '../../../src/engine/store/chains.ts';
import { saltedHash } from '../../../src/engine/text/erased-words.ts';
import { newMemory, openTestEngine, type TestEngine } from '../../support/engine-fixture.ts';
import { lookAtLongNames } from '../../support/long-names.ts';
import { runCommand } from '../../support/run-command.ts';
import { newDocument, upload } from '../../support/new-document.ts';

const deleteOnce = (fixture: TestEngine, id: string): ErasedSlice =>
  runCommand(fixture, (context) => deleteMemory(context, { id }));

async function add({ tenant }: TestEngine, contents: readonly string[], userId = ''): Promise<string[]> {
  const { outcomes } = await tenant.addMemories(contents.map((content) => newMemory({ content, userId })));
  return outcomes.map((outcome) => (outcome.kind === 'accepted' ? outcome.id : ''));
}

test('a receipt has the words of the beginning of a long text', async () => {
  await using fixture = await openTestEngine();
  const content = `zyzzogeton ${'murmuration '.repeat(HASHED_OF_TEXT / 12)} quetzalcoatlus`;
  const [id = ''] = await add(fixture, [content]);
  const { erasure = '' } = await fixture.tenant.deleteMemory(id);
  const [receipt = '', salt = ''] = erasure.split('.');
  const { words } = await fixture.tenant.getErasure(receipt);
  expect(words).toContain(saltedHash(salt, 'zyzzogeton'));
  expect(words).not.toContain(saltedHash(salt, 'quetzalcoatlus'));
});

test('a commit of a delete erases a bounded amount of text', async () => {
  await using fixture = await openTestEngine();
  // Beside it, one short text has room with its metadata.
  const long = 'x'.repeat(ERASE_BYTES - 60);
  await add(fixture, [`${long} 1`, `${long} 2`, `${long} 3`, 'short 1', 'short 2'], 'ana');
  const { memories } = await fixture.tenant.deleteMemories({ userIds: ['ana'] });
  expect(memories).toBe(5);
  const records = await fixture.tenant.listAudit({ limit: 100, action: 'memory.delete_matching' });
  expect(records.map(({ detail }) => detail['memories'])).toEqual([1, 2, 1, 1]);
});

test('a long history goes before its memory, and is counted', async () => {
  await using fixture = await openTestEngine();
  const [id = ''] = await add(fixture, ['a memory with a long history']);
  const insert = fixture.store.db.prepare(
    `INSERT INTO memory_revisions (memory, version, replaced_at, fields, by_link, status, event_time, snapshot)
     VALUES (1, ?, 0, 'tags', 0, 'active', 0, '{"tags":[]}')`,
  );
  fixture.store.write(() => {
    for (let version = -2_500; version < 0; version++) insert.run(version);
  });
  const first = deleteOnce(fixture, id);
  expect(first).toMatchObject({ isDone: false, receipt: { memories: 0 } });
  expect(first.receipt.revisions).toBeLessThan(2_000);
  const { memories, revisions } = await fixture.tenant.deleteMemory(id);
  expect([memories, first.receipt.revisions + revisions]).toEqual([1, 2_500]);
});

test('what a memory superseded is settled before it goes, in bounded commits', async () => {
  await using fixture = await openTestEngine();
  const olds = await add(
    fixture,
    Array.from({ length: 210 }, (_, place) => `the door is painted in colour ${place}`),
  );
  const [hub = '', successor = ''] = await add(fixture, ['the door is red', 'the door is blue']);
  for (const oldId of olds) await fixture.tenant.supersedeMemory({ oldId, newId: hub });
  await expect(fixture.tenant.patchMemory(hub, { validFrom: 1_000 })).rejects.toMatchObject({ code: 'conflict' });
  await fixture.tenant.supersedeMemory({ oldId: hub, newId: successor });
  expect(deleteOnce(fixture, hub)).toMatchObject({ isDone: false, receipt: { memories: 0, edges: 101 } });
  expect((await fixture.tenant.deleteMemory(hub)).memories).toBe(1);
  const successors = 'SELECT count(*) FROM edges WHERE type = ? AND src = (SELECT seq FROM memories WHERE id = ?)';
  expect(fixture.get(successors, 'supersedes', successor)).toBe(210);
  expect(fixture.get('SELECT count(DISTINCT chain_no) FROM memory_dynamics')).toBe(1);
  // Without a successor they hold again.
  await fixture.tenant.deleteMemory(successor);
  expect(fixture.get(`SELECT count(*) FROM memory_dynamics WHERE status = 'active'`)).toBe(210);
  expect(fixture.get('SELECT count(*) FROM chains')).toBe(0);
});

test('contradictions that an erased memory won are taken back in bounded commits', async () => {
  await using fixture = await openTestEngine();
  const losers = await add(
    fixture,
    Array.from({ length: 120 }, (_, place) => `the lake is ${place} metres deep`),
  );
  const [winner = ''] = await add(fixture, ['the lake is frozen']);
  for (const b of losers) await fixture.tenant.contradictMemories({ a: winner, b, winner });
  // The other links are looked for later: those that were won would all be read past in each commit.
  const sql = statementsOf(fixture.store, () =>
    expect(deleteOnce(fixture, winner)).toMatchObject({ isDone: false, receipt: { memories: 0 } }),
  );
  expect(sql.filter((text) => text.includes('coalesce(e.winner, -1) = w.value'))).toEqual([]);
  await fixture.tenant.deleteMemory(winner);
  expect(fixture.get(`SELECT count(*) FROM memory_dynamics WHERE status = 'active'`)).toBe(120);
});

test('a commit of the expiry job hides a bounded number of documents', async () => {
  await using fixture = await openTestEngine();
  const expiresAt = fixture.clock.now() + 1_000;
  for (const text of ['one', 'two', 'three']) {
    const file = await upload(fixture.tenant, text);
    await fixture.tenant.addDocument(newDocument(file, { expiresAt, externalId: text }));
  }
  fixture.clock.advance(2_000);
  const slice = () => runCommand(fixture, (context) => deleteExpired(context, { limit: 2 }));
  expect(slice().isDone).toBe(false);
  expect(fixture.get(`SELECT count(*) FROM documents WHERE state = 'deleting'`)).toBe(2);
  expect(slice().isDone).toBe(true);
});

test('a commit looks at a bounded number of recalls, and erases few', async () => {
  await using fixture = await openTestEngine();
  await add(fixture, ['the ferry leaves at noon'], 'ana');
  for (let at = 0; at < 12; at++)
    await fixture.tenant.query({ query: `when does ferry ${at} leave?`, k: 1, filter: { userIds: ['ana'] } });
  await fixture.tenant.listRecalls({ limit: 1 });
  const fill = fixture.store.db.prepare(
    `INSERT INTO recalls (recall_id, asked_at, users, sessions, head, bytes) VALUES (?, 0, '["ben"]', '[]', '{}', 0)`,
  );
  fixture.store.write(() => {
    for (let at = 0; at < 2_100; at++) fill.run(`of-ben-${at}`);
  });
  const filter = { userIds: ['ana'] };
  const slices = [];
  for (let after: number | null = 0; after !== null;) {
    const slice = runCommand(fixture, (context) => eraseRecalls(context, { filter, after: after! }));
    slices.push(slice.recalls);
    after = slice.next;
  }
  expect(slices).toEqual([10, 2, 0, 0]);
});

test('a commit looks at recalls until their users and sessions take half a megabyte, or at one', async () => {
  await using fixture = await openTestEngine();
  expect(lookAtLongNames(fixture)).toEqual([5, 8, 9, 10, 12, null]);
});

test('items of a writer leave a session log in bounded commits', async () => {
  await using fixture = await openTestEngine();
  const place = { userId: 'ana', sessionId: 'trip' };
  const items = Array.from({ length: 700 }, (_, at) => at);
  await fixture.tenant.as('leaked').changeLog(place, { items });
  await fixture.tenant.as('own').changeLog(place, { items: ['mine'] });
  await fixture.tenant.as('leaked').changeLog(place, { items });
  await fixture.tenant.deleteMemories({ writtenBy: ['leaked'] });
  const records = await fixture.tenant.listAudit({ limit: 100, action: 'log.erase' });
  expect(records.map(({ detail }) => detail['removed'])).toEqual([400, 500, 500]);
  const { items: left } = await fixture.tenant.readLog(place, { limit: 10 });
  expect(left.map(({ position, item }) => [position, item])).toEqual([[0, 'mine']]);
});

test('items that stay move up in bounded commits, in their order and without a gap', async () => {
  await using fixture = await openTestEngine();
  const { tenant, store } = fixture;
  const place = { userId: 'ana', sessionId: 'trip' };
  const numbers = (first: number, count: number) => Array.from({ length: count }, (_, at) => first + at);
  await tenant.as('own').changeLog(place, { items: ['first'] });
  await tenant.as('leaked').changeLog(place, { items: numbers(0, 300) });
  await tenant.as('own').changeLog(place, { items: numbers(1_000, 450) });
  await tenant.as('leaked').changeLog(place, { items: numbers(300, 20) });
  await tenant.as('own').changeLog(place, { items: ['last'] });
  const kept = ['first', ...numbers(1_000, 450), 'last'];
  const all = () => store.db.prepare('SELECT position, item FROM session_log_items ORDER BY position').all() as Row[];
  type Row = { position: number; item: string };
  const erased: number[] = [];
  let progress: LogProgress | null = null;
  for (let isDone = false; !isDone;) {
    const before = new Map(all().map(({ position, item }) => [item, position]));
    const slice: ErasedLogItems = runCommand(fixture, (context) =>
      eraseItemsOfWriters(context, { filter: { writtenBy: ['leaked'] }, progress }),
    );
    ({ progress, isDone } = slice);
    erased.push(slice.items);
    const rows = all();
    expect(rows.map(({ position }) => position)).toEqual(numbers(0, rows.length));
    expect(rows.filter(({ item, position }) => before.get(item) !== position).length).toBeLessThanOrEqual(400);
    const values = rows.map(({ item }) => JSON.parse(item) as unknown);
    expect(values.filter((value) => kept.includes(value as string))).toEqual(kept);
    // Others go on with the log meanwhile, and once cut off its end.
    if (erased.length === 1) await tenant.as('own').changeLog(place, { items: [kept.push('new') && 'new'] });
    if (erased.length === 2) {
      await tenant.as('own').changeLog(place, { replaces: { from: 150 }, items: ['cut'] });
      kept.splice(150, kept.length, 'cut');
    }
  }
  expect((await tenant.readLog(place, { limit: 1 })).total).toBe(kept.length);
});

test('logs of a user with items of a key are found by the logs of that user, each once', async () => {
  await using fixture = await openTestEngine();
  const { tenant, store } = fixture;
  const write = (userId: string, sessionId: string, key: string) =>
    tenant.as(key).changeLog({ userId, sessionId }, { items: ['one', 'two'] });
  for (let no = 0; no < 30; no += 1) await write('ben', `s${no}`, 'leaked');
  for (let no = 0; no < 6; no += 1) await write('ana', `s${no}`, no % 3 === 0 ? 'leaked' : 'own');
  const filter = { writtenBy: ['leaked'], userIds: ['ana'] };
  const places: number[] = [];
  let progress: LogProgress | null = null;
  for (let isDone = false; !isDone;) {
    const slice: ErasedLogItems = runCommand(fixture, (context) => eraseItemsOfWriters(context, { filter, progress }));
    ({ progress, isDone } = slice);
    if (progress !== null && progress.logNo > 0) places.push(progress.logNo);
  }
  expect([...new Set(places)]).toEqual([31, 34]);
  expect(places).toEqual(places.toSorted((a, b) => a - b));
  const left =
    'SELECT count(*) FROM session_log_items i JOIN session_logs l ON l.log_no = i.log_no WHERE l.user_id = ?';
  const count = (userId: string) => store.db.prepare(left).pluck().get(userId);
  expect([count('ana'), count('ben')]).toEqual([8, 60]);
  // The items of a key among the logs of others are not read.
  const sql = statementsOf(store, () =>
    runCommand(fixture, (context) => eraseItemsOfWriters(context, { filter, progress: null })),
  ).find((text) => text.includes('session_logs'))!;
  const values = ['ana', '', '["leaked"]'];
  const plan = store.db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...values) as { readonly detail: string }[];
  const details = plan.map(({ detail }) => detail).join('\n');
  expect(details).toMatch(/SEARCH l USING INDEX \S+ \(user_id=\? AND session_id>\?\)/u);
  expect(details).toContain('session_log_items_by_writer (writer_no=? AND log_no=?)');
  expect(details.match(/B-TREE/gu)).toBeNull();
});

test.each([
  ['user', { userIds: ['ana', 'nobody'] }],
  ['session', { sessionIds: ['nothing', 'trip'] }],
])('the logs of a %s are looked through for items of a key in slices', async (_, names) => {
  await using fixture = await openTestEngine();
  const { tenant, store } = fixture;
  store.write(() =>
    store.db
      .prepare(
        `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 2500)
         INSERT INTO session_logs (user_id, session_id, items, created_at, updated_at)
         SELECT iif(?, 'ana', 'u' || n), iif(?, 's' || n, 'trip'), 0, 1, 1 FROM numbers`,
      )
      .run('userIds' in names ? 1 : 0, 'userIds' in names ? 1 : 0),
  );
  const last = 'userIds' in names ? { userId: 'ana', sessionId: 'z' } : { userId: 'z', sessionId: 'trip' };
  await tenant.as('leaked').changeLog(last, { items: ['one', 'two'] });
  const filter = { writtenBy: ['leaked'], ...names };
  const plans = statementsOf(store, () =>
    runCommand(fixture, (context) => eraseItemsOfWriters(context, { filter, progress: null })),
  ).flatMap((sql) => {
    const values = Array<string>(sql.split('?').length - 1).fill('["a"]');
    return store.db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...values) as { readonly detail: string }[];
  });
  const details = plans.map(({ detail }) => detail);
  expect(details.filter((detail) => detail.includes('B-TREE'))).toEqual([]);
  expect(details).toContainEqual(expect.stringMatching(/SEARCH l USING INDEX \S+ \(\w+_id=\? AND \w+_id>\?\)/u));
  const slices: { readonly items: number; readonly from: string | undefined }[] = [];
  let progress: LogProgress | null = null;
  for (let isDone = false; !isDone;) {
    const slice: ErasedLogItems = runCommand(fixture, (context) => eraseItemsOfWriters(context, { filter, progress }));
    ({ progress, isDone } = slice);
    slices.push({ items: slice.items, from: progress?.walk.from });
  }
  expect(slices.filter(({ items }) => items > 0)).toMatchObject([{ items: 2 }]);
  // Two walks: 2,501 logs of a name are three slices, and another name is one.
  expect(slices.length).toBeGreaterThanOrEqual(8);
  expect(store.db.prepare('SELECT count(*) FROM session_log_items').pluck().get()).toBe(0);
});

/** Returns the statements that a function prepares. */
function statementsOf(store: TestEngine['store'], run: () => unknown): string[] {
  const texts: string[] = [];
  const { prepare } = store;
  store.prepare = (sql: string) => {
    texts.push(sql);
    return prepare.call(store, sql);
  };
  try {
    run();
  } finally {
    store.prepare = prepare;
  }
  return texts;
}

/** Adds memories, each of which supersedes the one before. @returns their ids */
async function addChain(fixture: TestEngine, count: number): Promise<string[]> {
  const ids = await add(
    fixture,
    Array.from({ length: count }, (_, place) => `the tide table, edition ${count} ${place}`),
  );
  const { db } = fixture.store;
  const [first, last] = [ids[0], ids.at(-1)].map((id) => fixture.get('SELECT seq FROM memories WHERE id = ?', id!));
  fixture.store.write(() => {
    const chainNo = db.prepare('INSERT INTO chains (live_end) VALUES (?)').run(last).lastInsertRowid;
    db.prepare('UPDATE memory_dynamics SET chain_no = ? WHERE seq BETWEEN ? AND ?').run(chainNo, first, last);
    db.prepare(
      `INSERT INTO edges (src, dst, type, weight, automatic, created_at, updated_at)
       SELECT seq + 1, seq, 'supersedes', 1, 0, 0, 0 FROM memories WHERE seq >= ? AND seq < ?`,
    ).run(first, last);
  });
  return ids;
}

test('a link of a long chain moves the memories of the smaller side, or is refused', async () => {
  await using fixture = await openTestEngine();
  const ids = await addChain(fixture, 1_200);
  const chains = () =>
    fixture.all<{ chainNo: number; members: number }>(
      'SELECT chain_no AS chainNo, count(*) AS members FROM memory_dynamics GROUP BY 1 ORDER BY 2',
    );
  const [whole] = chains();
  const linkAt = (place: number) => ({ src: ids[place + 1]!, dst: ids[place]!, type: 'supersedes' }) as const;
  await expect(fixture.tenant.unlinkMemories(linkAt(600))).rejects.toMatchObject({ code: 'conflict' });
  expect(chains()).toEqual([whole]);
  // The newer part is the smaller one here, and gets another number.
  await fixture.tenant.unlinkMemories(linkAt(999));
  const [newer, older] = chains();
  expect([newer?.members, older]).toEqual([200, { ...whole, members: 1_000 }]);
  const ends = listChainEnds(fixture.store, [1, 1_200], fixture.clock.now());
  expect(ends.map(({ liveEnd }) => liveEnd)).toEqual([1_000, 1_200]);
  await fixture.tenant.supersedeMemory({ oldId: ids[999]!, newId: ids[1_000]! });
  expect(chains()).toEqual([whole]);
  expect(listChainEnds(fixture.store, [1], fixture.clock.now())).toMatchObject([{ liveEnd: 1_200 }]);
});

const DOOR = {
  ...newMemory({ content: 'the door is red' }),
  ...{ key: 'door', namespace: '', value: null },
};

test('an expired item that is put again goes in slices, and so does a consolidation that is undone', async () => {
  await using fixture = await openTestEngine();
  const { tenant, clock } = fixture;
  const item = { ...DOOR, expiresAt: clock.now() + 1_000 };
  await tenant.putItem(item);
  clock.advance(2_000);
  const [gathered = ''] = await add(fixture, ['gathered']);
  const insert = fixture.store.db.prepare(
    `INSERT INTO memory_revisions (memory, version, replaced_at, fields, by_link, status, event_time, snapshot)
     VALUES (?, ?, 0, 'tags', 0, 'active', 0, '{"tags":[]}')`,
  );
  const source = fixture.get<number>('SELECT seq FROM memories WHERE id = ?', gathered);
  fixture.store.write(() => {
    for (const memory of [1, source]) for (let version = -2_500; version < 0; version++) insert.run(memory, version);
    fixture.store.db
      .prepare(
        `INSERT INTO consolidations (id, run_id, user_no, memory, method, created_at)
         SELECT 'c', 'r', user_no, seq, 'sentences', 0 FROM memories WHERE seq = ?`,
      )
      .run(source);
  });
  const undo = () => runCommand(fixture, (context) => undoConsolidations(context, { id: 'c', limit: 50 }));
  expect(undo()).toMatchObject({ undone: 0, isDone: false });
  expect(await tenant.undoConsolidation('c')).toEqual({ undone: 1 });
  const ready = { ...DOOR, content: 'again' };
  expect(runCommand(fixture, (context) => putItem(context, { item: ready, options: {} }))).toBeUndefined();
  expect(await tenant.putItem(ready)).toMatchObject({ created: true, memory: { version: 1 } });
});

/** A page of names ends after some thousand that were looked at, its cursor tells none of them, and reads end early. */
import { expect, test } from 'vitest';
import { boundTenant } from '../../../src/engine/tenant/bound-tenant.ts';
import type { ListPage } from '../../../src/engine/types.ts';
import { readQuestionsBefore } from '../../../src/engine/store/questions-before.ts';
import { listMemoryPlaces } from '../../../src/engine/store/memory-pages.ts';
import { listNamespaces } from '../../../src/engine/store/namespace-lists.ts';
import { listNames } from '../../../src/engine/store/name-lists.ts';
import { createWorkBudget, ROW_BYTES, runWithin } from '../../../src/engine/store/work-budget.ts';
import { contextOf, inContextOf } from '../../../src/engine/store/session-context.ts';
import { countsManyNamespaces, countsNamespacesInSlices } from '../../conformance/bounded-namespaces.ts';
import { newDocument, upload } from '../../support/new-document.ts';
import { newMemory, openTestEngine, START } from '../../support/engine-fixture.ts';

const MANY = 6_000;
/** Numbers with a row each. */
const NUMBERS = `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${MANY})`;

async function pagesOf<Entry>(list: (cursor?: string) => Promise<ListPage<Entry>>) {
  const pages: ListPage<Entry>[] = [];
  for (let cursor: string | undefined; ;) {
    const page = await list(cursor);
    pages.push(page);
    if (page.next === null) return pages;
    cursor = page.next;
  }
}
const clearOf = (cursor: string | null) => Buffer.from(cursor ?? '', 'base64url').toString('latin1');

test('a page of namespaces ends after 5,000 that do not match or have no item that is seen', async () => {
  await using fixture = await openTestEngine();
  const { tenant, store, clock } = fixture;
  store.write(() =>
    store.prepare(`${NUMBERS} INSERT INTO namespaces (user_no, path) SELECT 0, 'hidden.n' || n FROM numbers`).run(),
  );
  const item = { ...newMemory({ content: '', tags: ['red'] }), key: 'k', value: 1, content: null };
  await tenant.putItem({ ...item, namespace: 'open.last' });
  for (const suffix of ['', 'last']) {
    const seen = { prefix: '', suffix, withinTags: ['red'] };
    // No time passes, so that no page ends by it.
    const page = (cursor?: string) => listNamespaces(store, seen, { limit: 10, cursor, now: clock.now() }, () => 0);
    const pages = await pagesOf((cursor) => Promise.resolve(page(cursor)));
    expect(pages).toHaveLength(2);
    expect(pages.flatMap(({ items }) => items)).toMatchObject([{ path: 'open.last', items: 1 }]);
    expect(clearOf(pages[0]!.next)).not.toContain('hidden');
  }
  const cut = await pagesOf((cursor) =>
    tenant.listNamespaces({ prefix: '', suffix: '', maxDepth: 1 }, { limit: 1, cursor }),
  );
  expect(cut.flatMap(({ items }) => items)).toMatchObject([{ path: 'open', items: 1 }]);
});

test('a page of names whose memories a caller does not see ends with a cursor that tells no name', async () => {
  await using fixture = await openTestEngine();
  const { tenant, store } = fixture;
  await fixture.add({ content: 'a', userId: 'zoe', tags: ['red'] });
  store.write(() => store.prepare(`${NUMBERS} INSERT INTO users (user_id) SELECT 'hidden ' || n FROM numbers`).run());
  const bound = boundTenant(tenant, { tags: ['red'] });
  const pages = await pagesOf((cursor) => bound.listNames('users', { prefix: '' }, { limit: 10, cursor }));
  expect(pages.flatMap(({ items }) => items)).toMatchObject([{ name: 'zoe', memories: 1 }]);
  expect(pages).toHaveLength(2);
  expect(clearOf(pages[0]!.next)).not.toContain('hidden');
  const { next } = pages[0]!;
  const changed = `${next!.slice(0, -3)}${next!.endsWith('AAA') ? 'BBB' : 'AAA'}`;
  for (const cursor of [changed, 'AAAA', Buffer.from('["users","ana"]').toString('base64url')])
    await expect(tenant.listNames('users', { prefix: '' }, { limit: 10, cursor })).rejects.toMatchObject({
      code: 'invalid',
    });
});

test('the cursor of a page of memories does not tell the event time of the last one, which a caller may not see', async () => {
  await using fixture = await openTestEngine();
  for (const eventTime of [START + 1, START + 2]) await fixture.add({ content: `${eventTime}`, eventTime });
  const page = { filter: {}, order: { by: 'event_time', direction: 'asc' } } as const;
  const { next } = listMemoryPlaces(fixture.store, page, { limit: 1, bytes: 1_000, cursor: undefined, now: START });
  expect(next).not.toBeNull();
  expect(clearOf(next)).not.toContain(`${START + 1}`);
});

test('a page of names ends while it counts the memories of a name that a caller does not see, and the next goes on', async () => {
  await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none' } });
  const { tenant, store } = fixture;
  const notes = Array.from({ length: 4_500 }, (_, no) =>
    newMemory({
      content: `note ${no}`,
      userId: no < 4_400 ? 'ana' : 'ben',
      tags: no % 2_100 === 0 ? ['red'] : ['blue'],
    }),
  );
  for (let at = 0; at < notes.length; at += 500) await tenant.addMemories(notes.slice(at, at + 500), { bulk: true });
  let now = 0;
  const examined: number[] = [];
  const pages = await pagesOf(async (cursor) => {
    const budget = createWorkBudget({ bytes: Number.MAX_SAFE_INTEGER, deadlineMs: 600_000 });
    const { left } = budget;
    const asked = { filter: { prefix: '', withinTags: ['red'] }, page: { limit: 10, cursor }, now: START };
    const page = runWithin(budget, () => listNames(store, 'users', asked, () => (now += 1_000)));
    examined.push(Math.floor((left - budget.left) / (ROW_BYTES + '["red"]'.length)));
    return page;
  });
  expect(Math.max(...examined)).toBeLessThan(2_100);
  expect(pages.map(({ items }) => items)).toEqual([[], [], [{ name: 'ana', memories: 3, lastUsedAt: START }], []]);
  const whole = { filter: { prefix: '', withinTags: ['red'] }, page: { limit: 10 }, now: START };
  expect(listNames(store, 'users', whole, () => 0)).toEqual({ items: pages[2]!.items, next: null });
});

test('a page of namespaces ends while it counts items that a caller does not see, and the next goes on', async () => {
  await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none' } });
  await countsNamespacesInSlices(fixture);
});

test('the items in the namespaces of many users are counted once each', async () => {
  await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none' } });
  await countsManyNamespaces(fixture);
});

test('the question before a memory is looked for among 200 parts of old documents', async () => {
  await using fixture = await openTestEngine();
  const { store } = fixture;
  const inSession = (content: string, at: number) =>
    newMemory({ content, userId: 'ana', sessionId: 's', eventTime: START + at });
  const asked = await fixture.add(inSession('Where is the ferry?', 0));
  const parts = Array.from({ length: 200 }, (_, at) => inSession(`part ${at}`, 1 + at));
  for (const part of parts) await fixture.add(part);
  const said = await fixture.add(inSession('At the harbour.', 1_000));
  const question = () => readQuestionsBefore(store, [said.memoryNo]).get(said.memoryNo);
  const become = (count: number) =>
    store.write(() =>
      store
        .prepare('UPDATE memory_dynamics SET generation_no = iif(seq > ? AND seq <= ?, 1, NULL)')
        .run(asked.memoryNo, asked.memoryNo + count),
    );
  become(200);
  expect(question()).toBeUndefined();
  await fixture.tenant.deleteMemory(fixture.get('SELECT id FROM memories WHERE seq = ?', asked.memoryNo + 200));
  become(200);
  expect(question()).toBe('Where is the ferry?');
});

test('parts of documents are none of the turns of their session, which every add looks through', async () => {
  await using fixture = await openTestEngine();
  const { tenant, store } = fixture;
  const said = await fixture.add({ content: 'A turn.', userId: 'ana', sessionId: 's' });
  const file = await upload(tenant, 'A long text, in many parts. '.repeat(1_000));
  await tenant.addDocument(newDocument(file, { userId: 'ana', sessionId: 's' }));
  await fixture.drain();
  const place = { memoryNo: said.memoryNo, userNo: 1, sessionId: 's', eventTime: START, isChunk: false };
  expect(fixture.get('SELECT count(*) FROM memories WHERE session_id = ?', 's')).toBeGreaterThan(5);
  const statements = new Set<string>();
  const spied = { ...store, prepare: (sql: string) => (statements.add(sql), store.prepare(sql)) };
  expect(contextOf(spied, place)).toBe('');
  expect(inContextOf(spied, place)).toEqual([]);
  readQuestionsBefore(spied, [said.memoryNo]);
  const turns = "SELECT seq FROM memories INDEXED BY memories_by_turn WHERE is_part = 0 AND session_id <> ''";
  expect(fixture.all(turns)).toEqual([{ seq: said.memoryNo }]);
  for (const sql of statements) {
    const plan = fixture.all<{ detail: string }>(
      `EXPLAIN QUERY PLAN ${sql}`,
      ...Array.from({ length: sql.split('?').length - 1 }, () => 1),
    );
    expect(plan.map(({ detail }) => detail).join('\n')).toMatch(/SEARCH [mp] USING (COVERING )?INDEX memories_by_turn/);
  }
});

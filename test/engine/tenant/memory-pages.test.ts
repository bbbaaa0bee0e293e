import fc from 'fast-check';
import { expect, test } from 'vitest';
import { DAY_MS } from '../../../src/engine/dynamics.ts';
import { sealCursor } from '../../../src/engine/store/list-cursor.ts';
import { listMemoryNos, listMemoryPlaces } from '../../../src/engine/store/memory-pages.ts';
import { createWorkBudget, ROW_BYTES, runWithin } from '../../../src/engine/store/work-budget.ts';
import type { Tenant } from '../../../src/engine/engine.ts';
import { boundTenant } from '../../../src/engine/tenant/bound-tenant.ts';
import type { AsOf, ListOrder, Memory, MemoryFilter, MemoryPage, Page } from '../../../src/engine/types.ts';
import { newMemory, openTestEngine, START } from '../../support/engine-fixture.ts';

/** A page as its route sends it: the items of all slices. */
async function pageOf(tenant: Tenant, filter: MemoryFilter, page: MemoryPage) {
  const { slices, next } = await tenant.pageMemories(filter, page);
  const items: Memory[] = [];
  for await (const slice of slices) items.push(...slice.map(({ memory }) => memory));
  return { items, next };
}

async function allOf(tenant: Tenant, filter: MemoryFilter, page: Partial<MemoryPage> = {}): Promise<string[]> {
  const all: string[] = [];
  for (let cursor: string | undefined; ;) {
    const { items, next } = await pageOf(tenant, filter, { limit: 2, ...page, cursor });
    all.push(...items.map(({ content }) => content));
    if (next === null) return all;
    cursor = next;
  }
}

const ORDERS: ListOrder[] = (['id', 'event_time'] as const).flatMap((by) =>
  (['asc', 'desc'] as const).map((direction) => ({ by, direction })),
);

test('pages in every order show what is there all the time once, whatever is added and erased between them', async () => {
  await using fixture = await openTestEngine();
  const { tenant } = fixture;
  let counter = 0;
  const add = async (userId: string, eventTime: number) => {
    const content = `memory ${(counter += 1)}`;
    return { id: (await fixture.add({ content, userId, eventTime: START + eventTime })).id, content };
  };
  const memory = fc.record({ userId: fc.constantFrom('ana', 'ben'), eventTime: fc.integer({ min: 0, max: 3 }) });
  const change = fc.oneof(memory, fc.nat({ max: 20 }));
  const run = fc.asyncProperty(
    fc.array(memory, { maxLength: 12 }),
    fc.array(fc.array(change, { maxLength: 3 }), { maxLength: 6 }),
    fc.constantFrom(...ORDERS),
    fc.constantFrom(undefined, ['ana'], ['ana', 'ben']),
    fc.integer({ min: 1, max: 4 }),
    async (memories, changes, order, userIds, limit) => {
      const stored: { id: string; content: string }[] = [];
      for (const { userId, eventTime } of memories) stored.push(await add(userId, eventTime));
      const always = new Set(await allOf(tenant, { userIds }, { order }));
      const seen: string[] = [];
      let cursor: string | undefined;
      for (let at = 0; ; at += 1) {
        const { items, next } = await pageOf(tenant, { userIds }, { limit, order, cursor });
        seen.push(...items.map(({ content }) => content));
        if (next === null) break;
        cursor = next;
        for (const changed of changes[at] ?? []) {
          if (typeof changed === 'object') stored.push(await add(changed.userId, changed.eventTime));
          else if (stored.length > 0) {
            const [gone] = stored.splice(changed % stored.length, 1);
            await tenant.deleteMemory(gone!.id);
            always.delete(gone!.content);
          }
        }
      }
      expect(new Set(seen).size).toBe(seen.length);
      expect(seen).toEqual(expect.arrayContaining([...always]));
      await tenant.deleteMemories({ userIds: ['ana', 'ben'] });
    },
  );
  await fc.assert(run, { numRuns: 30 });
});

test('each order is the order it says, with the filters of a query', async () => {
  await using fixture = await openTestEngine();
  const { tenant } = fixture;
  await fixture.add({
    content: 'a',
    userId: 'ana',
    eventTime: START + 2,
    tags: ['x'],
    files: ['src/a.ts', 'src/b.ts'],
  });
  await fixture.add({ content: 'b', userId: 'ana', eventTime: START + 1, tags: ['x', 'y'], type: 'note' });
  await fixture.add({ content: 'c', userId: 'ben', eventTime: START + 1, externalId: 'c-1', files: ['src/a.ts'] });
  const order = (by: ListOrder['by'], direction: ListOrder['direction']) => ({ order: { by, direction } });
  expect(await allOf(tenant, {})).toEqual(['c', 'b', 'a']);
  expect(await allOf(tenant, {}, order('id', 'asc'))).toEqual(['a', 'b', 'c']);
  expect(await allOf(tenant, {}, order('event_time', 'asc'))).toEqual(['b', 'c', 'a']);
  expect(await allOf(tenant, {}, order('event_time', 'desc'))).toEqual(['a', 'c', 'b']);
  expect(await allOf(tenant, { userIds: ['ana'] }, order('event_time', 'asc'))).toEqual(['b', 'a']);
  expect(await allOf(tenant, { userIds: [] })).toEqual([]);
  expect(await allOf(tenant, { userIds: ['nobody'] })).toEqual([]);
  expect(await allOf(tenant, { tags: ['x'] })).toEqual(['b', 'a']);
  expect(await allOf(tenant, { types: ['note'] })).toEqual(['b']);
  expect(await allOf(tenant, { externalIds: ['c-1', 'd'] })).toEqual(['c']);
  for (const each of ORDERS) {
    expect((await allOf(tenant, { files: ['src/a.ts', 'src/c.ts'] }, { order: each })).sort()).toEqual(['a', 'c']);
    expect(await allOf(tenant, { files: ['src/b.ts', 'src/a.ts'], userIds: ['ana'] }, { order: each })).toEqual(['a']);
  }
  expect(await allOf(tenant, { files: ['src'] })).toEqual([]);
});

test('a list for an earlier time shows the values of that time', async () => {
  await using fixture = await openTestEngine();
  const { tenant, clock } = fixture;
  const { id } = await fixture.add({ content: 'before', files: ['old.ts'] });
  clock.advance(1_000);
  await tenant.patchMemory(id, { content: 'after', files: ['new.ts'] });
  await fixture.add({ content: 'later' });
  const asOf = { recorded: START + 500 };
  expect(await allOf(tenant, {}, { asOf })).toEqual(['before']);
  expect(await allOf(tenant, { files: ['old.ts'] }, { asOf })).toEqual(['before']);
  expect(await allOf(tenant, { files: ['new.ts'] }, { asOf })).toEqual([]);
  expect(await allOf(tenant, { files: ['new.ts'] })).toEqual(['after']);
  expect(await allOf(tenant, { files: ['old.ts'] })).toEqual([]);
});

test('a list for an earlier time has what held then and was superseded since, on both axes', async () => {
  await using fixture = await openTestEngine();
  const { tenant, clock } = fixture;
  const old = await fixture.add({ content: 'Ann lives in Lisbon' });
  clock.advanceDays(10);
  const moved = await fixture.add({ content: 'Ann lives in Porto' });
  clock.advanceDays(10);
  await tenant.supersedeMemory({ oldId: old.id, newId: moved.id });
  const day = (number: number) => START + number * DAY_MS;
  const looks: [AsOf, string[]][] = [
    [{ valid: day(5) }, ['Ann lives in Lisbon']],
    [{ valid: day(10) }, ['Ann lives in Porto']],
    [{ recorded: day(5) }, ['Ann lives in Lisbon']],
    [{ recorded: day(15) }, ['Ann lives in Porto', 'Ann lives in Lisbon']],
    [{ valid: day(5), recorded: day(20) }, ['Ann lives in Lisbon']],
    [{ valid: day(20), recorded: day(20) }, ['Ann lives in Porto']],
  ];
  for (const [asOf, expected] of looks)
    expect(await allOf(tenant, {}, { asOf }), JSON.stringify(asOf)).toEqual(expected);
  expect(await allOf(tenant, { statuses: ['active'] }, { asOf: { valid: day(5) } })).toEqual([]);
  expect(await allOf(tenant, {})).toEqual(['Ann lives in Porto']);
});

test('a page that looks at many memories which do not pass is short, and the list goes on', async () => {
  await using fixture = await openTestEngine();
  const { tenant } = fixture;
  const rows = Array.from({ length: 4_100 }, (_, at) =>
    newMemory({ content: `memory ${at}`, tags: at % 2_050 ? [] : ['rare'] }),
  );
  for (let at = 0; at < rows.length; at += 500) await tenant.addMemories(rows.slice(at, at + 500), { bulk: true });
  expect(await allOf(tenant, { tags: ['rare'] }, { limit: 10 })).toEqual(['memory 2050', 'memory 0']);
  const { items, next } = await pageOf(tenant, {}, { limit: 1_000 });
  expect([items.length, typeof next]).toEqual([1_000, 'string']);

  // So is a page that skips memories, of a caller who sees few of them.
  const bound = boundTenant(tenant, { tags: ['rare'] });
  const listed = async (page: Page) => (await bound.listMemories({}, page)).map(({ content }) => content);
  expect(await listed({ limit: 10, offset: 0 })).toEqual(['memory 2050', 'memory 0']);
  expect(await listed({ limit: 10, offset: 1 })).toEqual(['memory 0']);
  expect(await listed({ limit: 1, offset: 0 })).toEqual(['memory 2050']);
  const budget = createWorkBudget({ bytes: Number.MAX_SAFE_INTEGER, deadlineMs: 600_000 });
  const { left } = budget;
  const filter = { withinTags: ['rare'] };
  const first = runWithin(budget, () => listMemoryNos(fixture.store, filter, { limit: 10, offset: 0 }, START));
  expect(first).toMatchObject({ memoryNos: [], more: { limit: 10, offset: 0 } });
  expect(left - budget.left).toBeLessThanOrEqual(2_000 * (ROW_BYTES + '[]'.length));
  expect(listMemoryNos(fixture.store, {}, { limit: 10, offset: 0 }, START)).toMatchObject({ more: null });
});

test('cursors of another order or list, broken and forged ones are refused', async () => {
  await using fixture = await openTestEngine();
  const { tenant } = fixture;
  for (const content of ['a', 'b', 'c']) await fixture.add({ content });
  const { next } = await pageOf(tenant, {}, { limit: 1 });
  const forged = (...parts: unknown[]) => Buffer.from(JSON.stringify(parts)).toString('base64url');
  const bad = [
    '',
    'x',
    '%00',
    next!.slice(0, -3),
    forged('memories.id.desc'),
    forged('memories.id.desc', 0, '1'),
    forged('memories.id.desc', 0, 1e300),
  ];
  for (const cursor of [...bad, forged('memories.id.desc', 0, null), 'A'.repeat(9_000)])
    await expect(pageOf(tenant, {}, { limit: 1, cursor }), cursor).rejects.toMatchObject({ code: 'invalid' });
  const order = { by: 'id', direction: 'asc' } as const;
  await expect(pageOf(tenant, {}, { limit: 1, cursor: next!, order })).rejects.toMatchObject({ code: 'invalid' });
});

test('a bound caller lists its own memories, from whatever place', async () => {
  await using fixture = await openTestEngine();
  const { tenant } = fixture;
  for (const [content, userId, tags] of [
    ['a', 'ana', ['red']],
    ['b', 'ana', []],
    ['c', 'ben', ['red']],
    ['d', 'ana', ['red']],
  ] as const)
    await fixture.add({ content, userId, tags: [...tags] });
  const bound = boundTenant(tenant, { userId: 'ana', tags: ['red'] });
  expect(await allOf(bound, {})).toEqual(['d', 'a']);
  expect(await allOf(bound, { tags: ['red'] }, { order: { by: 'event_time', direction: 'asc' } })).toEqual(['a', 'd']);
  await expect(allOf(bound, { userIds: ['ben'] })).rejects.toMatchObject({ code: 'forbidden' });
});

test('no page sorts or scans all memories: each statement reads an index', async () => {
  await using fixture = await openTestEngine();
  const { store } = fixture;
  const statements = new Set<string>();
  const spied = { ...store, prepare: (sql: string) => (statements.add(sql), store.prepare(sql)) };
  for (const order of ORDERS)
    for (const filter of [{}, { userIds: ['ana'] }, { files: ['a'] }, { externalIds: ['a'] }]) {
      const place = ['memories', order.by, order.direction].join('.');
      for (const cursor of [undefined, sealCursor(store, place, [1, 1])])
        listMemoryPlaces(spied, { filter, order }, { limit: 1, bytes: 1_000_000, cursor, now: START });
    }
  const pages = [...statements].filter((sql) => sql.includes('AS eventTime'));
  expect(pages).toHaveLength(32);
  for (const sql of pages) {
    const explained = `EXPLAIN QUERY PLAN ${sql.replaceAll('?', '1')}`;
    const plan = fixture.all<{ detail: string }>(explained).map(({ detail }) => detail);
    // All memories in the order of adding are the table itself, read from its place on.
    const isWhole = sql.includes('NOT INDEXED') && !sql.includes('IN (');
    if (sql.includes('IN (')) expect(plan.join('; '), sql).not.toMatch(/SCAN (m|e|x|l)\b/);
    else
      expect(plan, sql).toEqual([
        expect.stringMatching(
          isWhole ? /^(SCAN m|SEARCH m USING INTEGER PRIMARY KEY)/ : /^(SEARCH|SCAN) m USING COVERING INDEX/,
        ),
      ]);
  }
});

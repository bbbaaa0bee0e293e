import { expect } from 'vitest';
import { listNamespaces } from '../../src/engine/store/namespace-lists.ts';
import { parsedAtOnce } from '../../src/engine/store/passing-memories.ts';
import { createWorkBudget, ROW_BYTES, runWithin } from '../../src/engine/store/work-budget.ts';
import type { ListPage, NamespaceSummary } from '../../src/engine/types.ts';
import { newMemory, START, type TestEngine } from '../support/engine-fixture.ts';

/**
 * Checks, in a tenant without data, that a page of namespaces ends after one slice of items whose tags are parsed once
 * its time is over, and that the following pages count the rest.
 */
export async function countsNamespacesInSlices(fixture: TestEngine): Promise<void> {
  const { tenant } = fixture;
  const { store } = fixture.batch.open();
  const atOnce = parsedAtOnce(store);
  const notes = Array.from({ length: 2.25 * atOnce }, (_, no) =>
    newMemory({
      content: `note ${no}`,
      userId: no % 2 ? 'ana' : 'ben',
      tags: no % (0.35 * atOnce + 1) === 0 ? ['red'] : ['blue'],
    }),
  );
  for (let at = 0; at < notes.length; at += 500) await tenant.addMemories(notes.slice(at, at + 500), { bulk: true });
  // Each of the two users has as many items in `a.x` as a slice, and an eighth as many in `a.y`.
  store.write(() => {
    for (const path of ['a.x', 'a.y'])
      store.prepare('INSERT INTO namespaces (user_no, path) SELECT user_no, ? FROM users WHERE user_no > 0').run(path);
    store
      .prepare(
        `INSERT INTO items (memory, namespace_no, item_key) SELECT m.seq, n.namespace_no, 'k' || m.seq
         FROM memories m CROSS JOIN namespaces n
           ON n.user_no = m.user_no AND n.path = CASE WHEN m.seq <= ? THEN 'a.x' ELSE 'a.y' END`,
      )
      .run(2 * atOnce);
  });
  const read = (asked: object, clock: () => number) => {
    const examined: number[] = [];
    const pages: ListPage<NamespaceSummary>[] = [];
    for (let cursor: string | undefined; pages.at(-1)?.next !== null; cursor = pages.at(-1)!.next!) {
      const budget = createWorkBudget({ bytes: Number.MAX_SAFE_INTEGER, deadlineMs: 600_000 });
      const { left } = budget;
      const filter = { prefix: '', suffix: '', withinTags: ['red'], ...asked };
      pages.push(runWithin(budget, () => listNamespaces(store, filter, { limit: 10, cursor, now: START }, clock)));
      examined.push(Math.floor((left - budget.left) / (ROW_BYTES + '["red"]'.length)));
    }
    return { pages, examined, items: pages.flatMap(({ items }) => items) };
  };
  let now = 0;
  for (const [asked, counts] of [
    [{ maxDepth: 1 }, { a: 7 }],
    [{}, { 'a.x': 6, 'a.y': 1 }],
    [{ suffix: 'y', maxDepth: 1 }, { a: 1 }],
    [{ userId: 'ana' }, { 'a.x': 3 }],
  ] as const) {
    const { pages, examined, items } = read(asked, () => (now += 1_000));
    expect(Math.max(...examined)).toBeLessThanOrEqual(1.1 * atOnce);
    expect(pages.length).toBeGreaterThan('suffix' in asked ? 0 : 1);
    expect(items).toEqual(Object.entries(counts).map(([path, n]) => ({ path, items: n, lastUsedAt: START })));
    const whole = read(asked, () => 0);
    expect(whole.pages).toEqual([{ items, next: null }]);
  }
  const ofRed = { prefix: '', suffix: '', withinTags: ['red'] };
  const { next } = listNamespaces(store, ofRed, { limit: 1, now: START }, () => 0);
  for (const other of [{ userId: 'ana' }, { withinTags: ['blue'] }, { maxDepth: 1 }])
    expect(() => listNamespaces(store, { ...ofRed, ...other }, { limit: 1, cursor: next!, now: START })).toThrow(
      'cursor: not one that this list gave out',
    );
}

/** Number of users in whose namespaces `countsManyNamespaces` counts the items. */
const USERS = 600;

/** Checks, in a tenant without data, that the items in the namespaces of many users are all counted, once each. */
export async function countsManyNamespaces(fixture: TestEngine): Promise<void> {
  const { store } = fixture.batch.open();
  const notes = Array.from({ length: USERS }, (_, no) =>
    newMemory({ content: `note ${no}`, userId: `user ${no}`, tags: [no % 3 ? 'red' : 'blue'] }),
  );
  for (let at = 0; at < notes.length; at += 500)
    await fixture.tenant.addMemories(notes.slice(at, at + 500), { bulk: true });
  // Every fourth user has an empty namespace.
  store.write(() => {
    store.prepare(`INSERT INTO namespaces (user_no, path) SELECT user_no, 'a.x' FROM users WHERE user_no > 0`).run();
    store
      .prepare(
        `INSERT INTO items (memory, namespace_no, item_key) SELECT m.seq, n.namespace_no, 'k'
         FROM memories m CROSS JOIN namespaces n ON n.user_no = m.user_no WHERE m.user_no % 4 > 0`,
      )
      .run();
  });
  const count = store.prepare(
    `SELECT count(*) FROM memories m WHERE m.user_no % 4 > 0 AND (m.tags = '["red"]' OR ? = 0)`,
  );
  for (const withinTags of [[], ['red']])
    for (const maxDepth of [undefined, 1]) {
      const filter = { prefix: '', suffix: '', withinTags, maxDepth };
      const items = count.pluck().get(withinTags.length);
      expect(listNamespaces(store, filter, { limit: 10, now: START }, () => 0)).toEqual({
        items: [{ path: maxDepth === undefined ? 'a.x' : 'a', items, lastUsedAt: START }],
        next: null,
      });
    }
}

/** Slices of consolidation, evaluation sets and deliveries in PostgreSQL. */
import { afterAll, describe, expect, test } from 'vitest';
import { startOfUser } from '../../src/engine/store/consolidations.ts';
import { eraseEvalItems, putEval } from '../../src/engine/store/evals.ts';
import { listGatherable } from '../../src/engine/store/gatherable.ts';
import { listJudgedRecalls } from '../../src/engine/store/judged-recalls.ts';
import { type LogPosition, listExportedLogItems } from '../../src/engine/store/export-selection.ts';
import type { Store } from '../../src/engine/store/open-store.ts';
import { openTenantStore } from '../../src/engine/store/postgres/tenant-database.ts';
import { appendItems, insertLog } from '../../src/engine/store/session-logs.ts';
import { claimDeliveries } from '../../src/engine/store/webhooks.ts';
import { countsManyNamespaces, countsNamespacesInSlices } from '../conformance/bounded-namespaces.ts';
import { newMemory, openTestEngine, START } from '../support/engine-fixture.ts';
import { expectHubExported } from '../support/export-hub.ts';
import { askAndJudge } from '../support/judge-recall.ts';
import { lookAtLongNames } from '../support/long-names.ts';
import { startPostgres } from '../support/postgres.ts';
import { watchPlans } from '../support/postgres-plans.ts';
import { openTemporaryStore } from '../support/temporary-store.ts';

const server = await startPostgres();
describe.skipIf(server === undefined)('in PostgreSQL', () => {
  afterAll(() => server?.stop());

  test('slices end as they do in a file', async () => {
    const settings = { OM_DATABASE_URL: await server!.createSchema(), OM_WEBHOOK_ALLOW: '127.0.0.1' };
    await using fixture = await openTestEngine({ settings });
    const { tenant } = fixture;
    const { store } = fixture.batch.open();
    const metadata = { a: 'x'.repeat(14_000) };
    const memories = Array.from({ length: 100 }, (_, no) =>
      newMemory({ content: `The harbour ferry ${no} leaves.`, userId: 'ana', metadata }),
    );
    await tenant.addMemories(memories);
    const userNo = store.prepare(`SELECT user_no FROM users WHERE user_id = 'ana'`).pluck().get() as number;
    const first = listGatherable(store, startOfUser(userNo), { looked: 1_000, again: false });
    const second = listGatherable(store, first.next!, { looked: 1_000, again: false });
    expect([first.memories.length, second.memories.length, second.next]).toEqual([75, 25, null]);

    expect(lookAtLongNames({ store })).toEqual([5, 8, 9, 10, 12, null]);

    const judged = await askAndJudge(tenant, ['used', 'wrong']);
    await askAndJudge(tenant, ['used', 'used']);
    expect(listJudgedRecalls(store, 'composite').map(({ recallId }) => recallId)).toEqual([judged]);

    const item = { query: 'x'.repeat(300_000), userId: 'ana', expected: ['berth 4'] };
    store.write(() => putEval(store, { name: 'home', guard: false, items: Array(5).fill(item) }, START));
    const erase = () => store.write(() => eraseEvalItems(store, ['ana']));
    expect([erase(), erase()]).toEqual([
      { items: 4, isDone: false },
      { items: 1, isDone: true },
    ]);

    for (const userId of ['ana', 'ana', 'ana', 'ben'])
      await tenant.createWebhook({ url: 'http://127.0.0.1:9/hook', kinds: [], userId });
    const due = store.prepare(
      `INSERT INTO deliveries (id, hook_no, at, event, next_at) SELECT 'msg' || hook_no, hook_no, 0, '{}', hook_no
       FROM webhooks`,
    );
    store.write(() => due.run());
    const wanted = { now: START, leaseMs: 1_000, limit: 2, ofUser: 2, ofAll: 2, underWay: [], after: 0 };
    const { claimed } = store.write(() => claimDeliveries(store, wanted));
    expect(claimed.map(({ hookUserId, attempts }) => [hookUserId, attempts])).toEqual([
      ['ana', 1],
      ['ben', 1],
    ]);
  });

  test('a page of namespaces ends while it counts items that a caller does not see, and the next goes on', async () => {
    const settings = { OM_DATABASE_URL: await server!.createSchema(), OM_EMBEDDINGS: 'none' };
    await using fixture = await openTestEngine({ settings });
    await countsNamespacesInSlices(fixture);
  });

  test('a list finds the next namespaces without reading the others', async () => {
    const url = await server!.createSchema();
    const plans = await watchPlans(server!, url);
    await using fixture = await openTestEngine({ settings: { OM_DATABASE_URL: url, OM_EMBEDDINGS: 'none' } });
    await countsManyNamespaces(fixture);
    const ran = plans();
    const found = ran.filter(({ text }) => /^SELECT n\.path, namespace_matches/.test(text));
    expect(found.length).toBeGreaterThan(0);
    expect(Math.max(...found.map(({ rowsRead }) => rowsRead))).toBe(1);
    const slices = ran.filter(({ text }) => /AS of_stretch|AS of_slice/.test(text));
    // A stretch of at most 512 namespaces here, with their items, is looked at twice, and its memories once.
    expect(Math.min(...slices.map(({ rowsRead }) => rowsRead))).toBeLessThanOrEqual(16 * 5);
  });

  test('the links of a hub are exported in parts, and those of memories with few links together', async () => {
    const settings = { OM_DATABASE_URL: await server!.createSchema() };
    await using fixture = await openTestEngine({ settings });
    await expectHubExported(fixture.tenant, fixture.batch.open().store);
  });

  test('a slice of an export reads the items of session logs that it has, and no more', async () => {
    const url = await server!.createSchema();
    const plans = await watchPlans(server!, url);
    using file = openTemporaryStore();
    const database = openTenantStore({ database: url, tenant: 'logs', path: '/nowhere', role: 'worker' });
    const items = Array.from({ length: 20 }, (_, no) => `${no} ${'x'.repeat(100_000)}`);
    const sliceAfter = (store: Store, after: LogPosition) => {
      const bounds = { at: START, lastMemory: 0, lastDocument: 0 };
      return store.read(() => listExportedLogItems(store, { userIds: ['ana'] }, { bounds, after, bytes: 524_288 }));
    };
    const slicesOf = (store: Store) => {
      store.write(() => {
        const log = insertLog(store, { userId: 'ana', sessionId: 's' }, START);
        appendItems(store, log, items, { writerNo: null, now: START });
        insertLog(store, { userId: 'ben', sessionId: 's' }, START);
      });
      const slices: number[][] = [];
      let after: LogPosition | null = [0, -1];
      while (after !== null) {
        const slice = sliceAfter(store, after);
        slices.push(slice.items.map(({ position }) => position));
        after = slice.next;
      }
      return slices;
    };
    const slices = slicesOf(database);
    expect(slices.map((slice) => slice.length)).toEqual([6, 6, 6, 2]);
    expect(slices.flat()).toEqual([...items.keys()]);
    expect(slicesOf(file)).toEqual(slices);
    // Once more something runs, after which the server has noted the last read.
    database.write(() => {});
    const reads = plans().filter(({ text }) => /SELECT .*\bi\.item\b(?!\))/s.test(text));
    expect(reads.map(({ rowsReturned }) => rowsReturned)).toEqual([6, 6, 6, 2]);
    database.close();
  });
});

/** Ledgers that a dispatcher reads together: what it finds is what each says by itself, and no thread waits for it. */
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { placeOf } from '../../src/engine/control/place-of.ts';
import { tenantAtPath, tenantFile } from '../../src/engine/control/tenant-paths.ts';
import type { LedgerPoller } from '../../src/engine/dispatch/ledger-poller.ts';
import { MOST_READ } from '../../src/engine/dispatch/database-poller.ts';
import { openLedgerPoller } from '../../src/engine/dispatch/open-poller.ts';
import { MAX_JOB_IDS, QUEUED_STEPS, type QueuedStep } from '../../src/engine/jobs.ts';
import { createMetrics } from '../../src/engine/metrics.ts';
import { openEngine } from '../../src/engine/open-engine.ts';
import { silentLogger } from '../../src/engine/ports.ts';
import { hasDispatchMarks, peekDispatchBatch, readLedgerStatus } from '../../src/engine/store/dispatch.ts';
import { claimJobs } from '../../src/engine/store/job-claims.ts';
import { insertJob } from '../../src/engine/store/jobs.ts';
import type { Store } from '../../src/engine/store/open-store.ts';
import { tripTotals } from '../../src/engine/store/postgres/connection-channel.ts';
import { openBlockingConnection } from '../../src/engine/store/postgres/blocking-connection.ts';
import { migrateSchema } from '../../src/engine/store/postgres/migrate-schema.ts';
import { eraseTenantRows, withConnection } from '../../src/engine/store/postgres/placed-tenant.ts';
import { openTenantStore } from '../../src/engine/store/postgres/tenant-database.ts';
import { UNDO_FROM_0021 } from '../support/earlier-schema.ts';
import { dispatchOver } from '../support/dispatch-over.ts';
import { newMemory, openTestEngine, type TestEngine } from '../support/engine-fixture.ts';
import { breakLedgers, countRead, insertLedgers } from '../support/insert-ledgers.ts';
import { startPostgres } from '../support/postgres.ts';

/** Which jobs are added to a ledger, and SQL that changes them. */
interface Enqueued {
  readonly step?: QueuedStep;
  readonly bulk?: boolean;
  readonly count?: number;
  readonly set?: string;
}

const LEASE_MS = 25_000;
const server = await startPostgres();
describe.skipIf(server === undefined)('ledgers in PostgreSQL', () => {
  let fixture: TestEngine;
  let url: string;
  let poller: LedgerPoller;
  const stores: Store[] = [];
  afterAll(() => server?.stop());
  beforeEach(async () => {
    url = await server!.createSchema();
    fixture = await openTestEngine({ settings: { OM_DATABASE_URL: url, OM_LEASE_MS: String(LEASE_MS) } });
    poller = openPoller();
  });
  afterEach(async () => {
    poller.close();
    for (const store of stores.splice(0)) store.close();
    await fixture.close();
  });

  function openPoller(): LedgerPoller {
    const { config, clock } = fixture.engine;
    return openLedgerPoller({ config, clock, logger: silentLogger, metrics: createMetrics() });
  }
  /** Makes a tenant, whose row the store makes unless it has one, and returns its path and its store. */
  function openLedger(
    name: string,
    path = tenantFile(fixture.engine.config.paths, name),
  ): { path: string; store: Store } {
    const { config } = fixture.engine;
    const store = openTenantStore({ ...placeOf(config, path)!, path, role: 'worker' });
    stores.push(store);
    return { path, store };
  }
  /** Adds jobs of no memory, and changes them. */
  function enqueue(store: Store, { step = 'encode', bulk = false, count = 1, set = '' }: Enqueued = {}): void {
    const now = fixture.clock.now();
    store.write(() => {
      for (let n = 0; n < count; n += 1) {
        const jobNo = insertJob(store, { id: randomUUID(), memory: 1, step, bulk, now });
        if (set !== '') store.prepare(`UPDATE jobs SET ${set} WHERE seq = ?`).run(jobNo);
      }
    });
  }
  function insert(prefix: string, count: number): Promise<string[]> {
    return insertLedgers(server!, { config: fixture.engine.config, prefix, count });
  }
  /** Counts what is asked of a database while `work` runs: statements that no thread waits for, and round trips. */
  async function countAsked(work: () => Promise<unknown>): Promise<{ statements: number; waits: number }> {
    const asked = vi.spyOn(pg.Client.prototype, 'query');
    const before = tripTotals().trips;
    await work();
    const counted = { statements: asked.mock.calls.length, waits: tripTotals().trips - before };
    asked.mockRestore();
    return counted;
  }

  test('those of 40 tenants with work take two statements, and no thread waits for them', async () => {
    const ledgers = Array.from({ length: 40 }, (_, n) => openLedger(`busy${n}`));
    for (const { store } of ledgers) enqueue(store, { count: 2 });
    const paths = ledgers.map(({ path }) => path);
    await poller.look(paths.slice(0, 1)); // Connects.
    const look = async () => {
      const { statuses, isComplete } = await poller.look(paths);
      expect({ found: statuses.length, isComplete }).toEqual({ found: 40, isComplete: true });
      expect(statuses.every(({ interactive }) => interactive.includes('encode'))).toBe(true);
    };
    for (let n = 0; n < 3; n += 1) expect(await countAsked(look)).toEqual({ statements: 2, waits: 0 });
    const lane = { step: 'encode', bulk: false, embedsHere: true, now: fixture.clock.now() } as const;
    const peek = async () => {
      const seen = await poller.together!.peek(paths, lane);
      expect(new Set(seen.values())).toEqual(new Set(['few']));
      expect(seen.size).toBe(40);
    };
    expect(await countAsked(peek)).toEqual({ statements: 1, waits: 0 });
  });

  test('one that has no work and was not written to is not read', async () => {
    const [idle, busy] = [openLedger('idle'), openLedger('busy')];
    const paths = [idle.path, busy.path];
    enqueue(busy.store);
    expect((await poller.look(paths)).statuses.map(({ path }) => path).sort()).toEqual([...paths].sort());
    expect((await poller.look(paths)).statuses).toMatchObject([{ path: busy.path, isUnfinished: true }]);
    expect(await poller.listUnfinished(paths)).toEqual([busy.path]);
    enqueue(idle.store, { bulk: true });
    expect((await poller.look(paths)).statuses).toHaveLength(2);
    for (const { store } of [idle, busy])
      store.write(() => store.prepare(`UPDATE jobs SET state = 'done', step = 'done', finished_at = 1`).run());
    await poller.look(paths);
    expect(await countAsked(() => poller.look(paths))).toEqual({ statements: 1, waits: 0 });
  });

  test('says of each what it says by itself', async () => {
    const now = fixture.clock.now();
    const marked = (until: number) => `dispatched_until = ${now + until}`;
    const cases: Readonly<Record<string, (store: Store) => void>> = {
      empty: () => {},
      due: (store) => enqueue(store),
      bulk: (store) => enqueue(store, { bulk: true, count: 3 }),
      later: (store) => enqueue(store, { set: `run_at = ${now + 60_000}` }),
      'too-far-ahead': (store) => enqueue(store, { bulk: true, set: `run_at = ${now + 120_001}` }),
      'as-far-as-it-may-be': (store) => enqueue(store, { set: `run_at = ${now + 120_000}` }),
      marked: (store) => enqueue(store, { set: marked(1) }),
      'mark-has-ended': (store) => enqueue(store, { set: marked(0) }),
      'mark-too-far-ahead': (store) => enqueue(store, { set: marked(30_001) }),
      'mark-as-far-as-it-may-be': (store) => enqueue(store, { set: marked(30_000) }),
      suspect: (store) => enqueue(store, { bulk: true, set: 'suspect = 8' }),
      'suspect-later': (store) => enqueue(store, { set: `suspect = 8, run_at = ${now + 10_000}` }),
      failed: (store) => enqueue(store, { step: 'link', set: `state = 'failed', attempts = 1` }),
      dead: (store) => enqueue(store, { set: `state = 'dead'` }),
      full: (store) => enqueue(store, { step: 'link', count: MAX_JOB_IDS }),
      'more-than-full': (store) => enqueue(store, { step: 'reason', bulk: true, count: 9 }),
      'almost-full': (store) => enqueue(store, { step: 'reason', count: 7 }),
      document: (store) => enqueue(store, { step: 'ingest' }),
      'held-for-a-document': (store) => {
        enqueue(store, { step: 'ingest' });
        enqueue(store, { bulk: true, count: 2 });
        enqueue(store, { bulk: true, set: `run_at = ${now - 30_000}` });
      },
      'held-for-one-that-is-read': (store) => {
        enqueue(store, { step: 'ingest', set: `state = 'active', kind = 'document', lease_until = ${now + 1_000}` });
        enqueue(store, { bulk: true });
      },
      'held-for-a-suspect': (store) => {
        enqueue(store, { step: 'ingest', set: 'suspect = 1' });
        enqueue(store, { bulk: true });
      },
      claimed: (store) => {
        enqueue(store);
        store.write(() => claimJobs(store, { step: 'encode', limit: 1, owner: 'one', leaseMs: LEASE_MS, now }));
      },
      lapsed: (store) => {
        enqueue(store);
        store.write(() => claimJobs(store, { step: 'encode', limit: 1, owner: 'one', leaseMs: 0, now }));
      },
      'lease-too-far-ahead': (store) =>
        enqueue(store, { set: `state = 'active', lease_until = ${now + 2 * LEASE_MS + 1}` }),
    };
    const ledgers = Object.entries(cases).map(([name, fill]) => {
      const ledger = openLedger(name);
      fill(ledger.store);
      return { name, ...ledger };
    });
    const paths = ledgers.map(({ path }) => path);
    const byName = <T>(found: ReadonlyMap<string, T>) =>
      Object.fromEntries(ledgers.map(({ name, path }) => [name, found.get(path)]));
    const ofEach = (read: (store: Store) => unknown) =>
      Object.fromEntries(ledgers.map(({ name, store }) => [name, read(store)]));

    const { statuses } = await poller.look(paths);
    const found = new Map(statuses.map(({ path, ...status }) => [path, status]));
    expect(byName(found)).toEqual(ofEach((store) => readLedgerStatus(store, { now, leaseMs: LEASE_MS })));
    expect(byName(await poller.together!.dueSteps(paths))).toEqual(byName(found));
    for (const step of QUEUED_STEPS) {
      for (const bulk of [false, true]) {
        for (const embedsHere of [false, true]) {
          const lane = { step, bulk, embedsHere, now };
          const seen = byName(await poller.together!.peek(paths, lane));
          const alone = ofEach((store) => {
            const batch = store.read(() => peekDispatchBatch(store, { ...lane, partial: false }));
            return batch === undefined ? 'none' : batch === 'too_few' ? 'few' : 'full';
          });
          expect({ ...lane, seen }).toEqual({ ...lane, seen: alone });
        }
      }
    }
    const marks = await Promise.all(paths.map(poller.hasMarks));
    expect(marks).toEqual(ledgers.map(({ store }) => hasDispatchMarks(store)));
    expect(new Set(marks).size).toBe(2);
  });

  test('all get their turn, if there are more than one look reads', async () => {
    const count = MOST_READ + 20;
    const paths = await insert('many', count);
    const first = await poller.look(paths);
    expect({ found: first.statuses.length, isComplete: first.isComplete }).toEqual({
      ...{ found: MOST_READ, isComplete: false },
    });
    const second = await poller.look(paths);
    expect(second.isComplete).toBe(true);
    const found = [...first.statuses, ...second.statuses].map(({ path }) => path);
    expect(new Set(found)).toEqual(new Set(paths));
    expect(await poller.listUnfinished(paths)).toHaveLength(count);
  });

  test('that hints name are read a bounded number in a statement, and all get their turn', async () => {
    const paths = await insert('hinted', MOST_READ + 20);
    const taken = new Set<string>();
    const { dueSteps, peek } = poller.together!;
    const dispatcher = dispatchOver({
      together: {
        dueSteps,
        peek: (asked, lane) => peek(asked, { ...lane, embedsHere: true, now: fixture.clock.now() }),
      },
      take: async (path) => void taken.add(path),
    });
    const counts = await countRead(async () => {
      for (const path of paths) dispatcher.dispatch(path, 'encode');
      await expect.poll(() => taken.size, { timeout: 10_000 }).toBe(paths.length);
    });
    expect(counts).toEqual([MOST_READ, 20]);
  });

  test('of a further database that fails each time do not keep a list of unfinished tenants from its end', async () => {
    const further = await server!.createSchema();
    await using both = await openTestEngine({ settings: { OM_DATABASE_URL: url, OM_DATABASES: `eu=${further}` } });
    const { config, clock } = both.engine;
    withConnection(further, () => {}); // Makes the tables.
    const own = openLedgerPoller({ config, clock, logger: silentLogger, metrics: createMetrics() });
    onTestFinished(() => own.close());
    const far = await insertLedgers(server!, {
      ...{ config, database: further, placement: { database: 'eu', number: 1 } },
      ...{ prefix: 'far', count: MOST_READ + 20 },
    });
    const near = await insertLedgers(server!, { config, prefix: 'near', count: 3 });
    await breakLedgers(server!, { database: further, prefix: 'far', code: '40001' });
    expect(await own.listUnfinished([...far, ...near])).toEqual(near);
    const aborted = AbortSignal.abort();
    expect(await countRead(() => own.listUnfinished([...far, ...near], aborted))).toEqual([]);
  });

  test('of which one cannot be read hide no other', async () => {
    const paths = await insert('sound', 20);
    const [bad] = await insert('bad', 1);
    const logged: object[] = [];
    const { config, clock } = fixture.engine;
    const metrics = createMetrics();
    const logger = { ...silentLogger, warn: (fields: object, event: string) => void logged.push({ ...fields, event }) };
    const own = openLedgerPoller({ config, clock, logger, metrics });
    onTestFinished(() => own.close());
    await breakLedgers(server!, { database: url, prefix: 'bad', code: 'XX001' });
    const all = [...paths.slice(0, 7), bad!, ...paths.slice(7)];
    for (let look = 0; look < 2; look += 1) {
      const { statuses, isComplete } = await own.look(all);
      expect(new Set(statuses.map(({ path }) => path))).toEqual(new Set(paths));
      expect(isComplete).toBe(true);
    }
    expect([...(await own.together!.dueSteps(all)).keys()].sort()).toEqual([...paths].sort());
    expect(await own.together!.dueSteps([bad!])).toEqual(new Map());
    expect(await own.listUnfinished(all)).toEqual(all.filter((path) => path !== bad));
    expect(logged).toEqual([{ code: 'internal', event: 'ledger_unusable' }]);
    expect((await metrics.dispatchFailures.get()).values[0]!.value).toBe(5);
  });

  test('that changed are read before those that only are unfinished', async () => {
    const paths = await insert('early', MOST_READ + 20);
    await poller.look(paths);
    await poller.look(paths);
    const changed = paths.slice(-3);
    // Wherever the turn of the unfinished ones is now, they are before one of these.
    const places = [paths[100]!, paths[200]!, ...changed];
    for (let look = 0; look < 3; look += 1) {
      await server!.read(
        url,
        `UPDATE tenants SET writes = writes + 1
         WHERE id IN (${places.map((path) => `'${tenantAtPath(fixture.engine.config.paths, path)!.tenant}'`).join()})`,
      );
      const { statuses, isComplete } = await poller.look(paths);
      expect(isComplete).toBe(true);
      expect(statuses).toHaveLength(MOST_READ);
      expect(statuses.map(({ path }) => path)).toEqual(expect.arrayContaining(places));
    }
  });

  test('that are unfinished are read, too, while more change than a look reads', async () => {
    const [busy, waiting] = [await insert('busy', MOST_READ + 20), await insert('waiting', 3)];
    const paths = [...busy, ...waiting];
    await poller.listUnfinished(paths);
    const read = new Set<string>();
    for (let look = 0; look < 4; look += 1) {
      await server!.read(url, `UPDATE tenants SET writes = writes + 1 WHERE id LIKE 'busy%'`);
      for (const { path } of (await poller.look(paths)).statuses) read.add(path);
    }
    expect([...read]).toEqual(expect.arrayContaining(waiting));
    expect(read.size).toBe(paths.length);
    await server!.read(url, `UPDATE tenants SET writes = writes + 1 WHERE id LIKE 'busy%'`);
    expect(await poller.listUnfinished(paths)).toHaveLength(paths.length);
  });

  test('are not read any more once the poller was closed, not even by a call that was under way', async () => {
    const [path] = await insert('open', 1);
    await poller.look([path!]);
    const connected = vi.spyOn(pg.Client.prototype, 'connect');
    onTestFinished(() => connected.mockRestore());
    const reads = [poller.look([path!]), poller.together!.dueSteps([path!]), poller.hasMarks(path!)];
    poller.close();
    const results = await Promise.allSettled(reads);
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
    await expect(poller.hasMarks(path!)).rejects.toMatchObject({ code: 'unavailable' });
    expect(connected).not.toHaveBeenCalled();
  });

  test('that hints name cost a look-up of their own tenants alone', async () => {
    await insert('other', 50);
    const [path] = await insert('new', 1);
    const asked = vi.spyOn(pg.Client.prototype, 'query');
    onTestFinished(() => asked.mockRestore());
    expect((await poller.together!.dueSteps([path!])).size).toBe(1);
    const results = await Promise.all(
      asked.mock.results.map(({ value }) => value as unknown as Promise<pg.QueryResult>),
    );
    // One row of the settings of the session, one of the tenant, and one of its ledger.
    expect(results.map(({ rows }) => rows.length)).toEqual([1, 1, 1]);
  });

  test('one that was just made is found by a hint, and one that was made anew by a look', async () => {
    const made = openLedger('made');
    enqueue(made.store);
    expect(await poller.together!.dueSteps([made.path])).toMatchObject(
      new Map([[made.path, { interactive: ['encode'], bulk: [] }]]),
    );
    await poller.look([made.path]);
    eraseTenantRows(url, 'made');
    expect((await poller.look([made.path])).statuses).toMatchObject([{ isUnfinished: false }]);
    const again = openLedger('made');
    expect(again.path).toBe(made.path);
    enqueue(again.store, { step: 'link', bulk: true });
    expect((await poller.look([again.path])).statuses).toMatchObject([{ interactive: [], bulk: ['link'] }]);
  });

  test('are read again after the connection, and after the server was lost', async () => {
    const { path, store } = openLedger('lasting');
    enqueue(store);
    const found = { statuses: [{ path, interactive: ['encode'] }] };
    expect(await poller.look([path])).toMatchObject(found);
    await server!.read(
      url,
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%ledger_%'
      AND pid <> pg_backend_pid()`,
    );
    await expect.poll(() => poller.look([path]).catch(() => null)).toMatchObject(found);
    // A worker's commit does not wait for the log, and the server ends as in a crash.
    await server!.read(url, 'CHECKPOINT');
    server!.restart();
    await expect.poll(() => poller.look([path]).catch(() => null)).toMatchObject(found);
  });

  test('of a schema of an earlier version are read once it is migrated', async () => {
    const { path, store } = openLedger('early');
    enqueue(store);
    await server!.read(url, `${UNDO_FROM_0021}; UPDATE schema_version SET version = 20`);
    await expect(poller.look([path])).rejects.toMatchObject({ code: 'unavailable' });
    expect(await server!.read(url, 'SELECT version FROM schema_version')).toEqual([{ version: 20 }]);
    const connection = openBlockingConnection(url);
    migrateSchema(connection);
    connection.close();
    expect(await poller.look([path])).toMatchObject({ statuses: [{ path, interactive: ['encode'] }] });
  });

  test('of many tenants are handed out while the thread of requests waits for none of them', async () => {
    const { control } = fixture.engine;
    const ledgers = Array.from({ length: 12 }, (_, n) => {
      control.createTenant(`waiting${n}`);
      return openLedger(`waiting${n}`, control.findTenantPath(`waiting${n}`));
    });
    // Bulk rows have room for all of them, beside eight interactive ones.
    for (const { store } of ledgers) enqueue(store, { bulk: true, count: 3 });
    const metrics = createMetrics();
    const { config } = fixture.engine;
    const engine = await openEngine({ config, metrics, writer: 'thread' });
    onTestFinished(() => engine.close());
    const rows = async () => (await metrics.dispatchedRows.get()).values.reduce((sum, { value }) => sum + value, 0);
    const before = tripTotals().trips;
    await expect.poll(rows, { timeout: 60_000 }).toBe(36);
    await (await engine.tenant('waiting7')).addMemories([newMemory({ content: 'The ferry leaves at noon.' })]);
    await expect.poll(rows, { timeout: 60_000 }).toBe(37);
    // What is left belongs to the add: the look-up of its tenant, and its quotas.
    expect(tripTotals().trips - before).toBeLessThan(10);
  });
});

/** Long answers are read portion by portion, and as far only as somebody wants them. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Store } from '../../src/engine/store/open-store.ts';
import {
  openBlockingConnection,
  type BlockingConnection,
} from '../../src/engine/store/postgres/blocking-connection.ts';
import type { Catalog } from '../../src/engine/store/postgres/catalog.ts';
import { tripTotals } from '../../src/engine/store/postgres/connection-channel.ts';
import { migrateSchema } from '../../src/engine/store/postgres/migrate-schema.ts';
import { ensureTenant, openPostgresStore, readCatalog } from '../../src/engine/store/postgres/open-postgres-store.ts';
import { openTenantStore } from '../../src/engine/store/postgres/tenant-database.ts';
import { createWorkBudget, hasWorkEnded, runWithin } from '../../src/engine/store/work-budget.ts';
import { startPostgres } from '../support/postgres.ts';
import { watchPlans } from '../support/postgres-plans.ts';

interface Row {
  readonly audit_no: number;
  readonly at: number;
  readonly detail: string;
  readonly hash: Buffer;
}

const ALL = 'SELECT audit_no, at, detail, hash FROM audit ORDER BY audit_no';
/** Parses each row, which counts as work: 32 bytes and the length of the text. */
const COUNTED = `SELECT audit_no FROM audit WHERE tags_pass(detail, '[]') ORDER BY audit_no`;
const ROWS = 3_500;
/** Size of a row that is so wide that a portion has few of them, bytes. */
const WIDE = 20_000;

const server = await startPostgres();
describe.skipIf(server === undefined)('portions', () => {
  let connection: BlockingConnection;
  let catalog: Catalog;
  beforeAll(() => {
    connection = openBlockingConnection(server!.url);
    migrateSchema(connection);
    catalog = readCatalog(connection);
  });
  afterAll(() => {
    connection?.close();
    server?.stop();
  });

  const open = (name: string): Store =>
    openPostgresStore({ connection, catalog, tenant: ensureTenant(connection, name) });
  /** Fills the audit log of a tenant, each record with a text of `bytes`. */
  const fill = (store: Store, rows: number, bytes = 2) => {
    const insert = `INSERT INTO audit (tenant, audit_no, at, key_id, action, detail, hash)
      SELECT current_setting('cairn.tenant')::int, n, 3 * n, 'k', 'add', rpad('[]', $2::int), sha256(n::text::bytea)
      FROM generate_series(1, $1::int) AS n`;
    store.write(() => connection.query(insert, [rows, bytes]));
  };
  const tripsOf = (work: () => unknown) => {
    const before = tripTotals().trips;
    work();
    return tripTotals().trips - before;
  };
  const openPortals = () =>
    connection.query(`SELECT name FROM pg_cursors WHERE name LIKE 'portion %'`, []).rows.map(([name]) => name);
  /** Iterates over the first rows of a statement; returns their number and the number of round trips. */
  const take = (rows: Iterable<unknown>, count: number) => {
    const iterator = rows[Symbol.iterator]();
    let taken = 0;
    const trips = tripsOf(() => {
      while (taken < count && iterator.next().done !== true) taken += 1;
      iterator.return?.();
    });
    return { taken, trips };
  };

  test('a long answer is the whole one, in the first run of a statement and later', () => {
    const store = open('long');
    fill(store, ROWS);
    const hashed = (rows: Row[]) => rows.map(({ hash, ...row }) => ({ ...row, hash: hash.toString('hex') }));
    const read = () => store.read(() => hashed([...store.prepare(ALL).iterate()] as Row[]));
    const runs = [read(), read()];
    const whole = hashed(store.prepare(ALL).all() as Row[]);
    expect(whole.length).toBe(ROWS);
    expect(runs).toEqual([whole, whole]);
    const numbers = whole.map((row) => row.audit_no);
    store.read(() => {
      expect([...store.prepare(ALL).pluck().iterate()]).toEqual(numbers);
      expect([...store.prepare(ALL).raw().iterate()].map((row) => (row as unknown[])[1])).toEqual(
        numbers.map((no) => 3 * no),
      );
    });
  });

  test('only what is wanted is read, and a portal is closed as soon as no more is wanted', () => {
    const store = open('early');
    fill(store, ROWS);
    store.read(() => {
      store.prepare('SELECT count(*) FROM audit').get();
      const all = store.prepare(ALL);
      expect(take(all.iterate(), 1_000)).toEqual({ taken: 1_000, trips: 1 });
      expect(take(all.iterate(), 1_001)).toEqual({ taken: 1_001, trips: 2 });
      expect(openPortals()).toEqual([]);
      const rows = all.iterate();
      rows.next();
      expect(openPortals().length).toBe(1);
      rows.return!();
      expect(openPortals()).toEqual([]);
    });
  });

  test('a portal is closed before its transaction ends, so that the server notes what the query did', async () => {
    const url = await server!.createSchema();
    const plans = await watchPlans(server!, url);
    const database = openTenantStore({ database: url, tenant: 'noted', path: '/nowhere', role: 'worker' });
    database.write(() => database.prepare('INSERT INTO store_info (key, value) VALUES (?, ?)').run('noted', 'x'));
    const sql = `SELECT value FROM store_info WHERE key = 'noted'`;
    database.read(() => expect([...database.prepare(sql).pluck().iterate()]).toEqual(['x']));
    database.write(() => {});
    expect(
      plans()
        .filter(({ text }) => text.includes(`'noted'`))
        .map(({ rowsReturned }) => rowsReturned),
    ).toEqual([1]);
    database.close();
  });

  test('a short answer takes one round trip, as it does without portions', () => {
    const store = open('short');
    fill(store, 999);
    store.read(() => {
      store.prepare('SELECT count(*) FROM audit').get();
      expect(take(store.prepare(ALL).iterate(), Infinity)).toEqual({ taken: 999, trips: 1 });
      const few = store.prepare(`${ALL} LIMIT 20`);
      expect(take(few.iterate(), Infinity)).toEqual({ taken: 20, trips: 1 });
      // It is cached for the transaction.
      expect(take(few.iterate(), Infinity)).toEqual({ taken: 20, trips: 0 });
      expect(tripsOf(() => few.all())).toBe(0);
      expect(openPortals()).toEqual([]);
    });
  });

  test('a portion of wide rows has few of them', () => {
    const store = open('wide');
    fill(store, 1_100, WIDE);
    store.read(() => {
      store.prepare('SELECT count(*) FROM audit').get();
      // 100 rows of 20,000 bytes, in portions of 1 MiB.
      expect(take(store.prepare(ALL).iterate(), Infinity)).toEqual({ taken: 1_100, trips: 3 });
    });
  });

  test('other statements run in between, also those that change the rows', () => {
    const store = open('between');
    fill(store, ROWS);
    const changed = store.write(() => {
      const seen: string[] = [];
      for (const { audit_no, detail } of store.prepare(ALL).iterate() as Iterable<Row>) {
        seen.push(detail);
        if (audit_no % 500 !== 1) continue;
        store.prepare('UPDATE audit SET detail = ? WHERE audit_no > ?').run('changed', audit_no);
        expect(store.prepare('SELECT detail FROM audit WHERE audit_no = ?').pluck().get(ROWS)).toBe('changed');
        expect(take(store.prepare(ALL).iterate(), 1_500).taken).toBe(1_500);
      }
      return seen;
    });
    // As it was when the query began.
    expect(changed).toEqual(new Array(ROWS).fill('[]'));
    // Outside of a transaction there is no snapshot that could last.
    store.prepare('SELECT count(*) FROM audit').get();
    expect(take(store.prepare(ALL).iterate(), Infinity)).toEqual({ taken: ROWS, trips: 1 });
  });

  test('a query that counts its work on the server counts all portions, and ends with the budget', () => {
    const store = open('counted');
    fill(store, ROWS);
    const workOf = (bytes: number) => {
      const budget = createWorkBudget({ bytes, deadlineMs: 60_000 });
      return runWithin(budget, () =>
        store.read(() => {
          const rows = [...store.prepare(COUNTED).pluck().iterate()];
          return { rows: rows.length, used: bytes - budget.left, hasEnded: hasWorkEnded() };
        }),
      );
    };
    expect(workOf(1_000_000)).toEqual({ rows: ROWS, used: ROWS * 34, hasEnded: false });
    expect(workOf(1_500 * 34)).toMatchObject({ rows: 1_500, hasEnded: true });
  });
});

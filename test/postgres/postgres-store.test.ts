import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { EngineError } from '../../src/engine/errors.ts';
import { lastNumbers } from '../../src/engine/store/calibrations.ts';
import { insertDynamics } from '../../src/engine/store/dynamics.ts';
import { ensureUser, insertMemory, listMatchingMemoryNos, readMemories } from '../../src/engine/store/memories.ts';
import type { Store } from '../../src/engine/store/open-store.ts';
import {
  openBlockingConnection,
  type BlockingConnection,
} from '../../src/engine/store/postgres/blocking-connection.ts';
import type { Catalog } from '../../src/engine/store/postgres/catalog.ts';
import { migrateSchema } from '../../src/engine/store/postgres/migrate-schema.ts';
import { ensureTenant, openPostgresStore, readCatalog } from '../../src/engine/store/postgres/open-postgres-store.ts';
import { inSavepoint } from '../../src/engine/store/savepoint.ts';
import { findInfo, putInfo } from '../../src/engine/store/store-info.ts';
import { createWorkBudget, runWithin } from '../../src/engine/store/work-budget.ts';
import { contentHash } from '../../src/engine/text/content-hash.ts';
import { crashAndReuse } from '../support/crash-and-reuse.ts';
import { newMemory } from '../support/new-memory.ts';
import { startPostgres } from '../support/postgres.ts';
import { openTemporaryStore } from '../support/temporary-store.ts';

/**
 * Newest migration of a tenant's file that the schema of PostgreSQL has. A later one is told of and not refused, while
 * nothing leads to PostgreSQL.
 */
const MIRRORED_VERSION = 20;

const server = await startPostgres();
describe.skipIf(server === undefined)('a store in PostgreSQL', () => {
  let connection: BlockingConnection;
  let catalog: Catalog;
  const open = (name: string, on = connection): Store =>
    openPostgresStore({ connection: on, catalog, tenant: ensureTenant(on, name) });

  beforeAll(() => {
    connection = openBlockingConnection(server!.url);
    migrateSchema(connection);
    catalog = readCatalog(connection);
  });
  afterAll(() => {
    connection?.close();
    server?.stop();
  });

  function add(store: Store, id: string, content: string, tags: readonly string[] = []): number {
    return store.write(() => {
      const memory = newMemory({ content, userId: 'ana', tags });
      const userNo = ensureUser(store, 'ana');
      const memoryNo = insertMemory(store, { id, userNo, memory, contentHash: contentHash(content), now: 1_000 });
      insertDynamics(store, { memoryNo, salience: 0.4, decayLambda: 0.005, now: 1_000 });
      return memoryNo;
    });
  }

  test('keeps a bounded number of statements prepared, and prepares a closed one again', () => {
    const prepared = () => connection.query('SELECT count(*) FROM pg_prepared_statements').rows[0]![0] as number;
    const ask = (place: number) => connection.query(`SELECT $1::bigint + ${place}`, [1], `form-${place}`).rows[0]![0];
    for (let place = 0; place < 1_500; place += 1) expect(ask(place)).toBe(place + 1);
    expect(prepared()).toBeLessThanOrEqual(1_001);
    expect([ask(0), ask(1_499), ask(0)]).toEqual([1, 1_500, 1]);
    expect(prepared()).toBeLessThanOrEqual(1_001);
  });

  test('ends conditions on tags, metadata and values at the deadline of their query', () => {
    const store = open('late');
    add(store, 'late-1', 'Ships are late.', ['old']);
    const conditions = [
      [`tags_pass(m.tags, ?)`, ['old']],
      [`metadata_passes(m.metadata, ?)`, [['k', '$exists', false]]],
      [`value_passes('{}', ?)`, [['k', '$exists', false]]],
    ] as const;
    const clock = { ms: 0 };
    for (const [condition, wanted] of conditions) {
      const ask = (deadlineMs: number) => {
        const budget = createWorkBudget({ bytes: 1_000_000, deadlineMs }, () => clock.ms);
        clock.ms += 1;
        const found = runWithin(budget, () =>
          store.read(() =>
            store.prepare(`SELECT m.seq FROM memories m WHERE ${condition}`).all(JSON.stringify(wanted)),
          ),
        );
        return [found.length, budget.end];
      };
      expect([condition, ask(60_000), ask(0), ask(60_000)]).toEqual([condition, [1, null], [0, 'deadline'], [1, null]]);
    }
  });

  test('ends conditions on tags, metadata and values when the bytes of their query are used, and counts them', () => {
    const store = open('bytes');
    const texts = ['One ship.', 'Two ships.', 'Three ships.', 'Four ships.'];
    for (const [no, text] of texts.entries()) add(store, `bytes-${no}`, text, ['old']);
    const conditions = [
      [`tags_pass(m.tags, ?)`, ['old'], 32 + '["old"]'.length],
      [`metadata_passes(m.metadata, ?)`, [['k', '$exists', false]], 32 + '{}'.length],
      [`value_passes(coalesce(m.value, '{}'), ?)`, [['k', '$exists', false]], 32 + '{}'.length],
    ] as const;
    for (const [condition, wanted, bytes] of conditions) {
      const ask = (most: number) => {
        const budget = createWorkBudget({ bytes: most, deadlineMs: 60_000 });
        const read = () => store.prepare(`SELECT m.seq FROM memories m WHERE ${condition}`).all(JSON.stringify(wanted));
        const found = runWithin(budget, () => store.read(read));
        return [found.length, budget.end, budget.left];
      };
      expect([condition, ask(4 * bytes)]).toEqual([condition, [4, null, 0]]);
      expect([condition, ask(3 * bytes - 1)]).toEqual([condition, [2, 'work_budget', -1]]);
      expect([condition, ask(1_000_000)]).toEqual([condition, [4, null, 1_000_000 - 4 * bytes]]);
    }
  });

  test('migrates once, and has the tables and columns of a file, each key with the tenant first', () => {
    migrateSchema(connection);
    const indexes = connection.query(
      `SELECT indexrelid::regclass::text FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
       JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant'
       WHERE c.relnamespace = current_schema()::regnamespace AND c.relname <> 'tenants' AND i.indkey[0] <> a.attnum`,
    );
    expect(indexes.rows).toEqual([]);
    using file = openTemporaryStore();
    const tables = file.db
      .prepare(
        `SELECT name FROM sqlite_schema WHERE type = 'table' AND NOT name GLOB 'sqlite_*' AND NOT name GLOB 'memory_text*'`,
      )
      .pluck()
      .all() as string[];
    const types: Record<string, string> = {
      INTEGER: 'bigint',
      REAL: 'double precision',
      TEXT: 'text',
      BLOB: 'bytea',
      ANY: 'bytea',
    };
    const version = file.db.pragma('user_version', { simple: true }) as number;
    if (version > MIRRORED_VERSION) {
      console.warn(`the schema of PostgreSQL is behind: it has ${MIRRORED_VERSION} of ${version} migrations of a file`);
      return;
    }
    expect(tables.length).toBeGreaterThan(45);
    for (const table of tables) {
      const columns = file.db.prepare('SELECT name, type, pk FROM pragma_table_xinfo(?)').all(table) as {
        name: string;
        type: string;
        pk: number;
      }[];
      const { columns: found, key, ofTenants } = catalog.get(table)!;
      expect([table, Object.fromEntries(found)]).toEqual([
        table,
        { tenant: 'integer', ...Object.fromEntries(columns.map(({ name, type }) => [name, types[type]])) },
      ]);
      expect(ofTenants).toBe(true);
      expect(key).toEqual(
        columns
          .filter(({ pk }) => pk > 0)
          .sort((a, b) => a.pk - b.pk)
          .map(({ name }) => name),
      );
    }
  });

  test('keeps what a text of PostgreSQL cannot hold', () => {
    const store = open('texts');
    const content = 'Zero \0, U+10FFFE \u{10fffe}, quote \' and "é🚢".';
    const memoryNo = add(store, 'texts-1', content);
    expect(readMemories(store, [memoryNo], 1_000).get(memoryNo)!.content).toBe(content);
  });

  test('numbers the rows of each tenant from 1, and one tenant sees nothing of another', () => {
    const [one, two] = [open('one'), open('two')];
    expect([add(one, 'a', 'First.', ['x']), add(one, 'b', 'Second.'), add(two, 'a', 'Other.', ['x'])]).toEqual([
      1, 2, 1,
    ]);
    const all = { after: 0, limit: 10, now: 1_000 };
    expect(listMatchingMemoryNos(one, {}, all).memoryNos).toEqual([1, 2]);
    expect(listMatchingMemoryNos(two, { tags: ['x'] }, all).memoryNos).toEqual([1]);
    expect(readMemories(two, [1, 2], 1_000).get(1)!.content).toBe('Other.');
  });

  test('tells which numbers a tenant gave last, by which fits are repeated', () => {
    const store = open('last');
    add(store, 'a', 'One.');
    const before = lastNumbers(store);
    expect(before).toBe(lastNumbers(store));
    add(store, 'b', 'Two.');
    expect(lastNumbers(store)).not.toBe(before);
  });

  test('the wall of the database holds for a statement that names no tenant', () => {
    const [one, two] = [open('wall one'), open('wall two')];
    add(one, 'a', 'Mine.');
    add(two, 'b', 'Yours.');
    two.prepare('SELECT 1 FROM users').get(); // The session is now that of the second.
    expect(connection.query('SELECT content FROM memories').rows).toEqual([['Yours.']]);
    expect(connection.query(`UPDATE memories SET title = 'seized'`).changes).toBe(1);
    const other = connection.query(`SELECT tenant FROM tenants WHERE id = 'wall one'`).rows[0]![0] as number;
    expect(() => connection.query(`INSERT INTO store_info (tenant, key, value) VALUES (${other}, 'k', 'v')`)).toThrow(
      EngineError,
    );
    expect(one.prepare('SELECT title FROM memories').pluck().get()).toBe('');
  });

  test('undoes what throws, a savepoint by itself', () => {
    const store = open('undone');
    expect(() =>
      store.write(() => {
        putInfo(store, 'whole', 'x');
        throw new RangeError('no');
      }),
    ).toThrow(RangeError);
    store.write(() => {
      putInfo(store, 'kept', 'x');
      inSavepoint(
        store,
        () => {
          putInfo(store, 'part', 'x');
          store.prepare('INSERT INTO store_info (key, value) VALUES (?, ?)').run('part', 'twice');
        },
        () => {},
      );
    });
    expect(['whole', 'part', 'kept'].map((key) => findInfo(store, key))).toEqual([undefined, undefined, 'x']);
  });

  test('a read keeps its snapshot while another connection writes', () => {
    const other = openBlockingConnection(server!.url);
    try {
      const [reader, writer] = [open('snapshot'), open('snapshot', other)];
      const seen = reader.read(() => {
        const before = findInfo(reader, 'k');
        writer.write(() => putInfo(writer, 'k', 'new'));
        return [before, findInfo(reader, 'k')];
      });
      expect([...seen, findInfo(reader, 'k')]).toEqual([undefined, undefined, 'new']);
    } finally {
      other.close();
    }
  });

  test('tells whether a commit whose answer was lost has come about', () => {
    const store = open('doubt');
    const killer = openBlockingConnection(server!.url);
    const backend = () => connection.query('SELECT pg_backend_pid()').rows[0]![0] as number;
    const doubtful: BlockingConnection = {
      ...connection,
      get session() {
        return connection.session;
      },
      get roundTrips() {
        return connection.roundTrips;
      },
      query(text, values, name) {
        if (text !== 'COMMIT') return connection.query(text, values, name);
        const pid = backend();
        if (answers) connection.query(text);
        killer.query(`SELECT pg_terminate_backend(${pid}, 10000)`);
        return connection.query('SELECT 1');
      },
    };
    let answers = true;
    try {
      const torn = open('doubt', doubtful);
      torn.write(() => putInfo(torn, 'committed', 'x'));
      answers = false;
      expect(() => torn.write(() => putInfo(torn, 'lost', 'x'))).toThrow(
        expect.objectContaining({ code: 'unavailable' }) as Error,
      );
      expect([findInfo(store, 'committed'), findInfo(store, 'lost')]).toEqual(['x', undefined]);
    } finally {
      killer.close();
    }
  });

  test('a write whose session was lost is no success, and goes on in no other session', () => {
    const store = open('torn');
    const killer = openBlockingConnection(server!.url);
    onTestFinished(() => killer.close());
    const errors: unknown[] = [];
    const tryTo = (work: () => unknown) => {
      try {
        work();
      } catch (error) {
        errors.push(error);
      }
    };
    const write = () =>
      store.write(() => {
        putInfo(store, 'before', 'x');
        const pid = connection.query('SELECT pg_backend_pid()', []).rows[0]![0] as number;
        killer.query(`SELECT pg_terminate_backend(${pid}, 10000)`);
        tryTo(() => findInfo(store, 'asked'));
        tryTo(() => findInfo(store, 'asked again'));
      });
    expect(write).toThrow(expect.objectContaining({ code: 'unavailable' }) as Error);
    const lost = { code: 'unavailable', cause: { isLost: true } };
    expect(errors).toMatchObject([lost, lost]);
    expect(findInfo(store, 'before')).toBeUndefined();
    store.write(() => putInfo(store, 'after', 'x'));
    expect(findInfo(store, 'after')).toBe('x');
  });

  test('connects again after a statement that took too long, which ends on the server', async () => {
    const impatient = openBlockingConnection(server!.url);
    try {
      const store = open('slow', impatient);
      store.write(() => putInfo(store, 'k', 'kept'));
      // The session is there, so no time to connect is added.
      impatient.setTimeouts({ connectMs: 600_000, statementMs: 100 });
      expect(() =>
        store.write(() => {
          putInfo(store, 'k', 'gone');
          impatient.query('SELECT pg_sleep(600)');
        }),
      ).toThrow(expect.objectContaining({ code: 'unavailable' }) as Error);
      impatient.setTimeouts({ connectMs: 60_000, statementMs: 60_000 });
      expect(findInfo(store, 'k')).toBe('kept');
      // What the statement holds is free when it has ended.
      const running = `SELECT query FROM pg_stat_activity WHERE query ~ 'pg_sleep.600' AND pid <> pg_backend_pid()`;
      await expect.poll(() => connection.query(running).rows).toEqual([]);
      store.write(() => putInfo(store, 'k', 'new'));
      expect(findInfo(store, 'k')).toBe('new');
    } finally {
      impatient.close();
    }
  });

  test('is there again after a crash of the server, with what it acknowledged', () => {
    const store = open('crash');
    store.write(() => putInfo(store, 'k', 'kept'));
    expect(() =>
      store.write(() => {
        putInfo(store, 'k', 'gone');
        server!.restart();
        putInfo(store, 'k', 'gone, too');
      }),
    ).toThrow(expect.objectContaining({ code: 'unavailable' }) as Error);
    expect(findInfo(store, 'k')).toBe('kept');
    store.write(() => putInfo(store, 'k', 'new'));
    expect(findInfo(store, 'k')).toBe('new');
  });

  test('a write that a crash took back is no success, though another one got the number of its transaction', () => {
    const store = open('taken back');
    const write = () =>
      store.write(() => {
        putInfo(store, 'k', 'gone');
        const [[number] = []] = connection.query('SELECT pg_current_xact_id()::text', []).rows;
        isReused = crashAndReuse(server!, number as string);
      });
    let isReused = false;
    while (!isReused)
      expect(write).toThrow(expect.objectContaining({ code: 'unavailable', mayBeWritten: true }) as Error);
    expect(findInfo(store, 'k')).toBeUndefined();
    store.write(() => putInfo(store, 'k', 'new'));
    expect(findInfo(store, 'k')).toBe('new');
  });

  test('lets the server end the session of a machine that vanished in a write', () => {
    const store = open('vanished');
    const settings = store.write(() => {
      putInfo(store, 'k', 'v');
      return connection.query(
        `SELECT name, setting FROM pg_settings WHERE name ~ '^(tcp_|idle_in_transaction)' ORDER BY name`,
        [],
      ).rows;
    });
    expect(settings).toEqual([
      ['idle_in_transaction_session_timeout', '60000'],
      ['tcp_keepalives_count', '4'],
      ['tcp_keepalives_idle', '10'],
      ['tcp_keepalives_interval', '5'],
      ['tcp_user_timeout', '30000'],
    ]);
  });
});

/** Statements of one text that are sent as one: what they do and answer is what they would one by one. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readConfig } from '../../src/engine/config.ts';
import { listSupersessions } from '../../src/engine/store/edges.ts';
import { findEntities } from '../../src/engine/store/entities.ts';
import { ensureUser, insertMemory } from '../../src/engine/store/memories.ts';
import type { Store } from '../../src/engine/store/open-store.ts';
import {
  openBlockingConnection,
  type BlockingConnection,
} from '../../src/engine/store/postgres/blocking-connection.ts';
import type { Catalog } from '../../src/engine/store/postgres/catalog.ts';
import { tripTotals } from '../../src/engine/store/postgres/connection-channel.ts';
import { migrateSchema } from '../../src/engine/store/postgres/migrate-schema.ts';
import { ensureTenant, openPostgresStore, readCatalog } from '../../src/engine/store/postgres/open-postgres-store.ts';
import { SELECT_USER } from '../../src/engine/store/users.ts';
import { contentHash } from '../../src/engine/text/content-hash.ts';
import { commitGroup } from '../../src/engine/writer/group-commit.ts';
import { v7 as uuidv7 } from 'uuid';
import { newMemory } from '../support/new-memory.ts';
import { startPostgres } from '../support/postgres.ts';

const PUT = 'INSERT INTO store_info (key, value) VALUES (?, ?)';
const LIST = 'SELECT key FROM store_info WHERE key >= ? ORDER BY key DESC LIMIT ?';
const COUNT = 'UPDATE users SET memories = memories + 1 WHERE user_no = ?';
/** Statements of a write that changes nothing: its beginning, its lock, its numbers and its commit. */
const OF_A_WRITE = 4;
/** Adds of a group, each of a tag, half of them in sessions. */
const GROUP = 100;

const server = await startPostgres();
describe.skipIf(server === undefined)('statements to PostgreSQL', () => {
  let connection: BlockingConnection;
  let catalog: Catalog;
  const open = (name: string): Store => {
    const store = openPostgresStore({ connection, catalog, tenant: ensureTenant(connection, name) });
    // A statement outside of a transaction sets the tenant of the session.
    store.prepare('SELECT 1 FROM users').get();
    store.write(() => {});
    return store;
  };
  const statementsOf = (work: () => unknown) => {
    const before = tripTotals().statements;
    work();
    return tripTotals().statements - before;
  };
  const put = (store: Store, key: string, value = 'x') => store.prepare(PUT).run(key, value);
  const keys = (store: Store) =>
    store.prepare(`SELECT key FROM store_info WHERE key LIKE 'k%' ORDER BY key`).pluck().all();

  beforeAll(() => {
    connection = openBlockingConnection(server!.url);
    migrateSchema(connection);
    catalog = readCatalog(connection);
  });
  afterAll(() => {
    connection?.close();
    server?.stop();
  });

  test('queries with other values are one statement, with the answers and the order of each', () => {
    const store = open('queries');
    store.write(() => ['a', 'b', 'c', 'd'].forEach((key) => put(store, `k${key}`)));
    const asked = [
      ['ka', 2],
      ['kb', 9],
      ['kz', 5],
      ['kc', 1],
    ];
    const alone = asked.map((given) =>
      store
        .prepare(LIST)
        .pluck()
        .all(...given),
    );
    store.read(() => {
      const statements = statementsOf(() => {
        store.ahead!.ask(LIST, asked);
        expect(
          asked.map((given) =>
            store
              .prepare(LIST)
              .pluck()
              .all(...given),
          ),
        ).toEqual(alone);
      });
      // The beginning of the snapshot, the number of writes, and one query.
      expect(statements).toBe(3);
    });
    expect(alone).toEqual([['kd', 'kc'], ['kd', 'kc', 'kb'], [], ['kd']]);
  });

  test('an empty list is compared with texts where the column has texts, and with numbers where it has numbers', () => {
    const store = open('lists');
    const userNo = store.write(() => ensureUser(store, 'ana'));
    const all = (sql: string, ...lists: unknown[][]) =>
      store
        .prepare(sql)
        .pluck()
        .all(...lists.map((list) => JSON.stringify(list)));
    const ofNames = 'SELECT u.user_no FROM json_each(?) AS wanted CROSS JOIN users u ON u.user_id = wanted.value';
    expect([all(ofNames, ['ana']), all(ofNames, [])]).toEqual([[userNo], []]);
    // The column `source` has numbers here and texts in the table of documents.
    const ofSources = 'SELECT s.source FROM json_each(?) AS w CROSS JOIN consolidation_sources s ON s.source = w.value';
    expect([all(ofSources, [1]), all(ofSources, [])]).toEqual([[], []]);
    expect(findEntities(store, [], ['ana'], 5)).toEqual([]);
  });

  test('supersessions are walked along, as a question needs whose filter the newest of a chain fails', () => {
    const store = open('chains');
    const link = store.prepare(
      `INSERT INTO edges (src, dst, type, weight, automatic, created_at, updated_at)
       VALUES (?, ?, 'supersedes', 1, 0, 0, 0)`,
    );
    const [first, second, third] = store.write(() => {
      const userNo = ensureUser(store, 'ana');
      const numbers = ['noon', 'one', 'two'].map((hour) => {
        const memory = newMemory({ content: `The ferry leaves at ${hour}.`, userId: 'ana' });
        const row = { id: uuidv7(), userNo, memory, value: null, contentHash: contentHash(memory.content), now: 0 };
        return insertMemory(store, row);
      });
      link.run(numbers[1], numbers[0]);
      link.run(numbers[2], numbers[1]);
      return numbers;
    });
    expect(listSupersessions(store, [first!])).toEqual([
      { older: first, newer: second },
      { older: second, newer: third },
    ]);
  });

  test('what has decayed for so long that no number is small enough is next to nothing, and no error', () => {
    const store = open('decay');
    const decayed = store.prepare('SELECT 0.4 * exp(-1.0 * max(0, ? - 0) / 86400000.0)').pluck();
    expect(decayed.get(86_400_000)).toBeCloseTo(0.4 / Math.E, 12);
    expect(decayed.get(86_400_000 * 100_000)).toBeCloseTo(0, 100);
  });

  test('inserts are one statement, and rows that the database numbers keep their order', () => {
    const store = open('inserts');
    const insert = store.prepare('INSERT INTO events (at, kind) VALUES (?, 0)');
    const statements = statementsOf(() =>
      store.write(() => {
        for (let n = 0; n < 50; n += 1) {
          put(store, `k${n}`);
          insert.run(100 - n);
        }
      }),
    );
    expect(statements).toBe(OF_A_WRITE + 2);
    expect(keys(store)).toHaveLength(50);
    const times = store.prepare('SELECT at FROM events WHERE at <= 100 ORDER BY event_no').pluck().all();
    expect(times).toEqual(Array.from({ length: 50 }, (_, n) => 100 - n));
  });

  test('a statement is never sent before one on which it may depend', () => {
    const store = open('order');
    const found: unknown[] = [];
    store.write(() => {
      put(store, 'k1');
      store.prepare(`UPDATE store_info SET value = 'y' WHERE key LIKE 'k%'`).run();
      put(store, 'k2');
      store.ahead!.ask(LIST, [['k', 9]]);
      put(store, 'k3');
      found.push(store.prepare(LIST).pluck().all('k', 9));
      store.prepare('DELETE FROM store_info WHERE key = ?').run('k1');
      put(store, 'k1', 'z');
    });
    const rows = store.prepare(`SELECT key, value FROM store_info WHERE key LIKE 'k%' ORDER BY key`).raw().all();
    expect(rows).toEqual([
      ['k1', 'z'],
      ['k2', 'x'],
      ['k3', 'x'],
    ]);
    expect(found).toEqual([['k3', 'k2', 'k1']]);
  });

  test('rows come behind those that their foreign keys name, and are counted one by one', () => {
    const store = open('parents');
    let users: number[] = [];
    const statements = statementsOf(() =>
      store.write(() => {
        users = ['ana', 'bob'].map((userId) => ensureUser(store, userId));
        [0, 1, 0, 0].forEach((place) => store.prepare(COUNT).run(users[place]!));
      }),
    );
    const counted = store.prepare('SELECT memories FROM users WHERE user_no > 0 ORDER BY user_no').pluck().all();
    expect(counted).toEqual([3, 1]);
    // Both users are looked up, get a number and are inserted; the counts are one statement.
    expect(statements).toBeLessThanOrEqual(OF_A_WRITE + 2 * 4 + 1);
    expect(store.prepare(SELECT_USER).pluck().get('bob')).toBe(users[1]);
  });

  test('an insert that is passed over where a row is there leaves the others alone', () => {
    const store = open('there');
    const insert = store.prepare('INSERT OR IGNORE INTO store_info (key, value) VALUES (?, ?)');
    store.write(() => void ['k1', 'k2', 'k1', 'k3'].forEach((key, n) => insert.run(key, String(n))));
    expect(store.prepare(`SELECT value FROM store_info WHERE key LIKE 'k%' ORDER BY key`).pluck().all()).toEqual([
      '0',
      '1',
      '3',
    ]);
    store.write(() => {
      const [first, second] = [insert.run('k1', 'x'), insert.run('k4', 'x')];
      expect(second.changes).toBe(1);
      expect(first.changes).toBe(0);
    });
  });

  test('a group of adds takes a few statements, whatever its size', () => {
    const store = open('group');
    const context = {
      ...{ store, indexes: new Map(), config: readConfig({ OM_AUDIT: 'off' }), now: 1_000 },
      ...{ newId: uuidv7, backlog: { atMost: 0 } },
    };
    const add = (first: number, count: number) => {
      const requests = Array.from({ length: count }, (_, n) => ({
        name: 'addMemories' as const,
        input: {
          items: [
            newMemory({
              ...{ content: `Text number ${first + n}.`, userId: `user ${n % 7}`, tags: [`t${n % 9}`] },
              sessionId: n % 2 === 0 ? '' : `s${n % 14}`,
            }),
          ],
          options: {},
        },
      }));
      expect(commitGroup(context, requests).every(({ ok }) => ok)).toBe(true);
    };
    add(0, GROUP);
    add(1_000, GROUP);
    const one = statementsOf(() => add(2_000, GROUP / 2));
    const two = statementsOf(() => add(3_000, GROUP));
    expect(two).toBe(one);
    expect(two).toBeLessThanOrEqual(MAX_OF_GROUP);
    expect(store.prepare('SELECT sum(memories) FROM users').pluck().get()).toBe(3.5 * GROUP);
  });
});

/** Greatest number of statements of a group of adds; they go in seven round trips. */
const MAX_OF_GROUP = 23;

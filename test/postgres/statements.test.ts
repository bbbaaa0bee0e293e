/** Statements of one text that are sent as one: what they do and answer is what they would one by one. */
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readConfig } from '../../src/engine/config.ts';
import type { EntityGraph } from '../../src/engine/entities/extract.ts';
import { LateError } from '../../src/engine/store/late-error.ts';
import { insertDynamics } from '../../src/engine/store/dynamics.ts';
import { listSupersessions } from '../../src/engine/store/edges.ts';
import { findEntities } from '../../src/engine/store/entities.ts';
import { ensureUser, insertMemory } from '../../src/engine/store/memories.ts';
import { openStore, type Store } from '../../src/engine/store/open-store.ts';
import {
  openBlockingConnection,
  type BlockingConnection,
} from '../../src/engine/store/postgres/blocking-connection.ts';
import type { Catalog } from '../../src/engine/store/postgres/catalog.ts';
import { tripTotals } from '../../src/engine/store/postgres/connection-channel.ts';
import { migrateSchema } from '../../src/engine/store/postgres/migrate-schema.ts';
import { ensureTenant, openPostgresStore, readCatalog } from '../../src/engine/store/postgres/open-postgres-store.ts';
import { putEntities } from '../../src/engine/store/put-entities.ts';
import { SELECT_USER } from '../../src/engine/store/users.ts';
import { contentHash } from '../../src/engine/text/content-hash.ts';
import type { EngineError } from '../../src/engine/errors.ts';
import { commitGroup, type WriteRequest } from '../../src/engine/writer/group-commit.ts';
import { v7 as uuidv7 } from 'uuid';
import { newMemory } from '../support/new-memory.ts';
import { startPostgres } from '../support/postgres.ts';
import { tempFolder } from '../support/temp-folder.ts';

const PUT = 'INSERT INTO store_info (key, value) VALUES (?, ?)';
const LIST = 'SELECT key FROM store_info WHERE key >= ? ORDER BY key DESC LIMIT ?';
const SET_SALIENCE = 'UPDATE memory_dynamics SET salience = ?, salience_now = ? WHERE seq = ?';
const NO_GRAPH: EntityGraph = { entities: [], relations: [] };
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
  const putMemories = (store: Store, count: number) =>
    store.write(() => {
      const userNo = ensureUser(store, 'ana');
      return Array.from({ length: count }, (_, place) => {
        const memory = newMemory({ content: `The ferry number ${place} leaves.`, userId: 'ana' });
        const row = { id: uuidv7(), userNo, memory, value: null, contentHash: contentHash(memory.content), now: 0 };
        const memoryNo = insertMemory(store, row);
        insertDynamics(store, { memoryNo, salience: 0.4, decayLambda: 0.1, now: 0 });
        return memoryNo;
      });
    });
  const saliences = (store: Store) =>
    store.prepare('SELECT salience, salience_now FROM memory_dynamics ORDER BY seq').raw().all();
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
    // Inserts into two tables are one each, and share a statement.
    expect(statements).toBe(OF_A_WRITE + 1);
    expect(keys(store)).toHaveLength(50);
    const times = store.prepare('SELECT at FROM events WHERE at <= 100 ORDER BY event_no').pluck().all();
    expect(times).toEqual(Array.from({ length: 50 }, (_, n) => 100 - n));
  });

  test('writes of different tables share a statement, but not one that changes what another one inserts', () => {
    const store = open('joined');
    const insert = store.prepare('INSERT INTO users (user_no, user_id) VALUES (?, ?)');
    const event = store.prepare('INSERT INTO events (at, kind) VALUES (?, 0)');
    const statements = statementsOf(() =>
      store.write(() => {
        insert.run(1, 'ana');
        insert.run(2, 'bob');
        event.run(7);
        put(store, 'k1');
        store.prepare(COUNT).run(2);
        insert.run(3, 'zoe');
        store.prepare(COUNT).run(3);
      }),
    );
    // The users who are counted are there before, so the statements are: inserts, a count, an insert, a count.
    expect(statements).toBe(OF_A_WRITE + 4);
    const users = store.prepare('SELECT user_id, memories FROM users WHERE user_no > 0 ORDER BY user_no').raw().all();
    expect(users).toEqual([
      ['ana', 0],
      ['bob', 1],
      ['zoe', 1],
    ]);
    expect([keys(store), store.prepare('SELECT at FROM events WHERE at = 7').all()]).toEqual([['k1'], [{ at: 7 }]]);
  });

  test('a joined statement that fails undoes all of its writes, with its own error', () => {
    const store = open('joined failure');
    store.write(() => put(store, 'k1'));
    const write = () =>
      store.write(() => {
        store.prepare('INSERT INTO users (user_no, user_id) VALUES (?, ?)').run(1, 'ana');
        put(store, 'k1');
      });
    expect(write).toThrow(LateError);
    expect(store.prepare('SELECT count(*) FROM users').pluck().get()).toBe(1);
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

  test('changes of rows by their number are one statement, and each row gets its own values', () => {
    const store = open('changes');
    const numbers = putMemories(store, 40);
    const before = statementsOf(() => store.write(() => {}));
    const changed: number[] = [];
    const statements = statementsOf(() =>
      store.write(() => {
        const results = numbers.flatMap((memoryNo, place) => [
          store.prepare(SET_SALIENCE).run((place + 1) / 100, 10 + place, memoryNo),
          // A statement about another table between them does not keep them apart.
          put(store, `k${place}`),
        ]);
        changed.push(...results.filter((_, at) => at % 2 === 0).map(({ changes }) => changes));
      }),
    );
    expect(statements).toBe(before + 2);
    expect(changed).toEqual(numbers.map(() => 1));
    expect(saliences(store)).toEqual(numbers.map((_, place) => [(place + 1) / 100, 10 + place]));
    const none = store.write(() => [numbers[0]!, 9_999, 9_998].map((no) => store.prepare(SET_SALIENCE).run(1, 1, no)));
    expect(none.map(({ changes }) => changes)).toEqual([1, 0, 0]);
  });

  test('two changes of one row keep their order, and so do a change and what it reads', () => {
    const store = open('kept order');
    const [first, second] = putMemories(store, 2) as [number, number];
    const set = store.prepare(SET_SALIENCE);
    const copy = store.prepare(
      'UPDATE memory_dynamics SET salience_now = (SELECT event_time FROM memories WHERE seq = ?) WHERE seq = ?',
    );
    const age = store.prepare('UPDATE memories SET event_time = ? WHERE seq = ?');
    store.write(() => {
      set.run(0.1, 1, first);
      set.run(0.2, 2, second);
      set.run(0.3, 3, first);
      copy.run(second, second);
      age.run(77, second);
      age.run(88, first);
      copy.run(first, first);
    });
    // The second memory copied its time before that was set, the first one afterwards.
    expect(saliences(store)).toEqual([
      [0.3, 88],
      [0.2, 0],
    ]);
  });

  test('rows that are deleted by their number are one statement', () => {
    const store = open('deletes');
    const numbers = putMemories(store, 30);
    const link = store.prepare(
      `INSERT INTO edges (src, dst, type, weight, automatic, created_at, updated_at)
       VALUES (?, ?, 'waypoint', 1, 1, 0, 0) ON CONFLICT (src, dst, type) DO NOTHING`,
    );
    const linked = statementsOf(() => store.write(() => numbers.forEach((src) => void link.run(src, numbers[0]))));
    expect(linked).toBe(OF_A_WRITE + 1);
    const unlink = store.prepare(`DELETE FROM edges WHERE src = ? AND type = 'waypoint' AND automatic = 1`);
    const deleted = statementsOf(() => store.write(() => numbers.slice(1).forEach((src) => void unlink.run(src))));
    expect(deleted).toBe(OF_A_WRITE + 1);
    expect(store.prepare('SELECT src FROM edges').pluck().all()).toEqual([numbers[0]]);
  });

  test('names are counted and mentioned by one statement each, and relations too, as in a file', () => {
    const file = openStore(path.join(tempFolder(), 'names.sqlite'), { role: 'worker', create: true });
    const database = open('names');
    const type = (place: number) => (place % 3 === 0 ? ('person' as const) : ('other' as const));
    const graphOf = (place: number): EntityGraph => ({
      entities: ['ada', `name ${place % 4}`].map((name) => ({ name, label: `${name} ${place}`, type: type(place) })),
      relations: [{ from: 'ada', to: `name ${place % 4}`, type: 'knows' }],
    });
    const put = (store: Store) => {
      const numbers = putMemories(store, 20);
      const statements = statementsOf(() =>
        store.write(() =>
          putEntities(
            store,
            numbers.map((memoryNo, place) => ({ memoryNo, userNo: 1 + (place % 2), graph: graphOf(place) })),
          ),
        ),
      );
      return { numbers, statements };
    };
    const [, { statements, numbers }] = [put(file), put(database)];
    // The look at the old mentions of each memory is not asked ahead here.
    expect(statements - numbers.length).toBeLessThanOrEqual(OF_A_WRITE + 3);
    const read = (store: Store) =>
      [
        'SELECT user_no, name, label, type, mentions FROM entities ORDER BY user_no, name',
        `SELECT m.memory, e.name, m.label, m.type FROM entity_mentions m JOIN entities e ON e.entity_no = m.entity_no
         ORDER BY m.memory, e.name`,
        `SELECT r.memory, a.name AS src, b.name AS dst, r.relation FROM entity_relations r
         JOIN entities a ON a.entity_no = r.src JOIN entities b ON b.entity_no = r.dst ORDER BY r.memory, dst`,
      ].map((sql) => store.prepare(sql).all());
    expect(read(database)).toEqual(read(file));
    expect(read(file)[0]).toContainEqual({ user_no: 1, name: 'ada', label: 'ada 0', type: 'person', mentions: 10 });
    // Replaced, and counted down again.
    for (const store of [file, database]) {
      store.write(() =>
        putEntities(
          store,
          numbers.slice(4).map((memoryNo) => ({ memoryNo, userNo: 1, graph: NO_GRAPH })),
        ),
      );
    }
    expect(read(database)).toEqual(read(file));
    file.close();
  });

  test('a request of which a statement fails takes none of its group along', () => {
    const store = open('failing');
    const context = {
      ...{ store, indexes: new Map(), config: readConfig({}), now: 1_000 },
      ...{ newId: uuidv7, backlog: { atMost: 0 } },
    };
    const add = (content: string) =>
      ({ name: 'addMemories', input: { items: [newMemory({ content })], options: {} } }) as const;
    store.prepare('ALTER TABLE webhooks RENAME TO hooks').run();
    const failing = { name: 'deleteWebhook', input: { id: 'w' } } as const;
    const missing = { name: 'deleteEval', input: { name: 'none' } } as const;
    const resultsOf = (requests: readonly WriteRequest[]) =>
      commitGroup(context, requests).map((result) => (result.ok ? 'ok' : (result.error as EngineError).code));
    expect(resultsOf([add('one'), failing, add('two')])).toEqual(['ok', 'internal', 'ok']);
    expect(resultsOf([failing, missing])).toEqual(['internal', 'not_found']);
    expect(store.prepare('SELECT content FROM memories ORDER BY seq').pluck().all()).toEqual(['one', 'two']);
  });

  test('a group of adds takes a few statements, whatever its size', () => {
    const store = open('group');
    const context = {
      ...{ store, indexes: new Map(), config: readConfig({}), now: 1_000 },
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
      // The first group finds nothing of what others have, and is divided.
      for (let done = 0; done < count;) {
        const results = commitGroup(context, requests.slice(done));
        expect(results.every(({ ok }) => ok)).toBe(true);
        done += results.length;
      }
    };
    const costOf = (work: () => void) => {
      const before = connection.roundTrips;
      return [statementsOf(work), connection.roundTrips - before];
    };
    add(0, GROUP);
    add(1_000, GROUP);
    const [one] = costOf(() => add(2_000, GROUP / 2));
    const [two, trips] = costOf(() => add(3_000, GROUP));
    expect(two).toBe(one);
    expect(two).toBeLessThanOrEqual(MAX_OF_GROUP);
    expect(trips).toBeLessThanOrEqual(3);
    expect(store.prepare('SELECT sum(memories) FROM users').pluck().get()).toBe(3.5 * GROUP);
  });
});

/**
 * Greatest number of statements of a group of adds: beginning, lock, numbers, users, last audit record; duplicates,
 * sessions, labels; all that is written; commit.
 */
const MAX_OF_GROUP = 10;

/** Statements that share round trips with PostgreSQL: what waits, what is prefetched, and what happens to errors. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readConfig } from '../../src/engine/config.ts';
import { LateError } from '../../src/engine/store/late-error.ts';
import { ensureUser } from '../../src/engine/store/memories.ts';
import type { Store } from '../../src/engine/store/open-store.ts';
import {
  openBlockingConnection,
  postgresError,
  type BlockingConnection,
} from '../../src/engine/store/postgres/blocking-connection.ts';
import type { Catalog } from '../../src/engine/store/postgres/catalog.ts';
import { migrateSchema } from '../../src/engine/store/postgres/migrate-schema.ts';
import { ensureTenant, openPostgresStore, readCatalog } from '../../src/engine/store/postgres/open-postgres-store.ts';
import { inSavepoint } from '../../src/engine/store/savepoint.ts';
import { findInfo, putInfo } from '../../src/engine/store/store-info.ts';
import { commitGroup } from '../../src/engine/writer/group-commit.ts';
import { newMemory } from '../support/new-memory.ts';
import { startPostgres } from '../support/postgres.ts';
import { SELECT_USER } from '../../src/engine/store/users.ts';

const INSERT_INFO = 'INSERT INTO store_info (key, value) VALUES (?, ?)';
const UNIQUE_VIOLATION = '23505';

const server = await startPostgres();
describe.skipIf(server === undefined)('round trips to PostgreSQL', () => {
  let connection: BlockingConnection;
  let catalog: Catalog;
  const open = (name: string): Store =>
    openPostgresStore({ connection, catalog, tenant: ensureTenant(connection, name) });
  const tripsOf = (work: () => unknown) => {
    const before = connection.roundTrips;
    work();
    return connection.roundTrips - before;
  };
  const errorOf = (work: () => unknown): unknown => {
    try {
      work();
    } catch (error) {
      return error;
    }
    return undefined;
  };

  beforeAll(() => {
    connection = openBlockingConnection(server!.url);
    migrateSchema(connection);
    catalog = readCatalog(connection);
  });
  afterAll(() => {
    connection?.close();
    server?.stop();
  });

  test('statements whose result nobody reads wait for the commit', () => {
    const store = open('waiting');
    store.write(() => putInfo(store, 'first', 'x'));
    const trips = tripsOf(() =>
      store.write(() => {
        for (let n = 0; n < 50; n += 1) store.prepare(INSERT_INFO).run(`k${n}`, String(n));
      }),
    );
    expect(trips).toBe(2);
    expect([findInfo(store, 'k0'), findInfo(store, 'k49')]).toEqual(['0', '49']);
  });

  test('a result is there when it is read, and so is a number that a write gives by itself', () => {
    const store = open('results');
    store.write(() => {
      putInfo(store, 'k', 'x');
      const changed = store.prepare('UPDATE store_info SET value = ? WHERE key = ?');
      const [one, none] = [changed.run('y', 'k'), changed.run('y', 'nothing')];
      expect([one.changes, none.changes]).toEqual([1, 0]);
      const chain = store.prepare('INSERT INTO chains (live_end) VALUES (?)');
      expect([chain.run(1).lastInsertRowid, chain.run(2).lastInsertRowid]).toEqual([1, 2]);
    });
  });

  test('a statement that waited and fails undoes the write, with its own error, and the next write goes well', () => {
    const store = open('failing');
    store.write(() => store.prepare(INSERT_INFO).run('taken', 'x'));
    const failing = (more: () => void) =>
      errorOf(() =>
        store.write(() => {
          store.prepare(INSERT_INFO).run('before', 'x');
          store.prepare(INSERT_INFO).run('taken', 'y');
          store.prepare(INSERT_INFO).run('after', 'x');
          more();
        }),
      );
    const atCommit = failing(() => {});
    const atQuery = failing(() => void findInfo(store, 'other'));
    for (const error of [atCommit, atQuery]) {
      expect(error).toBeInstanceOf(LateError);
      expect(postgresError(error)).toMatchObject({ code: UNIQUE_VIOLATION, isLost: false });
    }
    expect(['before', 'after'].map((key) => findInfo(store, key))).toEqual([undefined, undefined]);
    store.write(() => putInfo(store, 'next', 'x'));
    expect([findInfo(store, 'next'), findInfo(store, 'taken')]).toEqual(['x', 'x']);
  });

  test('a write that goes on after a statement has failed is no success', () => {
    const store = open('going on');
    store.write(() => store.prepare(INSERT_INFO).run('taken', 'x'));
    const error = errorOf(() =>
      store.write(() => {
        store.prepare(INSERT_INFO).run('before', 'x');
        expect(errorOf(() => store.prepare(INSERT_INFO).run('taken', 'y').changes)).toBeInstanceOf(LateError);
      }),
    );
    expect(error).toMatchObject({ code: 'internal' });
    expect(findInfo(store, 'before')).toBeUndefined();
  });

  test('a savepoint undoes what waits in it, and nothing before it', () => {
    const store = open('savepoint');
    store.write(() => {
      putInfo(store, 'outer', 'x');
      inSavepoint(
        store,
        () => {
          putInfo(store, 'inner', 'x');
          throw new RangeError('no');
        },
        () => {},
      );
    });
    expect([findInfo(store, 'outer'), findInfo(store, 'inner')]).toEqual(['x', undefined]);
  });

  test('a request of a group whose statement fails late is refused alone', () => {
    const store = open('group');
    const add = (content: string) => ({
      name: 'addMemories' as const,
      input: { items: [newMemory({ content })], options: {} },
    });
    const ids = [
      'memory 1',
      '00000000-0000-7000-8000-000000000001',
      'memory 1',
      '00000000-0000-7000-8000-000000000002',
    ];
    const context = {
      ...{ store, indexes: new Map(), config: readConfig({ OM_AUDIT: 'off' }), now: 1_000 },
      ...{ newId: () => (ids.push(ids[0]!), ids.shift()!), backlog: { atMost: 0 } },
    };
    const [one, other] = commitGroup(context, [add('First.'), add('Second.')]);
    expect([one!.ok, other!.ok]).toEqual([true, false]);
    expect(store.prepare('SELECT content FROM memories').pluck().all()).toEqual(['First.']);
  });

  test('what is prefetched shares a round trip, and is asked again once it may have changed', () => {
    const store = open('ahead');
    store.write(() => ensureUser(store, 'ana'));
    const find = (userId: string) => store.prepare(SELECT_USER).pluck().get(userId);
    store.write(() => {
      store.ahead!.ask(SELECT_USER, [['ana'], ['bob'], ['zoe']]);
      expect(tripsOf(() => expect(['ana', 'bob', 'zoe'].map(find)).toEqual([1, undefined, undefined]))).toBe(1);
      const bob = ensureUser(store, 'bob');
      expect(find('bob')).toBe(bob);
      expect(tripsOf(() => expect(['ana', 'zoe'].map(find)).toEqual([1, undefined]))).toBe(0);
      store.prepare('DELETE FROM users WHERE user_no = ?').run(bob);
      expect(['ana', 'bob'].map(find)).toEqual([1, undefined]);
    });
  });

  test('what readings ask first in speculative reads shares a round trip with the next query', () => {
    const store = open('speculative');
    store.write(() => putInfo(store, 'a', 'b'));
    const follow = (key: string) => findInfo(store, findInfo(store, key) ?? 'nothing');
    const trips = tripsOf(() =>
      store.read(() => {
        let ends = 0;
        const readEach = () =>
          store.ahead!.readSpeculatively(
            () => (follow('a'), (ends += 1)),
            () => follow('c'),
          );
        readEach();
        expect(findInfo(store, 'd')).toBeUndefined();
        readEach();
        expect([follow('a'), follow('c'), ends]).toEqual([undefined, undefined, 0]);
        readEach();
        expect(ends).toBe(1);
      }),
    );
    expect(trips).toBe(2);
    expect(() => store.read(() => store.ahead!.readSpeculatively(() => expect.fail('of its own')))).toThrow(
      'of its own',
    );
  });

  test('transactions of other tenants on one connection take no more round trips, and see their own rows', () => {
    const stores = ['one', 'other'].map((name) => open(`sharing ${name}`));
    const put = (store: Store) => store.write(() => putInfo(store, 'whose', store.path));
    stores.forEach(put);
    expect(tripsOf(() => stores.forEach(put))).toBe(4);
    const own = () => stores.map((store) => store.read(() => findInfo(store, 'whose')));
    expect(tripsOf(() => expect(own()).toEqual(stores.map(({ path }) => path)))).toBe(2);
  });

  test('queries that every read makes go with the first of them, with answers of its own snapshot', () => {
    const store = open('predicted');
    const keys = ['a', 'b', 'c'];
    const read = () => store.read(() => keys.map((key) => findInfo(store, key)));
    store.write(() => putInfo(store, 'b', 'old'));
    expect([tripsOf(read), tripsOf(read), tripsOf(read)]).toEqual([3, 3, 1]);
    store.write(() => putInfo(store, 'b', 'new'));
    expect(read()).toEqual([undefined, 'new', undefined]);
  });
});

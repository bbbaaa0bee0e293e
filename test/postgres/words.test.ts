/** The word index in PostgreSQL beside FTS5: equal frequencies, and scores that are equal to the last digit. */
import fs from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { inSavepoint } from '../../src/engine/store/savepoint.ts';
import type { Store } from '../../src/engine/store/open-store.ts';
import { openBlockingConnection } from '../../src/engine/store/postgres/blocking-connection.ts';
import { migrateSchema } from '../../src/engine/store/postgres/migrate-schema.ts';
import { ensureTenant, openPostgresStore, readCatalog } from '../../src/engine/store/postgres/open-postgres-store.ts';
import { dropTenants } from '../../src/engine/store/postgres/placed-tenant.ts';
import { openTenantStore } from '../../src/engine/store/postgres/tenant-database.ts';
import { matchingText } from '../../src/engine/store/word-index/matching-rows.ts';
import { clearText, deleteText, putText } from '../../src/engine/store/word-index/memory-text.ts';
import { joinSomeText } from '../../src/engine/store/word-index/merges.ts';
import { askForWordState, openWordSearch } from '../../src/engine/store/word-index/open-word-search.ts';
import { createWorkBudget, runWithin } from '../../src/engine/store/work-budget.ts';
import { termsOf } from '../../src/engine/store/word-index/terms.ts';
import { textRewrites } from '../../src/engine/store/word-index/rewrite-log.ts';
import { textRow, WEIGHTS } from '../conformance/word-search.ts';
import { watchPlans } from '../support/postgres-plans.ts';
import { UNDO_FROM_0021 } from '../support/earlier-schema.ts';
import { startPostgres } from '../support/postgres.ts';
import { openTemporaryStore } from '../support/temporary-store.ts';

const WORDS = [
  'ship',
  'ships',
  'harbour',
  'écluse',
  '灯台守',
  'src/userName.ts',
  'a',
  'the',
  `long${'x'.repeat(3_000)}`,
];
const TEXTS = ['ship', 'harbour', 'the ship', 'ship ship', 'écluse', '灯台', 'usernameǀ', 'nowhere', WORDS.at(-1)!];

/** Number of different words of a text whose blocks must not be compared with each other. */
const MANY = 1_000;

/** Statements that take the schema back to where the migration of appended words begins. */
const TO_EARLIER = `${UNDO_FROM_0021};
  ALTER TABLE word_blocks DROP COLUMN last;
  ALTER TABLE word_totals DROP COLUMN newest;
  ALTER TABLE tenants DROP COLUMN looked_writes, DROP COLUMN looked_at, DROP COLUMN looked_by, DROP COLUMN due_at,
    DROP COLUMN rests, DROP COLUMN placement;
  CREATE INDEX document_generations_hidden ON document_generations (tenant, generation_no) WHERE hidden > 0;
  DROP INDEX document_generations_abandoned;
  DROP TRIGGER standing_of_queued_memories ON memory_dynamics; DROP FUNCTION standing_of_queued_memories;
  ALTER TABLE webhooks DROP COLUMN room, DROP COLUMN counted_at, DROP COLUMN dropped, DROP COLUMN dropped_at;
  ALTER TABLE webhook_cursor DROP COLUMN room, DROP COLUMN counted_at;
  ALTER TABLE session_logs DROP COLUMN operations_no;
  DROP FUNCTION varint(bigint); DROP FUNCTION tenant_goes CASCADE; UPDATE schema_version SET version = 14`;
const MIGRATIONS = '../../src/engine/store/postgres/migrations';
const APPENDED_WORDS = fs.readFileSync(path.join(import.meta.dirname, MIGRATIONS, '0015-appended-words.sql'), 'utf8');

const server = await startPostgres();
describe.skipIf(server === undefined)('words in PostgreSQL', () => {
  let runs = 0;
  let open: (tenant: string) => Store;
  beforeAll(() => {
    open = (tenant) => openTenantStore({ database: server!.url, tenant, path: '/nowhere', role: 'worker' });
  });
  afterAll(() => server?.stop());

  const text = fc.array(fc.constantFrom(...WORDS), { maxLength: 6 }).map((words) => words.join(' '));
  // Blocks of the first 4,096 rows can be joined once there is a row above 6,144.
  const number = fc.oneof(
    { weight: 3, arbitrary: fc.integer({ min: 1, max: 600 }) },
    { weight: 1, arbitrary: fc.integer({ min: 3_800, max: 4_200 }) },
    { weight: 1, arbitrary: fc.integer({ min: 6_100, max: 6_400 }) },
  );
  const change = fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({ put: number, content: text, context: text, title: text }),
    },
    { weight: 2, arbitrary: fc.record({ remove: number }) },
    { weight: 1, arbitrary: fc.record({ undone: number, content: text }) },
  );
  type Change =
    | { put: number; content: string; context: string; title: string }
    | { remove: number }
    | { undone: number; content: string };

  function apply(store: Store, changes: readonly Change[]): void {
    store.write(() => {
      for (const one of changes) {
        if ('put' in one) {
          putText(store, textRow(one.put, one));
          textRewrites.note(store, [one.put]);
        } else if ('remove' in one) deleteText(store, one.remove);
        else {
          inSavepoint(
            store,
            () => {
              putText(store, textRow(one.undone, { content: one.content }));
              throw new Error('undone');
            },
            () => {},
          );
        }
      }
    });
  }

  /** @param knowsState whether the state of the index is asked for before, as a query does, so that words are kept */
  function answers(store: Store, knowsState = false): unknown[] {
    return store.read(() => {
      if (knowsState) {
        askForWordState(store);
        textRewrites.last(store);
      }
      const words = openWordSearch(store);
      words.expect(TEXTS, 'rank');
      const among = Array.from({ length: 300 }, (_, n) => 2 * n + 1);
      return [
        words.rows,
        TEXTS.map((one) => words.frequencyOf(one)),
        // A cost and no answer: FTS5 still holds words of rows that were removed.
        TEXTS.every((one) => words.bytesOf(one) > 0 || words.frequencyOf(one) === 0),
        words.best(TEXTS, WEIGHTS, 50),
        words.bestOf(TEXTS, WEIGHTS, among, 50),
        TEXTS.map((one) => matchingText(store, one, among).sort((a, b) => a - b)),
        TEXTS.map((one) => matchingText(store, one, among, ['content', 'title']).sort((a, b) => a - b)),
      ];
    });
  }

  test('are found and scored as in a file, whatever was put, replaced, deleted and undone', () => {
    fc.assert(
      fc.property(fc.array(fc.array(change, { maxLength: 30 }), { maxLength: 4 }), (commits) => {
        using file = openTemporaryStore();
        const database = open(`words ${(runs += 1)}`);
        for (const changes of commits) {
          apply(file, changes);
          apply(database, changes);
          expect(answers(database, true)).toEqual(answers(file));
          expect(answers(database)).toEqual(answers(file));
          if (joinSomeText(database)) expect(answers(database, true)).toEqual(answers(file));
        }
        for (const store of [file, database]) store.write(() => clearText(store));
        expect(answers(database)).toEqual(answers(file));
        database.close();
      }),
      { numRuns: 25 },
    );
  });

  test('a word of a row is kept 256 times a column, and a row with more goes with all of it', () => {
    const [file, database] = [openTemporaryStore(), open('repeated words')];
    onTestFinished(() => [file, database].forEach((store) => store.close()));
    const long = `harbour ${'ship '.repeat(3_000)}ends`;
    const both = (change: (store: Store) => void) =>
      [file, database].forEach((store) => store.write(() => change(store)));
    const bytes = (store: Store) => store.read(() => openWordSearch(store).bytesOf('ship'));
    both((store) => putText(store, textRow(1, { content: long, context: long, title: 'the ship' })));
    expect(answers(database)).toEqual(answers(file));
    expect(bytes(database)).toBeLessThan(600);
    expect(bytes(file)).toBeLessThan(600);
    // As earlier versions wrote them.
    database.write(() => {
      for (const memoryNo of [2, 3]) database.words!.put(memoryNo, [[], [], termsOf(long), [], [], [], []]);
    });
    file.write(() => {
      for (const memoryNo of [2, 3])
        file.prepare('INSERT INTO memory_text (rowid, content) VALUES (?, ?)').run(memoryNo, long);
    });
    expect(answers(database)).toEqual(answers(file));
    expect(bytes(database)).toBeGreaterThan(6_000);
    both((store) => {
      deleteText(store, 2);
      putText(store, textRow(3, { content: long }));
      textRewrites.note(store, [3]);
    });
    expect(answers(database)).toEqual(answers(file));
    expect(bytes(database)).toBeLessThan(900);
    both((store) => [1, 3].forEach((memoryNo) => deleteText(store, memoryNo)));
    expect(answers(database)).toEqual(answers(file));
    const left = (sql: string) => database.read(() => database.prepare(sql).pluck().get());
    expect(left('SELECT count(*) FROM word_blocks')).toBe(0);
    expect(left('SELECT terms + rows FROM word_totals')).toBe(0);
  });

  test('a word with more bytes than half of the work budget is left out and the others are found', () => {
    const [file, database] = [openTemporaryStore(), open('heavy words')];
    onTestFinished(() => [file, database].forEach((store) => store.close()));
    for (const store of [file, database]) {
      store.write(() => {
        for (let memoryNo = 1; memoryNo <= 600; memoryNo += 1)
          putText(store, textRow(memoryNo, { content: `${'ship '.repeat(250)} ${memoryNo === 7 ? 'harbour' : ''}` }));
      });
      const ask = (bytes: number) => {
        const budget = createWorkBudget({ bytes, deadlineMs: 1e6 });
        return runWithin(budget, () =>
          store.read(() => {
            const words = openWordSearch(store);
            const heavy = words.best(['ship'], WEIGHTS, 9).length;
            const rest = words.best(['ship', 'harbour'], WEIGHTS, 1_000).length;
            const phrase = words.best(['ship ship'], WEIGHTS, 1_000).length;
            const { isIncomplete, end, left } = budget;
            return { heavy, rest, phrase, isIncomplete, end, spent: bytes - left > 250 * 600 };
          }),
        );
      };
      const all = { heavy: 9, rest: 600, phrase: 600, isIncomplete: false, end: null, spent: true };
      expect(ask(200_000)).toEqual({ heavy: 0, rest: 1, phrase: 0, isIncomplete: true, end: null, spent: false });
      expect(ask(1e8)).toEqual(all);
    }
  });

  test('of the blocks around a few rows no more is read than the work budget has', () => {
    const database = open('heavy blocks');
    onTestFinished(() => database.close());
    const heavy = ['ship ', 'a '].map((word) => word.repeat(20_000)).join('');
    database.write(() => {
      for (let memoryNo = 1; memoryNo <= 200; memoryNo += 1)
        database.words!.put(memoryNo, [[], [], termsOf(heavy), [], [], [], []]);
    });
    const find = (bytes: number) => {
      const budget = createWorkBudget({ bytes, deadlineMs: 1e6 });
      const found = runWithin(budget, () => database.read(() => matchingText(database, 'ship', [3, 7])));
      return [found, budget.isIncomplete];
    };
    expect(find(2e7)).toEqual([[3, 7], false]);
    database.write(() => deleteText(database, 9));
    expect(find(5e6)).toEqual([[], true]);
  });

  test('take the same statements for a hundred rows as for one', () => {
    const connection = openBlockingConnection(server!.url);
    migrateSchema(connection);
    const catalog = readCatalog(connection);
    const store = openPostgresStore({ connection, catalog, tenant: ensureTenant(connection, 'statements') });
    const tripsOf = (from: number, rows: number) => {
      const before = connection.roundTrips;
      store.write(() => {
        for (let n = 0; n < rows; n += 1) putText(store, textRow(from + n, { content: `ship ${n}` }));
      });
      return connection.roundTrips - before;
    };
    tripsOf(1, 1);
    expect([tripsOf(10, 1), tripsOf(100, 100)]).toEqual([2, 2]);
    connection.close();
  });

  test('of texts with many different words are appended term by term, while the server knows no statistics', async () => {
    const url = await server!.createSchema();
    const plans = await watchPlans(server!, url);
    using file = openTemporaryStore();
    const database = openTenantStore({ database: url, tenant: 'many words', path: '/nowhere', role: 'worker' });
    const content = (n: number) =>
      Array.from({ length: MANY }, (_, word) => `w${(word * (1 + (n % 3))) % MANY}`).join(' ');
    const commit = (numbers: readonly number[]) => {
      for (const store of [file, database]) {
        store.write(() => {
          for (const n of numbers) putText(store, textRow(n, { content: content(n), title: 'ship' }));
          textRewrites.note(store, numbers);
        });
      }
    };
    const blocks = () => server!.read(url, 'SELECT * FROM word_blocks ORDER BY term, block');
    plans();
    commit([1, 2]);
    commit([100, 254, 255, 256, 257]);
    commit([300]);
    const appends = plans().filter(({ text }) => text.includes('INSERT INTO word_blocks'));
    expect(appends.map(({ pairsDropped }) => pairsDropped)).toEqual([0, 0, 0]);
    const appended = await blocks();
    expect(appended.length).toBeGreaterThan(2 * MANY);
    // Each block is looked up once and changed once; the totals are one row more.
    expect(appends.filter(({ rowsRead }) => rowsRead > 2 * appended.length + 1)).toEqual([]);
    expect(answers(database)).toEqual(answers(file));
    // Rows that are written again are read, and their blocks are encoded here.
    commit([1, 2, 100, 254, 255, 256, 257, 300]);
    expect(await blocks()).toEqual(appended);
    database.close();
  });

  test('that an earlier version has stored are appended to from where they end', async () => {
    const url = await server!.createSchema();
    const connection = openBlockingConnection(url);
    migrateSchema(connection);
    const store = openPostgresStore({
      ...{ connection, catalog: readCatalog(connection), tenant: ensureTenant(connection, 'earlier') },
    });
    const put = (numbers: readonly number[]) =>
      store.write(() => {
        for (const n of numbers) putText(store, textRow(n, { content: n % 2 === 0 ? 'ship harbour' : 'ship' }));
      });
    put([1, 250, 258, 300, 441]);
    const ends = () =>
      server!.read(
        url,
        `SELECT b.term, b.block, b.last, t.newest FROM word_blocks b JOIN word_totals t ON t.tenant = b.tenant
         WHERE b.block = 1 ORDER BY b.term`,
      );
    const before = await ends();
    expect(before).toMatchObject([
      { term: 'harbour', last: '300', newest: '441' },
      { term: 'ship', last: '441', newest: '441' },
    ]);
    connection.query(TO_EARLIER);
    migrateSchema(connection);
    expect(await ends()).toEqual(before);
    // A process of that version which still runs can store no blocks that do not say where they end.
    const old = `INSERT INTO word_blocks (tenant, term, block, rows, data) SELECT tenant, 'pier', 1, 1, '' FROM tenants`;
    await expect(server!.read(url, old)).rejects.toThrow(/"last".* not-null/);
    put([442, 600]);
    expect(store.read(() => openWordSearch(store).bestOf(['ship'], WEIGHTS, [300, 441, 442, 600], 9))).toHaveLength(4);
    connection.close();
  });

  test('that an earlier version has stored are changed while a write goes on, which waits for nothing', async () => {
    const url = await server!.createSchema();
    const connection = openBlockingConnection(url);
    migrateSchema(connection);
    ensureTenant(connection, 'earlier');
    connection.query(TO_EARLIER);
    const [writer, changer] = [new pg.Client(url), new pg.Client(url)];
    onTestFinished(async () => {
      connection.close();
      await Promise.all([writer.end(), changer.end()]);
    });
    for (const client of [writer, changer]) await client.connect();
    await writer.query('BEGIN; UPDATE tenants SET writes = writes + 1');
    const changing = changer.query(APPENDED_WORDS);
    const waiting = `SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'tenants'::regclass`;
    await expect.poll(() => server!.read(url, waiting)).toHaveLength(1);
    const writing = writer.query('UPDATE word_blocks SET rows = rows; COMMIT');
    await Promise.all([changing, writing]);
  });

  test('are stored right by a write that clears them before, and by one of which a part is undone', () => {
    using file = openTemporaryStore();
    const database = open('cleared');
    const put = (store: Store, numbers: readonly number[], content = 'ship') => {
      for (const n of numbers) putText(store, textRow(n, { content }));
    };
    const undo = (store: Store, work: () => void) => {
      const throwing = () => {
        work();
        store.words?.flush();
        throw new Error('undone');
      };
      inSavepoint(store, throwing, () => {});
    };
    const commits: ((store: Store) => void)[] = [
      (store) => put(store, [1, 2, 3, 300]),
      (store) => {
        clearText(store);
        put(store, [2, 3]);
      },
      (store) => put(store, [3, 4], 'harbour'),
      (store) => {
        undo(store, () => clearText(store));
        put(store, [2], 'the ship');
      },
      (store) => {
        undo(store, () => put(store, [6, 7]));
        put(store, [5, 6]);
      },
      (store) => put(store, [6, 7], 'harbour'),
    ];
    for (const [n, commit] of commits.entries()) {
      for (const store of [file, database]) {
        store.write(() => {
          commit(store);
          textRewrites.note(store, [1, 2, 3, 4, 5, 6, 7]);
        });
      }
      expect(answers(database), `after commit ${n}`).toEqual(answers(file));
    }
    database.close();
  });

  test('and all other rows of a tenant go with it, and none of another application', async () => {
    const url = await server!.createSchema();
    const connection = openBlockingConnection(url);
    migrateSchema(connection);
    const catalog = readCatalog(connection);
    const numbers = ['leaves', 'stays'].map((name) => {
      const tenant = ensureTenant(connection, name);
      const store = openPostgresStore({ connection, catalog, tenant });
      store.write(() => putText(store, textRow(1, { content: 'ship' })));
      return tenant;
    });
    const tables = [...catalog].filter(([name, { ofTenants }]) => ofTenants && name !== 'sqlite_sequence');
    const count = async (tenant: number) => {
      const counts = tables.map(([name]) => `SELECT count(*)::int AS rows FROM ${name} WHERE tenant = ${tenant}`);
      const [{ rows }] = (await server!.read(
        url,
        `SELECT sum(rows)::int AS rows FROM (${counts.join(' UNION ALL ')}) AS counted`,
      )) as [{ rows: number }];
      return rows;
    };
    const [leaves, stays] = [await count(numbers[0]!), await count(numbers[1]!)];
    expect(leaves).toBeGreaterThan(8);
    connection.query(`CREATE TABLE flats (tenant integer); INSERT INTO flats VALUES (${numbers[0]})`);
    dropTenants(connection, 'id = $1', ['leaves']);
    expect(await server!.read(url, 'SELECT * FROM flats')).toEqual([{ tenant: numbers[0] }]);
    expect([await count(numbers[0]!), await count(numbers[1]!)]).toEqual([0, stays]);
    connection.close();
  });
});

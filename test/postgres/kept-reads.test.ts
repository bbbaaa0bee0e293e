/** What is kept from one read of a tenant in PostgreSQL to the next, and the form in which rows come. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  openBlockingConnection,
  type BlockingConnection,
} from '../../src/engine/store/postgres/blocking-connection.ts';
import { tripTotals } from '../../src/engine/store/postgres/connection-channel.ts';
import { migrateSchema } from '../../src/engine/store/postgres/migrate-schema.ts';
import { ensureTenant, openPostgresStore, readCatalog } from '../../src/engine/store/postgres/open-postgres-store.ts';
import type { Store } from '../../src/engine/store/open-store.ts';
import { findInfo, putInfo } from '../../src/engine/store/store-info.ts';
import { putText } from '../../src/engine/store/word-index/memory-text.ts';
import { askForWordState, openWordSearch } from '../../src/engine/store/word-index/open-word-search.ts';
import { textRewrites } from '../../src/engine/store/word-index/rewrite-log.ts';
import { textRow, WEIGHTS } from '../conformance/word-search.ts';
import { startPostgres } from '../support/postgres.ts';

const server = await startPostgres();
describe.skipIf(server === undefined)('reads of a tenant in PostgreSQL', () => {
  const connections: BlockingConnection[] = [];
  const connect = () => {
    const connection = openBlockingConnection(server!.url);
    connections.push(connection);
    return connection;
  };
  const open = (name: string, connection = connect()): Store =>
    openPostgresStore({ connection, catalog: readCatalog(connection), tenant: ensureTenant(connection, name) });
  const statementsOf = (work: () => unknown) => {
    const before = tripTotals().statements;
    work();
    return tripTotals().statements - before;
  };

  beforeAll(() => migrateSchema(connect()));
  afterAll(() => {
    for (const connection of connections) connection.close();
    server?.stop();
  });

  test('ask again what they all ask only after a write, and see what others wrote', () => {
    const [reader, writer] = [open('predicted'), open('predicted')];
    const keys = ['a', 'b', 'c', 'd'];
    const read = () => reader.read(() => keys.map((key) => findInfo(reader, key)));
    const write = (value: string) => writer.write(() => keys.forEach((key) => putInfo(writer, key, value)));
    write('first');
    // Two reads show what each one asks.
    for (let n = 0; n < 3; n += 1) expect(read()).toEqual(Array(4).fill('first'));
    // The beginning and the counter of writes.
    expect(statementsOf(read)).toBe(2);
    for (const value of ['second', 'third']) {
      write(value);
      expect(read()).toEqual(Array(4).fill(value));
      expect(statementsOf(read)).toBe(2);
    }
    reader.write(() => putInfo(reader, 'b', 'own'));
    expect(read()).toEqual(['third', 'own', 'third', 'third']);
  });

  test('of one question share a snapshot within a turn, and lack no write of their thread', async () => {
    const connection = connect();
    const [reader, neighbour, writer] = [open('shared', connection), open('neighbour', connection), open('shared')];
    const value = () => findInfo(reader, 'k');
    const write = (text: string) => writer.write(() => putInfo(writer, 'k', text));
    const isInTransaction = () => connection.query('SELECT now() <> statement_timestamp()').rows[0]![0] === 1;
    const tripsOf = (read: () => unknown) => {
      const before = connection.roundTrips;
      read();
      return connection.roundTrips - before;
    };
    write('first');
    const [question, another] = [reader.ahead!.readInOneTurn(), reader.ahead!.readInOneTurn()];
    expect(question(value)).toBe('first');
    expect(reader.position).toBe(writer.position);
    expect(tripsOf(() => question(value))).toBe(0);
    await Promise.resolve();
    expect(tripsOf(() => question(value))).toBe(0);
    expect(tripsOf(() => another(value))).toBe(1);
    expect(tripsOf(() => question(value))).toBe(1);
    expect(tripsOf(() => reader.read(value))).toBe(1);
    // On the opening of the tenant any question follows at once, and none after anything else has run.
    reader.ahead!.readAtOpening(value);
    expect(tripsOf(() => another(value))).toBe(0);
    reader.ahead!.readAtOpening(value);
    await Promise.resolve();
    expect(tripsOf(() => another(value))).toBe(1);

    expect(question(value)).toBe('first');
    write('second');
    expect(question(value)).toBe('second');
    write('third');
    expect(another(value)).toBe('third');

    expect(isInTransaction()).toBe(true);
    await new Promise((done) => setImmediate(done));
    expect(isInTransaction()).toBe(false);
    expect(question(value)).toBe('third');
    expect(neighbour.read(() => findInfo(neighbour, 'k'))).toBe(undefined);
    expect(isInTransaction()).toBe(false);
    expect(question(value)).toBe('third');
    reader.close();
    expect(() => question(value)).toThrow('the store is closed');
  });

  test.for(['a statement that fails', 'a session that is lost'])(
    'of other questions are right after %s',
    async (what) => {
      const [connection, killer] = [connect(), connect()];
      const reader = open('broken', connection);
      reader.write(() => putInfo(reader, 'k', 'kept'));
      const value = () => findInfo(reader, 'k');
      const questions = Array.from({ length: 3 }, () => reader.ahead!.readInOneTurn());
      const [backend] = connection.query('SELECT pg_backend_pid()').rows[0]!;
      let errors = 0;
      const fail = () => {
        try {
          if (what === 'a statement that fails') connection.query('SELECT 1 / 0', []);
          killer.query('SELECT pg_terminate_backend($1::int)', [backend as number]);
          value();
        } catch {
          // As where a question begins in a read and its promise is rejected.
          errors += 1;
        }
      };
      await Promise.resolve();
      questions[0]!(fail);
      expect(errors).toBe(1);
      expect(questions.map((question) => question(value))).toEqual(['kept', 'kept', 'kept']);
    },
  );

  test('keep words until words change, whatever else is written', () => {
    const [reader, writer] = [open('kept words'), open('kept words')];
    const put = (memoryNo: number, content: string) =>
      writer.write(() => {
        putText(writer, textRow(memoryNo, { content }));
        textRewrites.note(writer, [memoryNo]);
      });
    const search = () =>
      reader.read(() => {
        askForWordState(reader);
        textRewrites.last(reader);
        const words = openWordSearch(reader);
        words.expect(['ship', 'harbour'], 'rank');
        return words.best(['ship', 'harbour'], WEIGHTS, 9).map(({ memoryNo }) => memoryNo);
      });
    put(1, 'a ship');
    put(2, 'a harbour');
    put(3, 'nothing');
    expect(search().sort()).toEqual([1, 2]);
    expect(search().sort()).toEqual([1, 2]);
    const others = statementsOf(search);
    writer.write(() => putInfo(writer, 'k', 'x'));
    // No statement for the words; what was predicted is read again.
    expect(statementsOf(search) - others).toBeLessThanOrEqual(3);
    // As many words as before, so that the totals of the index stay as they are.
    put(3, 'harbour');
    expect(search().sort()).toEqual([1, 2, 3]);
    put(2, 'a town');
    expect(search().sort()).toEqual([1, 3]);
  });

  test('get equal values at the first run of a statement, as text, and at later ones', () => {
    const connection = connect();
    const text = `SELECT 9007199254740991::int8, -1::int8, (-32768)::int2, 2147483647::int4, 0.1::float8, 1e300::float8,
      '-Infinity'::float8, 1.5::float4, 12.25::numeric, true, '\\x00ff10'::bytea, 'ä𝄞'::text, NULL::int8, ''::bytea,
      '{"a": 1}'::json FROM generate_series(1, $1::int8)`;
    const rows = [1, 2, 2].map((count) => connection.query(text, [count], 'values').rows);
    const row = [
      ...[9007199254740991, -1, -32768, 2147483647, 0.1, 1e300, -Infinity, 1.5, 12.25, 1],
      ...[Buffer.from([0, 255, 16]), 'ä𝄞', null, Buffer.alloc(0), '{"a": 1}'],
    ];
    expect(rows).toEqual([[row], [row, row], [row, row]]);
    const ends = Array.from(
      { length: 3 },
      (_, n) => () => connection.query('SELECT 2 ^ 53::int8 + $1::int8', [n]).rows,
    );
    expect(ends[0]!()).toEqual([[2 ** 53]]);
    for (let n = 0; n < 2; n += 1)
      expect(() => connection.query('SELECT 9007199254740992 + $1::int8', [n], 'beyond')).toThrow(RangeError);
    expect(connection.query('SELECT $1::int8', [7], 'after').rows).toEqual([[7]]);
  });

  test('get rows of many megabytes, and the reply after them', () => {
    const connection = connect();
    const text = `SELECT n, decode(repeat('ab', 10000), 'hex') FROM generate_series(1, $1::int8) AS n`;
    for (const count of [1, 700, 3]) {
      const { rows } = connection.query(text, [count], 'long');
      expect(rows.map(([n]) => n)).toEqual(Array.from({ length: count }, (_, n) => n + 1));
      expect(rows.every(([, bytes]) => Buffer.alloc(10_000, 0xab).equals(bytes as Buffer))).toBe(true);
    }
  });

  test('two runs of a new statement in one batch are both right, and so is one behind an error', () => {
    const connection = connect();
    const query = (n: number) => ({
      name: 'twice',
      text: 'SELECT $1::int8 AS n, $2::bytea AS b',
      values: [n, Buffer.of(n)],
    });
    const queued = [1, 2].map((n) => connection.queue(query(n)));
    expect(queued.map((one) => one.result().rows)).toEqual([[[1, Buffer.of(1)]], [[2, Buffer.of(2)]]]);
    connection.queue({ ...query(3), name: 'before an error' });
    expect(() => connection.query('SELECT 1 / $1::int8', [0], 'error')).toThrow();
    const { text, values } = query(4);
    expect(connection.query(text, values, 'before an error').rows).toEqual([[4, Buffer.of(4)]]);
  });

  test('end as their work does where their first statement fails', () => {
    const [connection, killer] = [connect(), connect()];
    const reader = open('lost session', connection);
    const failures: unknown[] = [];
    const read = () =>
      reader.read(() => {
        try {
          return findInfo(reader, 'a');
        } catch (error) {
          failures.push(error);
          return 'caught';
        }
      });
    for (let n = 0; n < 3; n += 1) expect(read()).toBeUndefined();
    const [[pid]] = connection.query('SELECT pg_backend_pid()', []).rows as [[number]];
    killer.query('SELECT pg_terminate_backend($1::int4, 10000)', [pid]);
    expect(read()).toBe('caught');
    expect(failures).toMatchObject([{ code: 'unavailable' }]);
    expect(read()).toBeUndefined();
  });
});

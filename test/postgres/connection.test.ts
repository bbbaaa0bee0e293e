/**
 * A connection on which the calling thread blocks, with the socket in its hands and, as with TLS, in those of a second
 * thread.
 */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { LateError } from '../../src/engine/store/late-error.ts';
import {
  openBlockingConnection,
  postgresError,
  type BlockingConnection,
} from '../../src/engine/store/postgres/blocking-connection.ts';
import { openDirectSocket } from '../../src/engine/store/postgres/direct-socket.ts';
import { startSecondThread } from '../../src/engine/store/postgres/second-thread.ts';
import { hasError, readReply, textMessage } from '../../src/engine/store/postgres/server-messages.ts';
import { startPostgres } from '../support/postgres.ts';
import { tempFolder } from '../support/temp-folder.ts';

const SECONDS = 1_000;
const MEGABYTE = 'x'.repeat(1_000_000);

const server = await startPostgres();
afterAll(() => server?.stop());

describe.skipIf(server === undefined).each(['its own socket', 'TLS'])('a connection that blocks: %s', (kind) => {
  let url: string;
  let connection: BlockingConnection;
  const lossOf = (work: () => unknown): string | undefined => {
    try {
      work();
    } catch (error) {
      const found = postgresError(error);
      expect(found).toMatchObject({ isLost: true });
      return found!.code;
    }
    return undefined;
  };
  const ownProcess = () => connection.query('SELECT pg_backend_pid()', []).rows[0]![0] as number;
  const endSession = (process: number) => server!.read(server!.url, `SELECT pg_terminate_backend(${process}, 10000)`);

  beforeAll(async () => {
    url = kind === 'TLS' ? await server!.encrypt() : await server!.createSchema();
  });
  beforeEach(() => {
    connection = openBlockingConnection(url);
  });
  afterEach(() => connection.close());

  test('is encrypted, or has its socket handed over', () => {
    const thread = startSecondThread(url, 7);
    onTestFinished(() => thread.terminate());
    const reply = thread.ask({ kind: 'connect', timeoutMs: 60 * SECONDS }, 60 * SECONDS);
    expect(reply).toEqual({ no: 1, session: 8, fd: kind === 'TLS' ? null : expect.any(Number) });
    const isEncrypted = connection.query('SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()', []).rows;
    expect(isEncrypted).toEqual([[kind === 'TLS' ? 1 : 0]]);
  });

  test('gives and takes values of all kinds, in the first run of a statement and later', () => {
    const values = [7, -1.5, 'naïve 漢字 😀', null, Buffer.from([0, 255, 7])];
    const select = 'SELECT $1::int8 AS a, $2::float8 AS b, $3::text AS c, $4::text AS d, $5::bytea AS e, true AS f';
    for (let run = 0; run < 3; run += 1) {
      const { columns, rows, command } = connection.query(select, values, 'values');
      expect([columns, rows, command]).toEqual([['a', 'b', 'c', 'd', 'e', 'f'], [[...values, 1]], 'SELECT']);
    }
    expect(connection.query('SELECT $1::text[] AS list', [['a"\\b', null, 'c']]).rows).toEqual([
      ['{"a\\"\\\\b",NULL,c}'],
    ]);
  });

  test('runs a text of several statements, whose last result it returns', () => {
    connection.query('CREATE TEMP TABLE kept (n int)');
    const { rows, columns } = connection.query('INSERT INTO kept SELECT generate_series(1, 3); SELECT n FROM kept');
    expect([columns, rows]).toEqual([['n'], [[1], [2], [3]]]);
    expect(connection.query('UPDATE kept SET n = n + 1', []).changes).toBe(3);
    connection.query(`DO $$ BEGIN RAISE NOTICE 'nobody listens'; END $$`);
    expect(connection.query('SELECT 1', []).rows).toEqual([[1]]);
  });

  test('tells which of several statements failed, and goes on', () => {
    connection.query('CREATE TEMP TABLE kept (n int UNIQUE)');
    connection.query('BEGIN', []);
    for (const n of [1, 2, 1]) connection.queue({ text: 'INSERT INTO kept VALUES ($1)', values: [n], name: 'insert' });
    let failure: unknown;
    try {
      connection.query('SELECT count(*) FROM kept', []);
    } catch (error) {
      failure = error;
    }
    expect(failure).toBeInstanceOf(LateError);
    expect(postgresError(failure)).toMatchObject({ code: '23505', constraint: 'kept_n_key', isLost: false, place: 2 });
    connection.query('ROLLBACK', []);
    expect(connection.query('SELECT count(*) FROM kept', []).rows).toEqual([[0]]);
    expect(() => connection.query('SELECT no_column', [])).toThrow('column "no_column" does not exist');
  });

  test('sends and takes far more than the socket holds, both at once', () => {
    const select = 'SELECT $1::text AS same, repeat($1, 2) AS twice';
    connection.query('BEGIN', []);
    const queued = Array.from({ length: 8 }, () => connection.queue({ text: select, values: [MEGABYTE] }));
    for (const one of queued) {
      const [same, twice] = one.result().rows[0] as [string, string];
      expect([same === MEGABYTE, twice === MEGABYTE + MEGABYTE]).toEqual([true, true]);
    }
    connection.query('COMMIT', []);
  });

  test('closes the prepared statements that it does not use', () => {
    for (let n = 0; n < 1_020; n += 1) connection.query(`SELECT ${n}`, [], `of_${n}`);
    const kept = connection.query('SELECT count(*)::int FROM pg_prepared_statements', []).rows[0]![0];
    expect(kept).toBeLessThanOrEqual(1_001);
    expect(connection.query('SELECT 0', [], 'of_0').rows).toEqual([[0]]);
  });

  test('sends a text for whose reply nobody waits, and ends the session if it fails', () => {
    connection.query('BEGIN', []);
    connection.query('CREATE TEMP TABLE undone (n int)', []);
    connection.post('ROLLBACK');
    expect(connection.query(`SELECT to_regclass('undone') IS NULL`, []).rows).toEqual([[1]]);
    connection.post('SELECT no_column');
    expect(lossOf(() => connection.query('SELECT 1', []))).toBeDefined();
    expect([connection.query('SELECT 2', []).rows, connection.session]).toEqual([[[2]], 2]);
  });

  test('is lost when the server ends it, and connects again with the next statement', async () => {
    await endSession(ownProcess());
    expect(lossOf(() => connection.query('SELECT 1', []))).toBeDefined();
    expect(connection.session).toBeNull();
    expect([connection.query('SELECT 2', []).rows, connection.session]).toEqual([[[2]], 2]);
    expect(lossOf(() => connection.query('SELECT pg_terminate_backend(pg_backend_pid())', []))).toBe('57P01');
    expect([connection.query('SELECT 3', []).rows, connection.session]).toEqual([[[3]], 3]);
  });

  test('is lost when the server ends it for a reason of its own, whose code is kept', async () => {
    connection.query(`SET idle_in_transaction_session_timeout = '50ms'; BEGIN`);
    const ended = `SELECT count(*)::int FROM pg_stat_activity WHERE usename = current_user AND pid <> pg_backend_pid()`;
    const other = openBlockingConnection(url);
    onTestFinished(() => other.close());
    await expect.poll(() => other.query(ended, []).rows).toEqual([[0]]);
    expect(lossOf(() => connection.query('COMMIT', []))).toBe('25P03');
  });

  test('is lost when its second thread has ended', async () => {
    const thread = startSecondThread(url, 0);
    const asked = thread.ask({ kind: 'connect', timeoutMs: 60 * SECONDS }, 60 * SECONDS) as { readonly fd: number };
    const socket = openDirectSocket(asked.fd ?? -1, {
      isOpen: () => !thread.isEnded,
      hasFailed: hasError,
      readElsewhere: () => undefined,
    });
    thread.ask({ kind: 'end' }, 60 * SECONDS);
    await expect.poll(() => thread.isEnded).toBe(true);
    expect(thread.ask({ kind: 'read' }, 60 * SECONDS)).toBeUndefined();
    expect(socket.exchange(textMessage('SELECT 1'), 60 * SECONDS)).toEqual({
      bytes: new Uint8Array(0),
      lost: 'closed',
    });
  });

  test.skipIf(kind === 'TLS')('takes a reply that is there, however late it looks', async () => {
    const thread = startSecondThread(url, 0);
    onTestFinished(() => thread.terminate());
    const { fd } = thread.ask({ kind: 'connect', timeoutMs: 60 * SECONDS }, 60 * SECONDS) as { readonly fd: number };
    fs.writeSync(fd, textMessage('SELECT 4711'));
    const replied = `SELECT count(*)::int FROM pg_stat_activity WHERE query = 'SELECT 4711' AND state = 'idle'`;
    await expect.poll(() => connection.query(replied, []).rows).toEqual([[1]]);
    const socket = openDirectSocket(fd, { isOpen: () => true, hasFailed: hasError, readElsewhere: () => undefined });
    const { bytes, lost } = socket.exchange(new Uint8Array(0), 0)!;
    expect([readReply(Buffer.from(bytes)).results[0]!.rows, lost]).toEqual([[[4711]], null]);
    expect(socket.exchange(textMessage('SELECT pg_sleep(60)'), 50)).toBeUndefined();
  });

  test.skipIf(kind === 'TLS')('reads nothing of a descriptor that the other thread has closed', () => {
    const fifo = path.join(tempFolder(), 'silent');
    execFileSync('mkfifo', [fifo]);
    const fd = fs.openSync(fifo, fs.constants.O_RDWR | fs.constants.O_NONBLOCK);
    const reads = vi.spyOn(fs, 'readSync');
    onTestFinished(() => reads.mockRestore());
    const readElsewhere = () => {
      fs.closeSync(fd);
      reads.mockClear();
      return { bytes: new Uint8Array(0), lost: 'ECONNRESET' };
    };
    const socket = openDirectSocket(fd, { isOpen: () => true, hasFailed: hasError, readElsewhere });
    const lost = { bytes: new Uint8Array(0), lost: 'ECONNRESET' };
    for (let n = 0; n < 2; n += 1) expect(socket.exchange(new Uint8Array(0), 60 * SECONDS)).toEqual(lost);
    expect(reads).not.toHaveBeenCalled();
  });

  test('is given up after a statement that takes too long, and made anew', () => {
    connection.query('SELECT 1', []);
    connection.setTimeouts({ connectMs: 60 * SECONDS, statementMs: 300 });
    expect(lossOf(() => connection.query('SELECT pg_sleep(60)', []))).toBe('ETIMEDOUT');
    connection.setTimeouts({ connectMs: 60 * SECONDS, statementMs: 60 * SECONDS });
    expect([connection.query('SELECT 2', []).rows, connection.session]).toEqual([[[2]], 2]);
  });
});

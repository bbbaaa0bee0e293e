import { execFileSync, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { freePort } from './free-port.ts';

/** A PostgreSQL server for one test, with an empty schema that belongs to a role without privileges. */
export interface PostgresServer {
  readonly url: string;
  /** Path of the file to which the server writes its log. */
  readonly log: string;
  /**
   * Creates another empty schema, which belongs to a role of its own.
   * @returns its address
   */
  createSchema(): Promise<string>;
  /** Lets the server take encrypted connections (TLS) as well; returns the address of a new schema for them. */
  encrypt(): Promise<string>;
  /** Reads rows from the schema of an address as the server's superuser, to whom row-level security does not apply. */
  read(url: string, sql: string): Promise<unknown[]>;
  /** Copies the server to a standby, which follows it from then on. Can be called once. */
  startStandby(options?: StandbyOptions): Promise<Standby>;
  /** Ends all processes of the server at once, as a crash does, and starts it again. */
  restart(): void;
  /** Stops all processes of the server (SIGSTOP), so that they do not answer, until `resume`. */
  pause(): void;
  resume(): void;
  stop(): void;
}

interface StandbyOptions {
  /** Whether every commit of the server waits until the standby has it; true by default. */
  readonly isAwaited?: boolean;
  /** Settings of the standby alone, by name. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** A server that follows another one. `PostgresServer.stop` ends it. */
export interface Standby {
  /** Path of the file to which the standby writes its log. */
  readonly log: string;
  /** Reads rows on the standby as its superuser, with the schema of an address. */
  read(url: string, sql: string): Promise<unknown[]>;
  /** Lets the standby receive the log and not replay it, until `resumeReplay`. */
  pauseReplay(): Promise<void>;
  resumeReplay(): Promise<void>;
  /** Waits until the standby has replayed everything that the other server has committed so far. */
  caughtUp(): Promise<void>;
  /** Ends the standby at once; if it is awaited, the other server then waits for it with each commit. */
  stop(): void;
  /** Starts it again, and waits until it follows. */
  start(): Promise<void>;
  /**
   * Keeps its data as they are now. The function that is returned puts another standby at its address, which has these
   * data and receives nothing.
   */
  keepData(): Promise<() => void>;
  /** Makes it a server that takes writes and follows nobody. */
  promote(): void;
  /** Address of the same schema on this server. */
  addressOf(url: string): string;
}

/**
 * Starts a PostgreSQL server in a temporary folder, with the programs on the PATH or of Debian's package. If there are
 * none, it prints a note, or fails if `REQUIRE_POSTGRES=1`. An existing server is not used, since tests kill the
 * server.
 * @returns undefined if there are no programs
 */
export async function startPostgres(): Promise<PostgresServer | undefined> {
  const programs = findPrograms();
  return programs === undefined ? undefined : startServer(programs);
}

/**
 * Returns the folder of the server's programs. If there is none, it prints a note, or fails if `REQUIRE_POSTGRES=1`.
 * @returns undefined if there is none
 */
export function findPrograms(): string | undefined {
  const debian = '/usr/lib/postgresql';
  const versions = fs.existsSync(debian) ? fs.readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : [];
  const folders = [
    ...(process.env.PATH ?? '').split(path.delimiter),
    ...versions.map((version) => path.join(debian, version, 'bin')),
  ];
  const found = folders.find((folder) =>
    ['initdb', 'pg_basebackup'].every((program) => fs.existsSync(path.join(folder, program))),
  );
  if (found !== undefined) return found;
  if (process.env.REQUIRE_POSTGRES === '1')
    throw new Error('REQUIRE_POSTGRES=1, but there is no PostgreSQL: install Debian’s package postgresql');
  console.warn('no PostgreSQL: its tests are skipped (install postgresql)');
  return undefined;
}

/**
 * Runs statements on a server as its superuser; returns the rows of the last one.
 * @throws what ended the connection, if the server ended it between two statements
 */
async function askAsOwner(port: number, sql: string): Promise<unknown[]> {
  const client = new pg.Client(`postgres://owner@127.0.0.1:${port}/postgres`);
  let ended: Error | undefined;
  client.on('error', (error) => (ended ??= error));
  await client.connect();
  try {
    const result: unknown = await client.query(sql);
    return ([result].flat().at(-1) as pg.QueryResult).rows as unknown[];
  } catch (error) {
    throw ended ?? error;
  } finally {
    await client.end();
  }
}

/** SQLSTATE of a statement or a connection on a standby that was in the way of the log. */
const IN_THE_WAY = '40001';

/** Does the same on a standby, again and again while the replay of the log ends the statement or its connection. */
async function askStandby(port: number, sql: string): Promise<unknown[]> {
  for (;;) {
    try {
      return await askAsOwner(port, sql);
    } catch (error) {
      if ((error as { code?: unknown }).code !== IN_THE_WAY) throw error;
    }
  }
}

function inSchemaOf(url: string, sql: string): string {
  return `SET search_path = ${new URL(url).username}; ${sql}`;
}

/** Creates an empty schema on the server that listens at a port; returns its address. */
export async function createSchemaAt(port: number): Promise<string> {
  const role = `cairn_${randomBytes(4).toString('hex')}`;
  await askAsOwner(
    port,
    `CREATE ROLE ${role} LOGIN; CREATE SCHEMA ${role} AUTHORIZATION ${role};
     GRANT CREATE ON DATABASE postgres TO ${role}`,
  );
  return `postgres://${role}@127.0.0.1:${port}/postgres`;
}

async function startServer(programs: string): Promise<PostgresServer> {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairn-postgres-'));
  const owner = serverUser();
  fs.chownSync(folder, owner.uid, owner.gid);
  const data = path.join(folder, 'data');
  const run = (program: string, ...options: string[]) =>
    void execFileSync(path.join(programs, program), options, { ...owner, cwd: folder, stdio: 'ignore' });
  const port = await freePort();
  const start = () =>
    run('pg_ctl', '-D', data, '-w', '-o', `-p ${port} -k ${folder} -h 127.0.0.1`, '-l', `${folder}/log`, 'start');
  run('initdb', '-D', data, '-U', 'owner', '-A', 'trust', '-E', 'UTF8', '--locale=C.UTF-8', '--no-sync');
  start();
  let standby: Standby | undefined;
  const asOwner = (sql: string) => askAsOwner(port, sql);
  const signalAll = (signal: NodeJS.Signals) => {
    const first = Number.parseInt(fs.readFileSync(path.join(data, 'postmaster.pid'), 'utf8'), 10);
    const children = fs.readFileSync(`/proc/${first}/task/${first}/children`, 'utf8').trim().split(' ').map(Number);
    for (const pid of [first, ...children]) {
      try {
        process.kill(pid, signal);
      } catch (error) {
        // A process of the server may end at any moment.
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
      }
    }
  };
  const createSchema = () => createSchemaAt(port);
  return {
    url: await createSchema(),
    log: path.join(folder, 'log'),
    createSchema,
    async encrypt() {
      const [key, certificate] = [path.join(data, 'server.key'), path.join(data, 'server.crt')];
      const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'];
      const made = ['-x509', ...curve, '-nodes', '-subj', '/CN=localhost', '-keyout', key, '-out', certificate];
      execFileSync('openssl', ['req', ...made], { ...owner, cwd: folder, stdio: 'ignore' });
      for (const sql of ['ALTER SYSTEM SET ssl = on', 'SELECT pg_reload_conf()']) await asOwner(sql);
      return `${await createSchema()}?sslmode=no-verify`;
    },
    read: (url, sql) => asOwner(inSchemaOf(url, sql)),
    async startStandby(options = {}) {
      standby = await followServer({ folder, port, run, asOwner }, options);
      return standby;
    },
    restart() {
      run('pg_ctl', '-D', data, '-m', 'immediate', '-w', 'stop');
      start();
    },
    pause: () => signalAll('SIGSTOP'),
    resume: () => signalAll('SIGCONT'),
    stop() {
      standby?.stop();
      run('pg_ctl', '-D', data, '-m', 'immediate', '-w', 'stop');
      fs.rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A server that a standby can follow. */
interface Followed {
  readonly folder: string;
  readonly port: number;
  readonly run: (program: string, ...options: string[]) => void;
  readonly asOwner: (sql: string) => Promise<unknown[]>;
}

async function followServer(
  { folder, port, run, asOwner }: Followed,
  { isAwaited = true, settings = {} }: StandbyOptions,
): Promise<Standby> {
  let data = path.join(folder, 'standby');
  const log = path.join(folder, 'standby.log');
  const own = await freePort();
  let isRunning = false;
  const from = `host=127.0.0.1 port=${port} user=owner application_name=standby`;
  run('pg_basebackup', '-D', data, '-d', from, '-R', '-c', 'fast');
  const set = Object.entries(settings).map(([name, value]) => ` -c ${name}=${value}`);
  const ask = (sql: string) => askStandby(own, sql);
  const start = () => {
    const options = `-p ${own} -k ${folder} -h 127.0.0.1${set.join('')}`;
    run('pg_ctl', '-D', data, '-w', '-o', options, '-l', log, 'start');
    isRunning = true;
  };
  const standby: Standby = {
    log,
    read: (url, sql) => ask(inSchemaOf(url, sql)),
    async pauseReplay() {
      await ask('SELECT pg_wal_replay_pause()');
      const isPaused = `SELECT 1 WHERE pg_get_wal_replay_pause_state() = 'paused'`;
      while ((await ask(isPaused)).length === 0) await pause(20);
    },
    resumeReplay: async () => void (await ask('SELECT pg_wal_replay_resume()')),
    async caughtUp() {
      const [{ end }] = (await asOwner('SELECT pg_current_wal_lsn()::text AS end')) as [{ end: string }];
      const isThere = `SELECT 1 WHERE pg_last_wal_replay_lsn() >= '${end}'`;
      while ((await ask(isThere)).length === 0) await pause(20);
    },
    stop() {
      if (isRunning) run('pg_ctl', '-D', data, '-m', 'immediate', '-w', 'stop');
      isRunning = false;
    },
    async start() {
      start();
      const follows = `SELECT 1 FROM pg_stat_replication WHERE ${isAwaited ? `sync_state = 'sync'` : `state = 'streaming'`}`;
      while ((await asOwner(follows)).length === 0) await pause(50);
    },
    async keepData() {
      const kept = path.join(folder, 'kept');
      standby.stop();
      execFileSync('cp', ['-a', data, kept], serverUser());
      fs.appendFileSync(path.join(kept, 'postgresql.auto.conf'), `primary_conninfo = ''\n`);
      await standby.start();
      return () => {
        standby.stop();
        data = kept;
        start();
      };
    },
    promote: () => run('pg_ctl', '-D', data, '-w', 'promote'),
    addressOf: (url) => url.replace(`:${port}/`, `:${own}/`),
  };
  if (isAwaited) await asOwner(`ALTER SYSTEM SET synchronous_standby_names = 'standby'`);
  await asOwner(`SELECT pg_reload_conf()`);
  await standby.start();
  return standby;
}

/** Returns the user as whom the server runs, since PostgreSQL refuses to run as root. */
export function serverUser(): { readonly uid: number; readonly gid: number } {
  if (process.getuid!() !== 0) return { uid: process.getuid!(), gid: process.getgid!() };
  const idOf = (kind: '-u' | '-g') => Number(spawnSync('id', [kind, 'postgres'], { encoding: 'utf8' }).stdout);
  return { uid: idOf('-u'), gid: idOf('-g') };
}

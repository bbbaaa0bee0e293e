/**
 * BullMQ's queues in PostgreSQL. BullMQ would open two connections for each queue and each worker; here all queues of a
 * process share few, which is what the stand-in for its `PostgresConnection` is for.
 */

import { EventEmitter } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import type { PostgresConnection, PostgresConnectionOptions, PostgresQueueBackend, Queue, Worker } from 'bullmq';
import type pg from 'pg';
import type { QueuePlace } from '../dispatch/dispatch-ports.ts';
import { EngineError } from '../errors.ts';
import type { Logger } from '../ports.ts';
import {
  BEGIN_QUEUE_SESSION,
  findQueueSchema,
  hasMark,
  isForbidden,
  makeQueueSchema,
  mayNotMake,
  type Queryable,
  setMark,
  setMissingMark,
} from '../store/postgres/queue-schema.ts';
import { createOutageLog, EVENTS_KEPT, type QueueLink, withinLimit } from './queue-link.ts';

/**
 * Greatest number of connections with which a process sends commands to its queues; one more listens for notifications
 * in a process with a worker. Commands take a few milliseconds, and a job carries up to 64 rows.
 */
const MAX_CONNECTIONS = 2;
/** Time limit of connecting, and of a command, after which its connection is given up (ms). */
const MAX_COMMAND_MS = 5_000;
/**
 * Time without data on the listening connection after which the system tests whether the other side still answers (ms).
 */
const KEEP_ALIVE_MS = 10_000;
/**
 * Pause before a BullMQ worker repeats a command that failed since the server was away, and before the listening
 * connection is made again after it could not be made (ms).
 */
const RETRY_MS = 1_000;
/**
 * Value for the option `connection`, which BullMQ's classes require. It is empty, as they use the connection of their
 * backend.
 */
const NONE = {};
/** Longest time that closing the link waits for its connections to close (ms). */
const CLOSE_MS = 1_000;

/** The connections of this process to the queues of one database. */
interface Shared {
  readonly connection: StandIn;
  /** BullMQ's classes, changed so that all their objects use the shared connections. */
  readonly classes: { readonly Queue: typeof Queue; readonly Worker: typeof Worker };
  isUp(): boolean;
  close(): Promise<void>;
}

/** The connections of this process, and how many links use them, by the address of the database. */
const opened = new Map<string, { readonly opening: Promise<Shared>; users: number }>();

/**
 * Opens a link to the queues in PostgreSQL. All links of a process to one database share its connections.
 * @throws EngineError as `openQueueLink` says
 */
export async function openPostgresLink(
  { database }: Extract<QueuePlace, { kind: 'postgres' }>,
  logger: Logger,
): Promise<QueueLink> {
  const use = opened.get(database) ?? { opening: openShared(database, logger), users: 0 };
  opened.set(database, use);
  use.users += 1;
  use.opening.catch(() => opened.delete(database));
  const shared = await use.opening;
  const { Queue, Worker } = shared.classes;
  const client: Queryable = shared.connection.pool;
  const logError = (error: Error) => logger.debug({ code: error.name }, 'queue_error');
  let isOpen = true;
  return {
    isUp: shared.isUp,
    whenReady: (listener) => void setImmediate(listener),
    bounded: (call) => withinLimit(call, { server: 'PostgreSQL', reasonOf }),
    openQueue: (name) =>
      new Queue(name, { connection: NONE, streams: { events: { maxLen: EVENTS_KEPT } } }).on('error', logError),
    // `addBulk` would make and drop two temporary tables, for which a role may lack the right. Side by side, jobs would
    // change places.
    async addJobs(queue, jobs) {
      for (const { name, data, opts } of jobs) await queue.add(name, data, opts);
    },
    openWorker: (name, handle, options) =>
      new Worker(name, handle, { ...options, connection: NONE, runRetryDelay: RETRY_MS }).on('error', logError),
    setMark: (mark, ms) => setMark(client, mark, ms),
    setMissingMark: (mark, ms) => setMissingMark(client, mark, ms),
    hasMark: (mark) => hasMark(client, mark),
    async close() {
      if (!isOpen) return;
      isOpen = false;
      use.users -= 1;
      if (use.users > 0) return;
      opened.delete(database);
      await shared.close();
    },
  };
}

async function openShared(database: string, logger: Logger): Promise<Shared> {
  const [bullmq, { default: pg }] = await Promise.all([import('bullmq'), import('pg')]);
  await prepareQueues(bullmq, new pg.Client(clientOptions(database)));
  const outage = createOutageLog(logger, ['queues_lost', 'queues_back']);
  let isUp = true;
  const note = (error?: unknown) => {
    isUp = error === undefined;
    if (isUp) outage.back();
    else outage.lost(reasonOf(error));
  };
  const pool = new pg.Pool({
    ...clientOptions(database),
    max: MAX_CONNECTIONS,
    onConnect: beginSession,
  });
  // An idle connection that ends is made anew by the next command, which tells whether the server is away.
  pool.on('error', () => {});
  const connection = createStandIn({
    query: (text, values) => answered(pool.query(text, values as unknown[]), note),
    openListener: () => new pg.Client({ ...clientOptions(database), keepAliveInitialDelayMillis: KEEP_ALIVE_MS }),
  });
  const classes = bullmq.withBackend<PostgresQueueBackend, PostgresConnectionOptions>(
    (name, options) => new bullmq.PostgresQueueBackend(connection as unknown as PostgresConnection, name, options),
  ) as unknown as Shared['classes'];
  return {
    connection,
    classes,
    isUp: () => isUp,
    async close() {
      connection.end();
      await Promise.race([pool.end(), pause(CLOSE_MS, undefined, { ref: false })]);
    },
  };
}

/**
 * Sends a new connection the statement that begins its session, before the pool hands it out. The pool waits for the
 * result, although the declared type of `onConnect` does not say so.
 */
const beginSession = ((client) => client.query(BEGIN_QUEUE_SESSION)) as NonNullable<pg.PoolConfig['onConnect']>;

function clientOptions(database: string): pg.ClientConfig {
  return {
    connectionString: database,
    connectionTimeoutMillis: MAX_COMMAND_MS,
    query_timeout: MAX_COMMAND_MS,
    keepAlive: true,
    application_name: 'cairn queues',
  };
}

/** Matches the names of schemas that BullMQ takes. */
const NAMES = /^[A-Za-z_][A-Za-z0-9_$]{0,62}$/;

/**
 * Makes the schema of the queues with its tables, or brings them to the newest version.
 * @throws EngineError as `openQueueLink` says
 */
async function prepareQueues(bullmq: typeof import('bullmq'), client: pg.Client): Promise<void> {
  client.on('error', () => {});
  let schema = 'of the queues';
  try {
    await client.connect();
    schema = await findQueueSchema(client);
    if (!NAMES.test(schema)) {
      throw new EngineError(
        'unprocessable',
        `the schema of the queues would be ${schema}: its name may have letters, digits, _ and $, and 63 in all`,
      );
    }
    await makeQueueSchema(client, schema);
    await migrate(bullmq, client, schema);
  } catch (error) {
    if (error instanceof EngineError) throw error;
    if (isForbidden(error)) throw mayNotMake(schema, error);
    if (error instanceof bullmq.SchemaVersionMismatchError)
      throw new EngineError('unprocessable', `the schema ${schema} was made by a later BullMQ: use a newer Cairn`);
    const code = reasonOf(error);
    throw new EngineError('unavailable', `PostgreSQL did not make the queues: ${code}`, { cause: error });
  } finally {
    client.end().catch(() => {});
  }
}

/**
 * Brings BullMQ's tables to the newest version. It waits while another process does so. Tables of the newest version
 * cost one read.
 */
async function migrate(bullmq: typeof import('bullmq'), client: pg.Client, schema: string): Promise<void> {
  const version = await bullmq.assertSchemaCompatibility(client, schema).catch((error: unknown) => {
    if (error instanceof bullmq.SchemaMigrationRequiredError) return 0;
    throw error;
  });
  if (version >= bullmq.LATEST_SCHEMA_VERSION) return;
  // The schema is there by now, and a role that was given it may lack the right that this statement takes in any case.
  const isDone = (text: string) => text.startsWith('CREATE SCHEMA IF NOT EXISTS');
  const query = async (text: string, values?: readonly unknown[]) =>
    isDone(text) ? { rows: [] } : client.query(text, values as unknown[]);
  await bullmq.runMigrations({ query } as Pick<pg.Client, 'query'>, schema);
}

/** The members of BullMQ's `PostgresConnection` that its backend uses, and `end`, by which the link is closed. */
interface StandIn extends EventEmitter {
  readonly pool: Queryable;
  readonly schema: string;
  readonly isClosing: Promise<void> | undefined;
  readonly hasListenClientKeepAlive: boolean;
  waitUntilReady(): Promise<void>;
  getListenClient(): Promise<pg.Client>;
  setListenClientName(): Promise<void>;
  close(): Promise<void>;
  disconnect(): Promise<void>;
  /** Ends the listening connection. */
  end(): void;
}

/**
 * Creates a stand-in for BullMQ's `PostgresConnection`, which all queues and workers share: none of them can close it.
 */
function createStandIn({
  query,
  openListener,
}: {
  readonly query: Queryable['query'];
  readonly openListener: () => pg.Client;
}): StandIn {
  let listener: Promise<pg.Client> | undefined;
  let closing: Promise<void> | undefined;
  const drop = (client: pg.Client, own: Promise<pg.Client>) => {
    if (listener !== own) return;
    client.end().catch(() => {});
    listener = undefined;
    // Workers that wait for notifications wake up, and listen on a new connection.
    connection.emit('listenerinvalidated');
  };
  const listen = async (): Promise<pg.Client> => {
    const client = openListener();
    const own = listener!;
    client.on('error', () => drop(client, own));
    client.on('end', () => drop(client, own));
    // Each worker waits with a listener of its own.
    client.setMaxListeners(0);
    await answered(client.connect(), () => {});
    return oneByOne(client, () => drop(client, own));
  };
  const events = new EventEmitter().setMaxListeners(0);
  Object.defineProperty(events, 'isClosing', { get: () => closing });
  const connection = Object.assign(events as EventEmitter & Pick<StandIn, 'isClosing'>, {
    pool: { query },
    schema: '',
    // The workers then look for jobs every ten seconds at least, should a notification be lost.
    hasListenClientKeepAlive: false,
    waitUntilReady: async () => {},
    async getListenClient() {
      if (listener !== undefined) return listener;
      const own = (listener = Promise.resolve().then(listen));
      // All workers get the failure until the next attempt is due.
      own.catch(() => {
        setTimeout(() => listener === own && (listener = undefined), RETRY_MS).unref();
      });
      return own;
    },
    setListenClientName: async () => {},
    close: async () => {},
    disconnect: async () => {},
    end() {
      closing = Promise.resolve();
      void listener?.then((client) => client.end()).catch(() => {});
    },
  });
  return connection;
}

/**
 * Makes a client run its statements one after the other, since all workers share one listening connection.
 * @param onFailure called when a statement fails, which may be the only sign that the connection is dead
 */
function oneByOne(client: pg.Client, onFailure: () => void): pg.Client {
  const query = client.query.bind(client) as (...statement: unknown[]) => Promise<unknown>;
  let last: Promise<unknown> = Promise.resolve();
  const queued = (...statement: unknown[]) => {
    last = last.catch(() => {}).then(() => query(...statement));
    last.catch(onFailure);
    return last;
  };
  return Object.assign(client, { query: queued });
}

/**
 * SQLSTATEs by which BullMQ's own SQL functions report a result, such as that a job is not there. They are no failure
 * of the server.
 */
const OF_BULLMQ = new Set(['BM001', '23503']);

/**
 * Returns the result of a command. An error by which BullMQ itself reports something (`OF_BULLMQ`) is thrown unchanged.
 * Any other one is thrown with the code ECONNREFUSED, which BullMQ takes for a lost connection, since its workers
 * repeat a command after a pause only then.
 * @param note called with nothing if the command succeeded, else with the error; not called for an error of BullMQ
 */
async function answered<T>(command: Promise<T>, note: (error?: unknown) => void): Promise<T> {
  try {
    const result = await command;
    note();
    return result;
  } catch (error) {
    if (error instanceof Error && 'code' in error && OF_BULLMQ.has(String(error.code))) throw error;
    note(error);
    throw Object.assign(new Error('PostgreSQL did not answer', { cause: error }), { code: 'ECONNREFUSED' });
  }
}

/** Returns the reason of an error as a code or a name: messages of PostgreSQL quote values. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  if (error.cause instanceof Error) return reasonOf(error.cause);
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name;
}

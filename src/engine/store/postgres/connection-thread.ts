/**
 * The thread that speaks with PostgreSQL for a thread that waits (`blocking-connection.ts`). It answers one request at
 * a time: runs its statements in order, sends the result of the last one, and wakes the thread that waits.
 */
import { workerData } from 'node:worker_threads';
import pg from 'pg';
import type { QueryResult, Reply, Request, RequestError, ThreadData } from './connection-messages.ts';

const { port, signal, url } = workerData as ThreadData;
let session: { readonly no: number; readonly client: pg.Client } | undefined;
let sessions = 0;

/** Object identifiers of PostgreSQL's types. */
const BOOL = 16;
const BYTEA = 17;
const NUMBERS: ReadonlySet<number> = new Set([20, 21, 23, 26, 700, 701, 1700]);

/** Values as SQLite has them: integers and fractions are numbers, true is 1, bytes are bytes, all else is text. */
const types = {
  getTypeParser: (oid: number): ((text: string) => unknown) => {
    if (NUMBERS.has(oid)) return toNumber;
    if (oid === BOOL) return (text) => (text === 't' ? 1 : 0);
    if (oid === BYTEA) return (text) => new Uint8Array(Buffer.from(text.slice(2), 'hex'));
    return (text) => text;
  },
};

function toNumber(text: string): number {
  const number = Number(text);
  if (/^-?\d+$/.test(text) && !Number.isSafeInteger(number)) throw new RangeError('an integer beyond 2^53');
  return number;
}

port.on('message', (request: Request) => {
  void answer(request).then((reply) => {
    port.postMessage(reply);
    Atomics.store(signal, 0, request.no);
    Atomics.notify(signal, 0);
    if (request.end) port.close();
  });
});

async function answer(request: Request): Promise<Reply> {
  const { no } = request;
  try {
    if (request.end) {
      await session?.client.end();
      return { no, session: 0, columns: [], rows: [], changes: 0, bytes: [] };
    }
    if (request.session === null) session ??= await connect(request.timeoutMs);
    if (session === undefined || (request.session ?? session.no) !== session.no) {
      return { no, error: { code: 'lost', constraint: null, isLost: true } };
    }
    return { no, ...(await run(session.no, session.client, request)) };
  } catch (error) {
    return { no, error: describe(error as pg.DatabaseError) };
  }
}

async function run(sessionNo: number, client: pg.Client, { name, text, values }: Request): Promise<QueryResult> {
  const result: unknown = await (values === undefined
    ? client.query({ text, rowMode: 'array', types })
    : client.query({ ...(name === undefined ? {} : { name }), text, values: [...values], rowMode: 'array', types }));
  // A text of several statements has a result for each.
  const last = (Array.isArray(result) ? result.at(-1) : result) as pg.QueryArrayResult<unknown[]>;
  return {
    session: sessionNo,
    columns: last.fields.map((field) => field.name),
    bytes: last.fields.flatMap(({ dataTypeID }, place) => (dataTypeID === BYTEA ? [place] : [])),
    rows: last.rows,
    changes: last.command === 'SELECT' ? 0 : (last.rowCount ?? 0),
  };
}

/** Turns an error into data. Its message may quote values, which are content, so only its code leaves this thread. */
function describe({ code, constraint, message }: pg.DatabaseError): RequestError {
  const isAnswer = session !== undefined && /^[0-9A-Z]{5}$/.test(code ?? '');
  const isLost = !isAnswer || /^(?:08|57P)/.test(code!);
  if (isLost) drop(session?.client);
  const isOfText = isAnswer && code!.startsWith('42');
  return {
    code: code ?? 'lost',
    constraint: constraint ?? null,
    isLost,
    ...(isOfText ? { detail: message } : {}),
  };
}

async function connect(timeoutMs: number): Promise<NonNullable<typeof session>> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: timeoutMs, keepAlive: true });
  // Without a listener a connection that ends would end the thread. The next statement tells of it.
  client.on('error', () => drop(client));
  await client.connect();
  return { no: ++sessions, client };
}

function drop(client: pg.Client | undefined): void {
  if (client === undefined || client !== session?.client) return;
  session = undefined;
  client.end().catch(() => {});
}

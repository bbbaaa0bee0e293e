/**
 * The thread that talks to PostgreSQL for a thread that blocks (`blocking-connection.ts`). It handles one request at a
 * time, and wakes the blocked thread with the results.
 */

import { workerData } from 'node:worker_threads';
import pg from 'pg';
import { watchNumber } from './watch-number.ts';
import type { QueryResult, Reply, Request, RequestError, ThreadData } from './connection-messages.ts';
import { PipelineError, runPipeline, type PipelineReply, type PipelineSession } from './pipeline.ts';
import { createReplyReader } from './reply-reader.ts';
import { parserOf } from './wire-values.ts';

/** A reply that is no error. */
type Answer = Extract<Reply, { readonly results: unknown }>;

interface Session extends PipelineSession {
  readonly no: number;
}

const { port, signal, url, sessionsBefore } = workerData as ThreadData;
let session: Session | undefined;
let sessions = sessionsBefore;
const watching = new AbortController();
/**
 * Completion of the latest request. The next request waits for it, so that requests are handled one after the other.
 */
let lastRequest: Promise<void> = Promise.resolve();

port.on('message', (request: Request) => {
  lastRequest = lastRequest.then(() => serve(request));
});

async function serve(request: Request): Promise<void> {
  const reply = await answer(request);
  if (request.isPosted) {
    if ('error' in reply) drop(session?.client);
    return;
  }
  port.postMessage(reply, 'bytes' in reply ? [reply.bytes.buffer] : []);
  Atomics.store(signal, 0, request.no);
  Atomics.notify(signal, 0);
  if (request.end) port.close();
}

async function answer(request: Request): Promise<Reply> {
  const { no, statements } = request;
  try {
    if (request.end) {
      watching.abort();
      await session?.client.end();
      return { no, session: 0, results: [] };
    }
    if (request.watch) {
      void watchNumber({ ...request.watch, url, text: statements as string, signal: watching.signal });
      return { no, session: session?.no ?? 0, results: [] };
    }
    if (request.session === null) session ??= await connect(request.timeoutMs);
    if (session === undefined || (request.session ?? session.no) !== session.no) {
      return { no, error: { code: 'lost', constraint: null, isLost: true } };
    }
    const present = session;
    if (typeof statements === 'string')
      return { no, session: present.no, results: [await runText(present.client, statements)] };
    return { no, session: present.no, ...toldOf(await runPipeline(present, statements)) };
  } catch (error) {
    if (error instanceof PipelineError) {
      return { no, error: { ...describe(error.cause as pg.DatabaseError), place: error.place } };
    }
    return { no, error: describe(error as pg.DatabaseError) };
  }
}

/** Numbers of the columns that replies have told of. */
const toldFields = new Set<number>();

/** Replaces the columns of results by their numbers, and adds those that no reply has told of. */
function toldOf({ bytes, results }: PipelineReply): Pick<Answer, 'bytes' | 'results' | 'fields'> {
  const fields = results.map((result) => result.fields).filter(({ no }) => !toldFields.has(no));
  for (const { no } of fields) toldFields.add(no);
  return {
    bytes,
    results: results.map((result) => ({ ...result, fields: result.fields.no })),
    fields: fields.map(({ no, list }) => ({ no, list })),
  };
}

async function runText(client: pg.Client, text: string): Promise<QueryResult> {
  const result: unknown = await client.query({ text, rowMode: 'array', types: { getTypeParser: parserOf } });
  // A text of several statements has a result for each.
  const last = (Array.isArray(result) ? result.at(-1) : result) as pg.QueryArrayResult<unknown[]>;
  return {
    columns: last.fields.map((field) => field.name),
    rows: last.rows,
    changes: last.command === 'SELECT' ? 0 : (last.rowCount ?? 0),
    command: last.command,
  };
}

/**
 * Converts an error to plain data, and drops the session if it is lost. An error message may quote stored values, so it
 * is passed on only for errors in the statement's own text (SQLSTATE 42…).
 */
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

async function connect(timeoutMs: number): Promise<Session> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: timeoutMs, keepAlive: true });
  // Without a listener a connection that ends would end the thread. The next statement tells of it.
  client.on('error', () => drop(client));
  await client.connect();
  return { no: ++sessions, client, reader: createReplyReader(client), prepared: new Map() };
}

function drop(client: pg.Client | undefined): void {
  if (client === undefined || client !== session?.client) return;
  session = undefined;
  client.end().catch(() => {});
}

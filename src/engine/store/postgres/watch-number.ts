/** Polls a number in the database in the background, for a thread that must not wait for the database. */

import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { noteSeen } from './connection-messages.ts';

interface NumberWatch {
  readonly url: string;
  /** A statement that returns one integer. */
  readonly text: string;
  /** Pause between two reads, ms. */
  readonly everyMs: number;
  /** Longest time that connecting or a read may take, ms. */
  readonly timeoutMs: number;
  /** Shared memory that gets the latest number and the time of its read, as `noteSeen` writes them. */
  readonly seen: BigInt64Array;
  readonly signal: AbortSignal;
}

/**
 * Polls the number on a connection of its own until `signal` aborts. After a failed read the last noted value stays,
 * and the next read connects again.
 */
export async function watchNumber({ url, text, everyMs, timeoutMs, seen, signal }: NumberWatch): Promise<void> {
  let client: pg.Client | undefined;
  const drop = () => {
    client?.end().catch(() => {});
    client = undefined;
  };
  while (!signal.aborted) {
    const readAt = process.hrtime.bigint();
    try {
      client ??= await connect(url, timeoutMs, drop);
      const { rows } = await client.query<[string]>({ text, rowMode: 'array' });
      noteSeen(seen, Number(rows[0]![0]), readAt);
    } catch {
      drop();
    }
    await pause(everyMs, undefined, { signal }).catch(() => {});
  }
  drop();
}

async function connect(url: string, timeoutMs: number, onLost: () => void): Promise<pg.Client> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: timeoutMs,
    query_timeout: timeoutMs,
    keepAlive: true,
  });
  client.on('error', onLost);
  await client.connect();
  return client;
}

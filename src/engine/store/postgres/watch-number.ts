/** Reads a number of the database again and again, for a thread that may not wait for it. */

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
  /** Shared memory for what was read last, as `noteSeen` writes it. */
  readonly seen: BigInt64Array;
  readonly signal: AbortSignal;
}

/**
 * Reads the number until `signal` aborts, on a connection of its own. A read that fails leaves what was noted as it is,
 * and the next one connects again.
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

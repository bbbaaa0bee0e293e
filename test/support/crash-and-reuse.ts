import { openBlockingConnection } from '../../src/engine/store/postgres/blocking-connection.ts';
import type { PostgresServer } from './postgres.ts';

/**
 * Crashes the server during a transaction, starts it again, and runs other transactions until their numbers have
 * reached the one of that transaction.
 * @param number number of the transaction, as `pg_current_xact_id` returned it
 * @returns whether another transaction has got the number and has committed; false if the log already had something of
 *   the first one, whose number the server then gives to no other one
 */
export function crashAndReuse(server: PostgresServer, number: string): boolean {
  server.restart();
  const other = openBlockingConnection(server.url);
  try {
    for (;;) {
      const next = BigInt(other.query('SELECT pg_current_xact_id()::text').rows[0]![0] as string);
      if (next >= BigInt(number)) return next === BigInt(number);
    }
  } finally {
    other.close();
  }
}

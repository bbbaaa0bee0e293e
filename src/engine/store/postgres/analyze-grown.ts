import type { BlockingConnection } from './blocking-connection.ts';

/**
 * Number of writes of a tenant at which it is first looked whether tables have grown; then at each doubling of the
 * number.
 */
const FIRST_LOOK = 8;
/** A table is analysed only if more than this number of its rows have changed, however few rows it has. */
const FEW_ROWS = 50;

/** Longest time that an analysis may take, ms: writes of other tenants on this connection wait for it. */
const LONGEST_MS = 5_000;

/** SQL that lets the server count at once what this session has changed; by itself it does so at most once a second. */
const COUNT_CHANGES = 'SELECT pg_stat_force_next_flush()';
/**
 * Finds the tables of which more rows have changed than they had when they were analysed last, and more than
 * `FEW_ROWS`.
 */
const SELECT_GROWN = `SELECT quote_ident(relname) FROM pg_class
  WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
    AND pg_stat_get_mod_since_analyze(oid) > greatest(reltuples, ${FEW_ROWS})`;

/**
 * Analyses tables that have doubled since they were analysed last (ANALYZE), at the writes 8, 16, 32 and so on of a
 * tenant. Without it, PostgreSQL assumes that a table which it has never analysed has a row or two for each tenant, and
 * reads all rows of a tenant where it should look up one. Its own daemon comes after a minute, when a bulk load may
 * have stored 100,000 memories. New statistics also end the plans that sessions made for the smaller table. Call it
 * after a commit. It waits for the analysis, 5 s at most, and throws nothing: if it fails, only speed is lost.
 * @param writes the tenant's counter of writes, with that commit counted
 */
export function analyzeGrown(connection: BlockingConnection, writes: number): void {
  if (writes < FIRST_LOOK || !Number.isInteger(Math.log2(writes))) return;
  try {
    connection.query(COUNT_CHANGES);
    const grown = connection.query(SELECT_GROWN).rows.map(([name]) => name as string);
    if (grown.length > 0) analyze(connection, grown);
  } catch {
    // A lost session is noticed by the next statement.
  }
}

function analyze(connection: BlockingConnection, tables: readonly string[]): void {
  connection.query(`BEGIN; SET LOCAL statement_timeout = ${LONGEST_MS}`);
  try {
    connection.query(`ANALYZE (SKIP_LOCKED) ${tables.join(', ')}; COMMIT`);
  } catch (error) {
    connection.query('ROLLBACK');
    throw error;
  }
}

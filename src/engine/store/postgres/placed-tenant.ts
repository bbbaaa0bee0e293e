/** Makes and deletes the rows of whole tenants in a database, on connections of their own. */

import { EngineError } from '../../errors.ts';
import { openBlockingConnection, type BlockingConnection, type Timeouts } from './blocking-connection.ts';
import { makeOrRequireSchema } from './migrate-schema.ts';

/** Longest time that a statement may take (ms). It is long, since one statement deletes all rows of a tenant. */
const STATEMENT_MS = 6 * 3_600_000;
const CONNECT_MS = 5_000;
/**
 * Beginning of the mark (`moved_by`) of a row that stays where a move has deleted the rows of a tenant. The token of
 * the move follows.
 */
export const EMPTIED = 'emptied:';
/** SQL condition on the table `tenants`: the row is no mark that stays where rows were deleted. */
export const HAS_ROWS = `coalesce(moved_by, '') NOT LIKE '${EMPTIED}%'`;
/** Timeouts where requests wait, for work of a few rows. */
export const BRIEFLY: Timeouts = { connectMs: CONNECT_MS, statementMs: 5_000 };

/**
 * Runs `work` on a new connection, which is closed afterwards and has a schema as `connectTo` says.
 * @param timeouts how long connecting and each statement of `work` may take; 5 s and six hours unless stated
 * @throws as `connectTo`; whatever `work` throws
 */
export function withConnection<T>(
  database: string,
  work: (connection: BlockingConnection) => T,
  timeouts: Timeouts = { connectMs: CONNECT_MS, statementMs: STATEMENT_MS },
): T {
  const connection = connectTo(database, timeouts);
  try {
    return work(connection);
  } finally {
    connection.close();
  }
}

/**
 * Opens a connection to a database, whose schema is made if it is empty (`makeOrRequireSchema`); the caller closes it.
 * @param timeouts how long connecting and each statement may take
 * @param name as `makeOrRequireSchema` takes it
 * @throws EngineError `unavailable` if the database does not answer; the errors of `makeOrRequireSchema`
 */
export function connectTo(database: string, timeouts: Timeouts, name?: string | null): BlockingConnection {
  const connection = openBlockingConnection(database);
  try {
    connection.setTimeouts(timeouts);
    makeOrRequireSchema(connection, name);
    return connection;
  } catch (error) {
    connection.close();
    throw error;
  }
}

/** Returns the id of a database, which two addresses of the same schema share. Makes the schema if it is missing. */
export function placeIdOf(database: string, timeouts?: Timeouts): string {
  return withConnection(database, (connection) => identityOf(connection).place, timeouts);
}

/**
 * Takes a further database into use for the service whose control schema is in another one. An empty database is marked
 * as that service's, so that two services never share one.
 * @param home id of the service's own database (`placeIdOf`)
 * @returns the id of the further database
 * @throws EngineError `conflict` if it is the service's own database, is another service's, or has tenants without a
 *   mark
 */
export function claimDatabase({ database, name }: { database: string; name: string }, home: string): string {
  return withConnection(database, (connection) => claimOn(connection, name, home));
}

/**
 * Takes a further database into use as `claimDatabase` does, on an open connection to it, with the same result and
 * errors.
 */
export function claimOn(connection: BlockingConnection, name: string, home: string): string {
  const claim = `UPDATE schema_version SET home = $1::uuid WHERE home IS NULL AND place <> $1::uuid
    AND NOT EXISTS (SELECT 1 FROM tenants)
    AND NOT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = current_schema() || '_control')`;
  connection.query(claim, [home]);
  const found = identityOf(connection);
  if (found.place === home)
    throw new EngineError('conflict', `the database ${name} is the one of OM_DATABASE_URL, by another address`);
  if (found.home === home) return found.place;
  throw new EngineError(
    'conflict',
    `the database ${name} holds tenants of another service: give an empty database or schema`,
  );
}

function identityOf(connection: BlockingConnection): { readonly place: string; readonly home: string | null } {
  const [place, home] = connection.query('SELECT place::text, home::text FROM schema_version').rows[0]!;
  return { place: place as string, home: home as string | null };
}

/**
 * Makes the row of a new tenant that is placed in a database. It replaces the mark of a tenant that moved away, and a
 * row that was never written to, as the command that made it was broken off.
 * @param connection a connection to that database
 * @param placement number of the placement
 * @throws EngineError `conflict` if the database still has rows of a deleted tenant with this id, so that no new tenant
 *   gets that data
 */
export function makePlacedTenant(connection: BlockingConnection, tenant: string, placement: number): void {
  const isReplaced = 'moved_by IS NOT NULL OR (writes = 0 AND arrived_by IS NULL)';
  dropTenants(connection, `id = $1 AND (${isReplaced})`, [tenant]);
  const isThere = connection.query('SELECT 1 FROM tenants WHERE id = $1', [tenant]).rows.length > 0;
  if (isThere) throw new EngineError('conflict', `the database still has rows of an earlier tenant ${tenant}`);
  connection.query('INSERT INTO tenants (id, placement) VALUES ($1, $2)', [tenant, placement]);
}

/** A tenant as its row in a database shows it. */
interface FoundTenant {
  /** Number that each row of the tenant has. */
  readonly number: number;
  /** Whether the tenant is placed, but its row lacks the number of the placement, as rows had none at first. */
  readonly lacksPlacement: boolean;
}

/**
 * Finds a tenant in a database; undefined if it is not there, if a move has deleted its rows there, or if its row has
 * another number of its placement: then the tenant was moved or made anew since, or this server is a standby that has
 * not received that yet.
 * @param wanted.placement number of the placement, 0 for a tenant that was never placed; undefined for any
 */
export function findPlaced(
  connection: BlockingConnection,
  { tenant, placement }: { readonly tenant: string; readonly placement?: number },
): FoundTenant | undefined {
  const find = `SELECT tenant, placement FROM tenants WHERE id = $1 AND ${HAS_ROWS}`;
  const found = connection.query(find, [tenant]).rows[0];
  if (found === undefined) return undefined;
  const [number, present] = found as [number, number | null];
  const lacksPlacement = present === null && placement !== undefined && placement > 0;
  const isOther = placement !== undefined && placement !== (present ?? 0) && !lacksPlacement;
  return isOther ? undefined : { number, lacksPlacement };
}

/**
 * Stores the number of a tenant's placement in its row. It changes nothing if the row has one, as all have but those of
 * tenants that were placed before there was this number, or if the tenant was moved away.
 */
export function notePlacement(connection: BlockingConnection, tenant: number, placement: number): void {
  const note = 'UPDATE tenants SET placement = $2 WHERE tenant = $1 AND placement IS NULL AND moved_by IS NULL';
  connection.query(note, [tenant, placement]);
}

/** Deletes all rows of a tenant, and copies that an unfinished move has made; does nothing if there are none. */
export function eraseTenantRows(database: string, tenant: string): void {
  withConnection(database, (connection) =>
    dropTenants(connection, `id = $1 OR (id LIKE 'moving:%' AND split_part(id, ':', 3) = $1)`, [tenant]),
  );
}

/**
 * Deletes tenants with all their rows, each in a transaction of its own.
 * @param condition SQL condition on the table `tenants`, with `values` as its parameters
 */
export function dropTenants(connection: BlockingConnection, condition: string, values: readonly string[]): void {
  for (const [no] of connection.query(`SELECT tenant FROM tenants WHERE ${condition}`, values).rows) {
    connection.query(`BEGIN; ${dropStatements(no as number)}; COMMIT`);
  }
}

/** Returns the SQL that deletes a tenant with all its rows, by its number, inside a transaction. */
export function dropStatements(no: number): string {
  // Without a feed, no trigger notes an event of the memories that go.
  return `SELECT set_config('cairn.tenant', '${no}', true);
    DELETE FROM event_feed WHERE tenant = ${no}; DELETE FROM tenants WHERE tenant = ${no}`;
}

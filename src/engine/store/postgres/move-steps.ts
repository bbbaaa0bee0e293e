/**
 * The steps of a move of one tenant between two databases that its row in `tenants` guards. A process that still has
 * the tenant open at the source cannot write there once `mark` has returned true, whatever it believes about the
 * placement.
 */

import { EngineError } from '../../errors.ts';
import {
  openBlockingConnection,
  postgresError,
  type BlockingConnection,
  type Timeouts,
} from './blocking-connection.ts';
import { migrateSchema } from './migrate-schema.ts';
import { movingName } from './moved-tenant.ts';
import { ensureTenant } from './open-postgres-store.ts';
import { dropStatements, dropTenants, EMPTIED, findPlaced, HAS_ROWS, withConnection } from './placed-tenant.ts';
import { KEEPALIVE } from './session-settings.ts';

/**
 * Longest wait for writes that had begun before the tenant was frozen (ms). It is longer than a commit waits for a lost
 * standby.
 */
const FREEZE_MS = 90_000;
/** Time that the server gets, in addition to the longest wait for writes, to report that this wait is over (ms). */
const SAYING_MS = 10_000;
/** SQLSTATE of a statement that has waited for a lock for as long as it may. */
const LOCK_IS_TAKEN = '55P03';

/**
 * A tenant whose writes are refused until this object is closed, the process ends, or its session is lost. Reads go on.
 */
export interface FrozenTenant {
  /**
   * Marks the tenant as moved, so that its writes are refused for good.
   * @param token token of the move
   * @returns false, and marks nothing, if the tenant was written to since it was frozen, because the session was lost,
   *   or if it has a mark
   * @throws EngineError `unavailable` if the session is lost now: the tenant may be marked then
   */
  mark(token: string): boolean;
  close(): void;
}

/**
 * Freezes a tenant in a database. It waits until the writes that have begun are committed. A mark that an earlier move
 * left, which did not come about, is removed; a tenant that was never placed and never used gets its row. While it
 * waits, new writes are refused; afterwards they are accepted again if it throws.
 * @param placed.placement number of the placement in this database, 0 for a tenant that was never placed
 * @param waitMs longest wait for these writes (ms), 90 s by default
 * @throws EngineError `unavailable` if the database does not answer, or a write goes on for too long; `conflict` if it
 *   does not have the tenant, or not under this placement; the errors of `migrateSchema`
 */
export function freezeTenant(
  database: string,
  { id, placement }: { readonly id: string; readonly placement: number },
  waitMs: number = FREEZE_MS,
): FrozenTenant {
  const connection = openBlockingConnection(database);
  try {
    migrateSchema(connection);
    if (placement === 0) ensureTenant(connection, id);
    const tenant = findPlaced(connection, { tenant: id, placement })?.number;
    if (tenant === undefined) throw lacksRows(id);
    // The server itself ends the wait: one that nobody waits for any more would go on and have writes refused as long.
    connection.setTimeouts({ connectMs: 5_000, statementMs: waitMs + SAYING_MS });
    connection.query(`${KEEPALIVE}; SET lock_timeout = ${waitMs}`);
    takeMoveLock(connection, { tenant, id, waitMs });
    connection.query('UPDATE tenants SET moved_by = NULL WHERE tenant = $1 AND moved_by IS NOT NULL', [tenant]);
    const writes = connection.query('SELECT writes FROM tenants WHERE tenant = $1', [tenant]).rows[0]![0] as number;
    return {
      mark: (token) =>
        connection.query(
          'UPDATE tenants SET moved_by = $1 WHERE tenant = $2 AND writes = $3 AND moved_by IS NULL RETURNING 1',
          [token, tenant, writes],
        ).rows.length === 1,
      close: connection.close,
    };
  } catch (error) {
    connection.close();
    throw error;
  }
}

/**
 * Takes the advisory lock with which the tenant's writes are refused, once the writes that have begun are committed.
 * @throws EngineError `unavailable` if one of them goes on for longer than `waitMs`
 */
function takeMoveLock(
  connection: BlockingConnection,
  { tenant, id, waitMs }: { readonly tenant: number; readonly id: string; readonly waitMs: number },
): void {
  try {
    connection.query('SELECT pg_advisory_lock(tableoid::int, tenant) FROM tenants WHERE tenant = $1', [tenant]);
  } catch (error) {
    if (postgresError(error)?.code !== LOCK_IS_TAKEN) throw error;
    throw new EngineError(
      'unavailable',
      `a write to tenant ${id} has not ended within ${waitMs / 1_000} s: the tenant stays where it is and takes ` +
        'writes again, so run the command once more when that write has ended',
      { cause: error },
    );
  }
}

/**
 * Removes the mark that the move `mark.token` set on the tenant `mark.id` at its source, so that the tenant can be
 * written to again; does nothing if the tenant has no mark of this move, or if its rows were deleted.
 * @param timeouts as `withConnection` takes them
 */
export function clearMark(database: string, mark: { id: string; token: string }, timeouts?: Timeouts): void {
  const clear = 'UPDATE tenants SET moved_by = NULL WHERE id = $1 AND moved_by = $2';
  withConnection(database, (connection) => connection.query(clear, [mark.id, mark.token]), timeouts);
}

/** A move of a tenant: its token, and the number of the placement that it leads to. */
interface Arrival {
  readonly token: string;
  readonly placement: number;
}

/**
 * Gives the copy of a tenant the tenant's id, in place of the mark that an earlier move away has left. The commit waits
 * for the disk, and so for all rows of the copy.
 * @throws EngineError `conflict` if the database has another tenant of this id, or if the copy is gone
 */
export function nameArrived(database: string, id: string, { token, placement }: Arrival): void {
  withConnection(database, (connection) => {
    dropTenants(connection, 'id = $1 AND moved_by IS NOT NULL', [id]);
    if (connection.query('SELECT 1 FROM tenants WHERE id = $1', [id]).rows.length > 0)
      throw new EngineError('conflict', `the database already has a tenant ${id}, of an earlier move`);
    const rename = 'UPDATE tenants SET id = $1, arrived_by = $2, placement = $3 WHERE id = $4 RETURNING 1';
    if (connection.query(rename, [id, token, placement, movingName(token, id)]).rows.length === 0)
      throw new EngineError('conflict', 'another move of the tenant has removed the copy');
  });
}

/**
 * Deletes what a move has left in a database: the rows at its source if it came about, or the copy at its target if it
 * did not. In place of a tenant a row stays that refuses writes. Rows of other moves are not touched.
 * @param present address of the database in which the tenant is now; it has no row of a tenant that was never used
 * @param remains.token token of the move
 * @throws EngineError `conflict` if a move has deleted the rows in `present`, or if it has none and the tenant's rows
 *   here are those that the move took, brought or copied, for example as a database was restored to a moment inside the
 *   move; nothing is deleted then
 */
export function deleteRemains(
  database: string,
  present: string,
  { id, token }: { readonly id: string; readonly token: string },
): void {
  const found = withConnection(present, (connection) => findRows(connection, id));
  if (found === 'emptied') throw lacksRows(id);
  withConnection(database, (connection) => {
    const find = `SELECT tenant FROM tenants
      WHERE id = $1 AND (moved_by = $2 OR (arrived_by = $2 AND moved_by IS NULL))`;
    const [row] = connection.query(find, [id, token]).rows;
    const hasCopy = () =>
      connection.query('SELECT 1 FROM tenants WHERE id = $1', [movingName(token, id)]).rows.length > 0;
    if (found === 'nothing' && (row !== undefined || hasCopy())) throw lacksRows(id);
    dropTenants(connection, 'id = $1', [movingName(token, id)]);
    if (row !== undefined) replaceByMark(connection, row[0] as number, { id, token });
  });
}

function replaceByMark(
  connection: BlockingConnection,
  no: number,
  { id, token }: { readonly id: string; readonly token: string },
): void {
  connection.query(`BEGIN; ${dropStatements(no)}`);
  connection.query('INSERT INTO tenants (id, moved_by) VALUES ($1, $2)', [id, `${EMPTIED}${token}`]);
  connection.query('COMMIT');
}

/**
 * Returns what a database has of a tenant: its rows, the row alone that `replaceByMark` has left (`emptied`), or
 * nothing.
 */
function findRows(connection: BlockingConnection, id: string): 'rows' | 'emptied' | 'nothing' {
  const [row] = connection.query(`SELECT (${HAS_ROWS})::int FROM tenants WHERE id = $1`, [id]).rows;
  if (row === undefined) return 'nothing';
  return row[0] === 1 ? 'rows' : 'emptied';
}

function lacksRows(id: string): EngineError {
  return new EngineError(
    'conflict',
    `tenant ${id} has no rows in the database in which it is placed, as if that had another address now, or the ` +
      'control database was restored to an earlier moment: give the right address, or restore it to a moment after ' +
      'the move, as no rows elsewhere are deleted',
  );
}

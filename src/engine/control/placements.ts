/**
 * The placements of tenants in several databases, in the control schema in PostgreSQL. A change of a placement is one
 * statement here, which decides the outcome of a move: until then the tenant is at the source, from then on at the
 * target.
 */

import { HOME_DATABASE } from '../config.ts';
import { EngineError } from '../errors.ts';
import { openBlockingConnection } from '../store/postgres/blocking-connection.ts';
import { KEEPALIVE } from '../store/postgres/session-settings.ts';
import type { ControlFile } from './control-file.ts';
import { UNPLACED, type Placement } from './tenant-paths.ts';

/** Number of the advisory locks of moves: "Carp" in ASCII. A process that moves a tenant holds the tenant's lock. */
export const MOVE_LOCK = 0x43617270;
const LOCK_KEY = `${MOVE_LOCK}, hashtext(current_schema() || ' ' || ?)`;
/** Beginning of the token in the record of a move that was given up and whose mark at the source is not cleared yet. */
const ABANDONED = 'abandoned:';

/** A tenant's placement, with the move that is under way and what an earlier move has left. */
export interface PlacementRecord extends Placement {
  /**
   * The move that is under way, was broken off, or was given up and has its mark at the source still, with the name of
   * its target (null: the database of OM_DATABASE_URL); null if there is none.
   */
  readonly move: { readonly token: string; readonly to: string | null } | null;
  /**
   * The name of a database (null: the one of OM_DATABASE_URL) in which a move left rows of the tenant that are to be
   * deleted, and the token of that move; null if there are none.
   */
  readonly remains: { readonly database: string | null; readonly token: string } | null;
}

interface Row {
  readonly database: string | null;
  readonly number: number;
  readonly moving: string | null;
  readonly moving_to: string | null;
  readonly remains_in: string | null;
  readonly remains_of: string | null;
}

const named = (name: string | null): string => name ?? HOME_DATABASE;
const unnamed = (name: string | null): string | null => (name === HOME_DATABASE ? null : name);

/** Reads the placement of a tenant; for one without a record it is `UNPLACED`, and there is no move. */
export function readPlacement(file: ControlFile, tenant: string): PlacementRecord {
  const row = file
    .prepare<[string], Row>(
      'SELECT database, number, moving, moving_to, remains_in, remains_of FROM placements WHERE tenant_id = ?',
    )
    .get(tenant);
  if (row === undefined) return { ...UNPLACED, move: null, remains: null };
  const { database, number, moving, moving_to: to, remains_in: left, remains_of: token } = row;
  return {
    database,
    number,
    move: moving === null ? null : { token: moving.replace(ABANDONED, ''), to: unnamed(to) },
    remains: left === null ? null : { database: unnamed(left), token: token! },
  };
}

/**
 * Places a new tenant. Call it inside a write that raises the generation counter.
 * @param database name of a further database; null for the one of OM_DATABASE_URL
 * @returns the number of the placement. It is greater than each one that an erased tenant of this id had, as every
 *   change of tenants and every move raises the counter, so that no process takes the new tenant for the old one
 */
export function placeNewTenant(file: ControlFile, tenant: string, database: string | null): number {
  const number = file.statements.readGeneration.get()!.generation + 1;
  file.prepare('INSERT INTO placements (tenant_id, database, number) VALUES (?, ?, ?)').run(tenant, database, number);
  return number;
}

/**
 * Takes the lock of moves of a tenant on a connection of its own, so that it does not end with another one's session.
 * @param database address of the database of OM_DATABASE_URL
 * @returns an object whose `close` gives the lock back, which the caller must call; undefined if another process has it
 */
export function lockMoves(database: string, tenant: string): { close(): void } | undefined {
  const connection = openBlockingConnection(database);
  // The same key as LOCK_KEY: here the present schema is the tenants' one, and there the control schema.
  const take = `SELECT pg_try_advisory_lock(${MOVE_LOCK}, hashtext(current_schema() || '_control ' || $1))`;
  try {
    connection.query(KEEPALIVE);
    if (connection.query(take, [tenant]).rows[0]![0] === 1) return { close: connection.close };
  } catch (error) {
    connection.close();
    throw error;
  }
  connection.close();
  return undefined;
}

/**
 * Takes the lock of moves of a tenant until the end of the open transaction, or if none is open, of this statement.
 * Returns false if another process has it.
 */
function tryLockMoves(file: ControlFile, tenant: string): boolean {
  const take = `SELECT pg_try_advisory_xact_lock(${LOCK_KEY}) AS free`;
  return file.prepare<[string], { free: number }>(take).get(tenant)!.free === 1;
}

/** Notes that a move begins. The caller holds the lock of moves, and no earlier move is noted. */
export function beginMove(file: ControlFile, tenant: string, move: { token: string; to: string | null }): void {
  file.write(() => {
    file
      .prepare(
        `INSERT INTO placements (tenant_id, number, moving, moving_to) VALUES (?, 0, ?, ?)
         ON CONFLICT (tenant_id) DO UPDATE SET moving = excluded.moving, moving_to = excluded.moving_to`,
      )
      .run(tenant, move.token, named(move.to));
    file.statements.bumpGeneration.run();
  });
}

/**
 * Changes the placement of a tenant to the target of its move, and notes that the source has rows to delete. Call it
 * inside a write, which decides whether the move came about.
 * @throws EngineError `conflict` if the move was given up meanwhile, since its lock was lost
 */
export function completeMove(file: ControlFile, tenant: string, token: string): void {
  const { changes } = file
    .prepare(
      `UPDATE placements SET number = number + 1, moving = NULL, moving_to = NULL,
         remains_in = coalesce(database, '${HOME_DATABASE}'), remains_of = moving,
         database = CASE WHEN moving_to = '${HOME_DATABASE}' THEN NULL ELSE moving_to END
       WHERE tenant_id = ? AND moving = ?`,
    )
    .run(tenant, token);
  if (changes === 0)
    throw new EngineError('conflict', 'the move was given up, as its connection was lost: run the command again');
  file.statements.bumpGeneration.run();
}

/**
 * Gives up a move that did not come about, and notes that its target may have rows to delete. From then on it cannot
 * come about; the caller clears its mark at the source and then calls `endAbandoned`.
 * @param options.holdsLock whether the caller holds the lock of moves; otherwise nothing is written while another
 *   process has it
 * @returns the placement as it was, with the move that was given up; undefined if there is no such move or it goes on
 */
export function abandonMove(
  file: ControlFile,
  tenant: string,
  { holdsLock }: { readonly holdsLock: boolean },
): PlacementRecord | undefined {
  // Asked before the write too, which all writers of the control database wait for.
  if (!holdsLock && !tryLockMoves(file, tenant)) return undefined;
  return file.write(() => {
    if (!holdsLock && !tryLockMoves(file, tenant)) return undefined;
    const placement = readPlacement(file, tenant);
    if (placement.move === null) return undefined;
    file
      .prepare(`UPDATE placements SET moving = ?, remains_in = moving_to, remains_of = ? WHERE tenant_id = ?`)
      .run(`${ABANDONED}${placement.move.token}`, placement.move.token, tenant);
    return placement;
  });
}

/**
 * Removes the record of a move that `abandonMove` gave up. Call it after the mark at the source was cleared.
 * @param token token of that move; nothing changes if another move is recorded
 */
export function endAbandoned(file: ControlFile, tenant: string, token: string): void {
  file.write(() => {
    file
      .prepare('UPDATE placements SET moving = NULL, moving_to = NULL WHERE tenant_id = ? AND moving = ?')
      .run(tenant, `${ABANDONED}${token}`);
    file.statements.bumpGeneration.run();
  });
}

/**
 * Notes that the rows which a move has left are deleted.
 * @param token token of that move; nothing changes if rows of another move are noted
 */
export function forgetRemains(file: ControlFile, tenant: string, token: string): void {
  file.write(() =>
    file
      .prepare('UPDATE placements SET remains_in = NULL, remains_of = NULL WHERE tenant_id = ? AND remains_of = ?')
      .run(tenant, token),
  );
}

/** Lists the tenants that are in another database than that of OM_DATABASE_URL, with the names of the databases. */
export function listPlacedElsewhere(file: ControlFile): { readonly tenant: string; readonly database: string }[] {
  return file
    .prepare<[], { tenant: string; database: string }>(
      'SELECT tenant_id AS tenant, database FROM placements WHERE database IS NOT NULL ORDER BY tenant_id',
    )
    .all();
}

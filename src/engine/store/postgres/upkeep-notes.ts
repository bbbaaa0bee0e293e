/**
 * Notes of when tenants need upkeep next, in their rows of the table `tenants`. A note is made at a state of the tenant
 * and holds as long as nothing is written, so a worker reads with one statement which tenants of a database have
 * anything due, and opens no others. Making a note is no write of the tenant: it does not raise `writes`.
 */

import { hold, type TenantPlace } from './tenant-database.ts';

/** A tenant that may need upkeep, as it was when the statement read it. */
export interface DueTenant {
  /** Number of the tenant in its database. */
  readonly tenant: number;
  /** The tenant's counter of writes. */
  readonly writes: number;
  /**
   * Times (Unix ms) by the name of a schedule until which it has nothing to do, as JSON, from the last note; null if
   * there is no note, if something was written since, if the note was made by a worker with other settings, or if it is
   * from the future.
   */
  readonly rests: string | null;
}

/** A note that a tenant needs no upkeep for some time. */
interface UpkeepNote {
  readonly tenant: number;
  /** Counter of writes of the state that was looked at. A later write ends the note. */
  readonly writes: number;
  /** Time at which the tenant's schedules were looked at, Unix ms. */
  readonly at: number;
  /** Time from which on something is due if nothing is written before, Unix ms. */
  readonly dueAt: number;
  readonly rests: string;
}

/** Reads and makes the notes of one database. */
export interface UpkeepNotes {
  /** Lists the tenants for which no note says that nothing is due at `now` (Unix ms), by id. */
  listDue(now: number): ReadonlyMap<string, DueTenant>;
  /** Lists the ids of the tenants that were written to since their last note, or have none. */
  listChanged(): ReadonlySet<string>;
  /** Makes a note, unless the tenant was written to since, or moves to another database. */
  put(note: UpkeepNote): void;
  close(): void;
}

/**
 * SQL condition that a tenant's note still holds: for its present state, and not of a worker with other settings than
 * `$1`. A note with a time after `$2` was made before the clock was set back, and does not hold.
 */
const IS_OF_NOW = 'looked_writes = writes AND looked_by = $1 AND looked_at <= $2';
const LIST_DUE = `SELECT id, tenant, writes, CASE WHEN ${IS_OF_NOW} THEN rests END
  FROM tenants WHERE (${IS_OF_NOW} AND due_at > $2) IS NOT TRUE`;
const LIST_CHANGED = 'SELECT id FROM tenants WHERE looked_writes IS DISTINCT FROM writes';
const PUT = `UPDATE tenants SET looked_writes = writes, looked_by = $1, looked_at = $2, due_at = $3, rests = $4
  WHERE tenant = $5 AND writes = $6 AND moved_by IS NULL`;

/**
 * Opens the notes of a database. They use the connection of this thread's `worker` stores, which is opened when they
 * are first read.
 * @param settings names the settings on which the notes depend; notes of workers with other settings do not hold
 */
export function openUpkeepNotes(place: Pick<TenantPlace, 'database' | 'name'>, settings: string): UpkeepNotes {
  let held: ReturnType<typeof hold> | undefined;
  const connection = () => (held ??= hold('worker', place)).connection();
  return {
    listDue(now) {
      const { rows } = connection().query(LIST_DUE, [settings, now], 'upkeep-due');
      return new Map(
        rows.map(([id, tenant, writes, rests]) => [
          id as string,
          { tenant: tenant as number, writes: writes as number, rests: rests as string | null },
        ]),
      );
    },
    listChanged() {
      const { rows } = connection().query(LIST_CHANGED, [], 'upkeep-changed');
      return new Set(rows.map(([id]) => id as string));
    },
    put({ tenant, writes, at, dueAt, rests }) {
      connection().query(PUT, [settings, at, dueAt, rests, tenant, writes], 'upkeep-note');
    },
    close: () => held?.release(),
  };
}

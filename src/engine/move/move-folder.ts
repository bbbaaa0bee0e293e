/**
 * Moves tenants with their control data (keys, settings, limits) from a data folder into a PostgreSQL database, or
 * back. The copies are complete and compared before anything at the source changes, except that the words of a file may
 * be indexed anew (`rewriteWords`). Then the source is marked as moved and the target is opened, in this order, so that
 * services never use both. A move that was interrupted is run again.
 * It starts from the beginning, unless the source is already marked as moved to this target: then only the last step is
 * repeated.
 */

import { createHash } from 'node:crypto';
import type { Config } from '../config.ts';
import { DEFAULT_TENANT } from '../control/control-database.ts';
import type { ControlFile } from '../control/control-file.ts';
import {
  controlDigests,
  copyControl,
  listSizeLimits,
  listPresentTenants,
  readControlColumns,
  type ControlColumns,
  type MovedSelection,
} from '../control/moved-control.ts';
import { deleteMark, describeMark, findMark, putMark } from '../control/moved-marks.ts';
import { listPlacedElsewhere } from '../control/placements.ts';
import { EngineError } from '../errors.ts';
import { acquireInstanceLock } from '../store/instance-lock.ts';
import { openMovedTenants } from '../store/postgres/moved-tenant.ts';
import type { MovedColumns } from '../store/postgres/moved-tables.ts';
import { requireEqual } from './copy-tenant.ts';
import { nameOfDatabase, openDatabaseSource, openDatabaseTarget } from './database-place.ts';
import { openFilesSource, openFilesTarget } from './files-place.ts';
import type { MoveSource, MoveTarget } from './places.ts';
import { transferTenant, type ShowProgress } from './transfer-tenant.ts';

export interface MoveOptions {
  /** Settings of the data folder, which is the source or the target. */
  readonly folder: Config;
  /** Address of the PostgreSQL database, `postgres://…`. */
  readonly database: string;
  readonly direction: 'into database' | 'into folder';
  /** Id of the only tenant to move; if it is left out, all tenants are moved. */
  readonly tenant?: string | undefined;
  /** Whether services may still use the source after the move; if false, it is marked as moved. */
  readonly keepsSource: boolean;
  /** Present time, Unix ms. */
  readonly now: number;
  /** Shows a new step with its name and its total amount of work, and returns its progress display. */
  readonly showProgress: ShowProgress;
}

/** Result of a move. */
export interface MoveReport {
  /** Name of the target, for messages: a path, or a database address without its password. */
  readonly to: string;
  readonly tenants: readonly string[];
  readonly memories: number;
  /**
   * Number of test questions that had equal answers in the original and the copy. This and `memories` are 0 if
   * `isResumed`.
   */
  readonly questions: number;
  /** Whether an earlier run had made all copies, so that this run only completed that move. */
  readonly isResumed: boolean;
}

interface Context extends MoveOptions {
  readonly source: MoveSource;
  readonly target: MoveTarget;
  readonly columns: MovedColumns;
  readonly controlColumns: ControlColumns;
}

/**
 * Moves one tenant or all tenants between a data folder and a database.
 * @throws EngineError `conflict` while a service uses the source or the target, if the target already has the tenant
 *   (any data, if all are moved) or a part of another unfinished move, or if the source was moved before; `not_found`
 *   for an unknown tenant or a missing data folder; `invalid` for the default tenant alone; `unavailable` if the
 *   database does not answer; `unprocessable` for data that cannot be moved (such as encrypted data) or different
 *   answers; `internal` if a copy differs. The source is then unchanged, but for words that were indexed anew. Only if
 *   the last step failed may it be marked as moved: then run the same move again
 */
export async function move(options: MoveOptions): Promise<MoveReport> {
  const { folder, tenant } = options;
  if (folder.masterKey !== null) {
    throw new EngineError(
      'unprocessable',
      'encrypted data is not moved: run `cairn decrypt` first, or take the key out of the settings of a new folder',
    );
  }
  if (tenant === DEFAULT_TENANT)
    throw new EngineError('invalid', 'the default tenant is moved with all others only: leave --tenant out');
  const lock = acquireInstanceLock(folder.paths.lock);
  const opened: { close(): void }[] = [{ close: () => lock.release() }];
  try {
    const places = openPlaces(options);
    opened.push(...places.opened);
    return await moveBetween({ ...options, ...places });
  } finally {
    for (const part of opened.reverse()) part.close();
  }
}

/** Opens the source and then the target, so that nothing is made at the target if the source is missing. */
function openPlaces({ folder, database, direction }: MoveOptions) {
  const opened: { close(): void }[] = [];
  const hold = <T extends { close(): void }>(part: T): T => {
    opened.push(part);
    return part;
  };
  try {
    const toDatabase = direction === 'into database';
    const key = keyOf(toDatabase ? folder.paths.defaultTenant : nameOfDatabase(database));
    const source = hold(toDatabase ? openFilesSource(folder) : openDatabaseSource(database, folder));
    const target = hold(toDatabase ? openDatabaseTarget(database, key, folder) : openFilesTarget(folder, key));
    const tenants = openMovedTenants(database);
    const { columns } = tenants;
    tenants.close();
    return { opened, source, target, columns, controlColumns: readControlColumns(source.control) };
  } catch (error) {
    for (const part of opened.reverse()) part.close();
    throw error;
  }
}

const keyOf = (name: string): string => createHash('sha256').update(name).digest('hex').slice(0, 12);

async function moveBetween(context: Context): Promise<MoveReport> {
  const { source, target, tenant = null, keepsSource } = context;
  const what = selectionOf(context);
  const ofAll = tenant === null ? undefined : findMark(source.control, null);
  if (ofAll !== undefined) throw new EngineError('conflict', describeMark(ofAll, 'all data of the source'));
  const mark = findMark(source.control, tenant);
  if (mark !== undefined && (mark.to !== target.name || !target.hasBegun))
    throw new EngineError('conflict', describeMark(mark, tenant === null ? 'the data' : `tenant ${tenant}`));
  requireAtHome(context, what);
  const isResumed = mark !== undefined || target.isComplete;
  const limited = context.direction === 'into database' ? listSizeLimits(source.control, what) : [];
  if (limited.length > 0) {
    throw new EngineError(
      'unprocessable',
      `tenants have a limit max_mb, which is not counted in PostgreSQL: take it off first (${limited.join(', ')})`,
    );
  }
  let [memories, questions] = [0, 0];
  if (!isResumed) {
    const hadBegun = target.hasBegun;
    target.reset();
    if (!hadBegun || tenant !== null || context.direction === 'into database') target.requireRoomFor(tenant);
    for (const id of what.tenants) {
      const done = await transferTenant({ ...context, config: context.folder }, id);
      memories += done.memories;
      questions += done.questions;
    }
  }
  target.finish(what.tenants, (control) => {
    copyAllControl(context, control, what);
    for (const id of what.tenants) deleteMark(control, id); // It was moved away from there before.
    if (!keepsSource) closeSource(source, tenant, { to: target.name, at: context.now });
  });
  return { to: target.name, tenants: what.tenants, memories, questions, isResumed };
}

/** Throws EngineError `unprocessable` for a tenant that is in a further database, where this move does not look. */
function requireAtHome({ direction, source }: Context, { tenants }: MovedSelection): void {
  if (direction === 'into database') return;
  const elsewhere = listPlacedElsewhere(source.control).find(({ tenant }) => tenants.includes(tenant));
  if (elsewhere === undefined) return;
  const { tenant, database } = elsewhere;
  throw new EngineError(
    'unprocessable',
    `tenant ${tenant} is in the database ${database}: run \`cairn tenants move ${tenant} --to home\` first`,
  );
}

/** Lists the tenants that are moved. Throws EngineError `not_found` for one that the source does not have. */
function selectionOf({ source, tenant }: Context): MovedSelection {
  if (tenant === undefined) return { tenants: listPresentTenants(source.control), isWhole: true };
  const isThere = source.control.statements.findTenant.get(tenant) !== undefined;
  if (!isThere) throw new EngineError('not_found', `no tenant ${JSON.stringify(tenant.slice(0, 64))} there`);
  return { tenants: [tenant], isWhole: false };
}

function copyAllControl({ source, controlColumns }: Context, control: ControlFile, what: MovedSelection): void {
  copyControl(source.control, control, controlColumns, what);
  const [one, other] = [source.control, control].map((file) => controlDigests(file, controlColumns, what));
  for (const [table, digest] of one!) requireEqual(table, digest, other!.get(table));
}

/**
 * Marks the source as moved, or only the given tenant of it, so that no service uses it any more.
 * @param tenant id of the tenant; null for all tenants
 */
function closeSource({ control }: MoveSource, tenant: string | null, mark: { to: string; at: number }): void {
  control.write(() => putMark(control, tenant, mark));
}

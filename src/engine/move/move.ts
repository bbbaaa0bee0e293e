/**
 * Moves tenants with their control data from a data folder into a database, or back. The copies are complete and
 * compared before anything at the source changes; then the source is closed and the target opened, in this order, so
 * that never both are open. A move that was broken off is run again: it begins anew, unless the source says that it was
 * closed for this target; then only the end is left to do.
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
import { describeMark, findMark, putMark } from '../control/moved-marks.ts';
import { EngineError } from '../errors.ts';
import { acquireInstanceLock } from '../store/instance-lock.ts';
import { countZeroLabels, requireSameColumns } from '../store/postgres/moved-file.ts';
import { openMovedTenants } from '../store/postgres/moved-tenant.ts';
import type { MovedColumns } from '../store/postgres/moved-tables.ts';
import { findInfo } from '../store/store-info.ts';
import { REBUILDING } from '../tenant-file/open-tenant.ts';
import { compareAnswers } from './compare-answers.ts';
import { compareTenants, copyTenant, countWork, requireEqual } from './copy-tenant.ts';
import { nameOfDatabase, openDatabaseSource, openDatabaseTarget } from './database-place.ts';
import { openFilesSource, openFilesTarget } from './files-place.ts';
import type { MovedTenant, MoveSource, MoveTarget } from './places.ts';

/** Shows how far a part of a move is. */
interface MoveProgress {
  update(done: number, note?: string): void;
  stop(): void;
}

export interface MoveOptions {
  /** Settings of the data folder: the source, or the target. */
  readonly folder: Config;
  /** Address of the database. */
  readonly database: string;
  readonly direction: 'into database' | 'into folder';
  /** The only tenant that is moved; all if it is left out. */
  readonly tenant?: string | undefined;
  /** Whether the source stays open. */
  readonly keepsSource: boolean;
  /** Present time, Unix ms. */
  readonly now: number;
  /** Begins to show a part of the work. */
  readonly showProgress: (label: string, total: number) => MoveProgress;
}

/** What a move did. */
export interface MoveReport {
  /** The place that has the data now, as people are told of it. */
  readonly to: string;
  readonly tenants: readonly string[];
  readonly memories: number;
  /** Questions that had equal answers at both places. */
  readonly questions: number;
  /** Whether the copies of an earlier run only had to be opened. */
  readonly isResumed: boolean;
}

interface Context extends MoveOptions {
  readonly source: MoveSource;
  readonly target: MoveTarget;
  readonly columns: MovedColumns;
  readonly controlColumns: ControlColumns;
}

/**
 * Moves tenants.
 * @throws EngineError `conflict` while a service uses either place, for a target that has the tenant already, and for a
 *   source whose data was moved; `not_found` for an unknown tenant; `unprocessable` for what cannot be moved;
 *   `internal` if a copy differs, which leaves the source as it is
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

/** Opens both places, the source first, so that nothing is made at the target for a source that is missing. */
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
      const done = await moveTenant(context, id);
      memories += done.memories;
      questions += done.questions;
    }
  }
  target.finish(what.tenants, (control) => {
    copyAllControl(context, control, what);
    if (!keepsSource) closeSource(source, tenant, { to: target.name, at: context.now });
  });
  return { to: target.name, tenants: what.tenants, memories, questions, isResumed };
}

/** Lists the tenants that are moved. Throws EngineError `not_found` for one that the source does not have. */
function selectionOf({ source, tenant }: Context): MovedSelection {
  if (tenant === undefined) return { tenants: listPresentTenants(source.control), isWhole: true };
  const isThere = source.control.statements.findTenant.get(tenant) !== undefined;
  if (!isThere) throw new EngineError('not_found', `no tenant ${JSON.stringify(tenant.slice(0, 64))} there`);
  return { tenants: [tenant], isWhole: false };
}

/** Copies one tenant and compares the copy. @returns the number of its memories, and of questions that were asked */
async function moveTenant(
  context: Context,
  id: string,
): Promise<{ readonly memories: number; readonly questions: number }> {
  const from = context.source.open(id);
  if (from === undefined) return { memories: 0, questions: 0 };
  let to: MovedTenant | undefined;
  try {
    requireMovable(from, context.columns);
    to = context.target.make(id);
    copyAndCompare(context, id, from, to);
    const memories = from.rows.count('memories');
    const progress = context.showProgress(`Asking ${id}`, Math.min(memories, 200));
    try {
      const onProgress = (done: number) => progress.update(done, `${done} questions`);
      const { questions, different } = await compareAnswers(from, to, {
        config: context.folder,
        now: context.now,
        onProgress,
      });
      if (different > 0) {
        throw new EngineError('unprocessable', `${different} of ${questions} questions had other answers: not moved`);
      }
      return { memories, questions };
    } finally {
      progress.stop();
    }
  } finally {
    to?.close();
    from.close();
  }
}

/** Throws EngineError `unprocessable` for a tenant that the other engine cannot hold, or whose index is incomplete. */
function requireMovable(from: MovedTenant, columns: MovedColumns): void {
  if (findInfo(from.store, REBUILDING) !== undefined)
    throw new EngineError('unprocessable', 'a rebuild of its index was broken off: run `cairn rebuild-index` first');
  if (!('db' in from.store)) return;
  const file = from.store as Parameters<typeof requireSameColumns>[0];
  requireSameColumns(file, columns);
  const zeros = countZeroLabels(file);
  if (zeros > 0) {
    throw new EngineError(
      'unprocessable',
      `${zeros} memories have U+0000 in their tags or files, which PostgreSQL cannot hold: change them first`,
    );
  }
}

function copyAndCompare({ columns, showProgress }: Context, id: string, from: MovedTenant, to: MovedTenant): void {
  const progress = showProgress(`Moving ${id}`, countWork(from));
  let done = 0;
  const onRows = (rows: number) => progress.update((done += rows));
  try {
    const digests = copyTenant(from, to, { columns, onRows });
    compareTenants(from, to, { columns, digests, onRows });
  } finally {
    progress.stop();
  }
}

function copyAllControl({ source, controlColumns }: Context, control: ControlFile, what: MovedSelection): void {
  copyControl(source.control, control, controlColumns, what);
  const [one, other] = [source.control, control].map((file) => controlDigests(file, controlColumns, what));
  for (const [table, digest] of one!) requireEqual(table, digest, other!.get(table));
}

/** Marks the source as moved; the commit waits for the disk. */
function closeSource({ control }: MoveSource, tenant: string | null, mark: { to: string; at: number }): void {
  control.write(() => putMark(control, tenant, mark));
}

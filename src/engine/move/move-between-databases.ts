/**
 * Moves one tenant from one database to another while services run (`cairn tenants move`). Writes of the tenant are
 * refused meanwhile, and reads go on at the source. The control database decides: one statement there (`completeMove`)
 * changes the placement. Before it the tenant is at the source, and after it at the target, whenever the command is
 * killed. Nothing is written at the source after that statement, because the row of the tenant there was marked before;
 * a mark without the statement is taken off by the next process that wants to use the tenant (`giveUpMove`).
 */

import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { HOME_DATABASE, type Config } from '../config.ts';
import { DEFAULT_TENANT } from '../control/control-database.ts';
import type { ControlFile } from '../control/control-file.ts';
import { openPostgresControl } from '../control/open-postgres-control.ts';
import { openServiceAudit } from '../control/open-service-audit.ts';
import { addressOf } from '../control/place-of.ts';
import { giveUpMove, unknownDatabase } from '../control/place-tenants.ts';
import {
  beginMove,
  completeMove,
  forgetRemains,
  lockMoves,
  readPlacement,
  type PlacementRecord,
} from '../control/placements.ts';
import { EngineError } from '../errors.ts';
import { failpoint } from '../failpoint.ts';
import { systemClock } from '../ports.ts';
import { clearMark, deleteRemains, freezeTenant, nameArrived } from '../store/postgres/move-steps.ts';
import { movingName, openMovedTenants } from '../store/postgres/moved-tenant.ts';
import { claimDatabase, placeIdOf } from '../store/postgres/placed-tenant.ts';
import { openTenantOf } from './database-place.ts';
import { transferTenant, type ShowProgress } from './transfer-tenant.ts';

export interface TenantMoveOptions {
  readonly config: Config;
  /** Id of the tenant. */
  readonly tenant: string;
  /** Name of the target: a database of OM_DATABASES, or `home` for the one of OM_DATABASE_URL. */
  readonly to: string;
  /** Present time, Unix ms. */
  readonly now: number;
  readonly showProgress: ShowProgress;
  /** Time between the move and the deletion of the rows at the source (ms); `GRACE_MS` by default. */
  readonly graceMs?: number;
  /** Longest wait for writes that have begun before the move (ms); that of `freezeTenant` by default. */
  readonly freezeMs?: number;
}

/** Result of a move between databases. */
export interface TenantMoveReport {
  /** Names of source and target; equal if the tenant was there already. */
  readonly from: string;
  readonly to: string;
  readonly memories: number;
  /**
   * Number of test questions that had equal answers in the original and the copy. This and `memories` are 0 if this run
   * did not copy the tenant, or if it moved it but the answer to the statement that changed the placement was lost.
   */
  readonly questions: number;
  /** Whether an earlier run had moved the tenant, so that this one only deleted the rows that it had left. */
  readonly isResumed: boolean;
}

/**
 * Default time for which the rows stay at the source after the move (ms). A process may believe the old placement for
 * as long as the control database does not answer it, at most 5 s, and reads with it.
 */
const GRACE_MS = 6_000;
/**
 * Greatest number of attempts to take the lock of moves, with a pause between two (ms). A process that was killed may
 * hold the lock for a moment more.
 */
const LOCK_ATTEMPTS = 30;
const LOCK_PAUSE_MS = 100;

interface Context extends TenantMoveOptions {
  readonly control: ControlFile;
  /** Name of the target in the table of placements; null for the database of OM_DATABASE_URL. */
  readonly target: string | null;
}

/**
 * Moves one tenant to another database, waits for `graceMs`, and deletes the rows at the source. If an earlier run was
 * broken off, what it left is removed first.
 * @throws EngineError `invalid` without OM_DATABASE_URL, for an unknown database, and for the default tenant;
 *   `not_found` for an unknown tenant; `conflict` while another command moves it, if the target belongs to another
 *   service, or if the move had to be given up; `unavailable` if a database does not answer; `unprocessable` if the
 *   tenant cannot be moved or answers differ; `internal` if the copy differs. The tenant then is at the source; only
 *   after `unavailable` it may be at the target already: run the command again
 */
export async function moveTenant(options: TenantMoveOptions): Promise<TenantMoveReport> {
  const { config, tenant, to } = options;
  const home = config.OM_DATABASE_URL;
  if (home === undefined)
    throw new EngineError('invalid', 'tenants are moved between the databases of OM_DATABASE_URL and OM_DATABASES');
  if (tenant === DEFAULT_TENANT)
    throw new EngineError('invalid', 'the default tenant stays in the database of OM_DATABASE_URL');
  const target = to === HOME_DATABASE ? null : to;
  if (addressOf(config, target) === undefined) throw unknownDatabase(config, to);
  const control = openPostgresControl(home);
  try {
    if (control.statements.findTenant.get(tenant) === undefined)
      throw new EngineError('not_found', `no tenant ${JSON.stringify(tenant.slice(0, 64))}`);
    const lock = await waitForLock(home, tenant);
    try {
      return await moveUnderLock({ ...options, control, target });
    } finally {
      lock.close();
    }
  } finally {
    control.close();
  }
}

async function waitForLock(home: string, tenant: string): Promise<{ close(): void }> {
  for (let attempt = 1; attempt <= LOCK_ATTEMPTS; attempt += 1) {
    const lock = lockMoves(home, tenant);
    if (lock !== undefined) return lock;
    await pause(LOCK_PAUSE_MS);
  }
  throw new EngineError('conflict', `another command moves tenant ${tenant} just now: wait for its end`);
}

async function moveUnderLock(context: Context): Promise<TenantMoveReport> {
  const { config, control, tenant, target, to } = context;
  giveUpMove(control, config, tenant, { holdsLock: true });
  const placement = readPlacement(control, tenant);
  const from = placement.database ?? HOME_DATABASE;
  cleanUp(context, placement);
  if (placement.database === target)
    return { from, to, memories: 0, questions: 0, isResumed: placement.remains !== null };
  requireSeparate(context, placement);
  const token = randomBytes(8).toString('hex');
  beginMove(control, tenant, { token, to: target });
  await failpoint('after-move-begins');
  const done = await copyAndComplete(context, placement, token);
  await failpoint('after-move-completes');
  await waitForAll(context);
  cleanUp(context, readPlacement(control, tenant));
  await failpoint('after-move-cleans');
  return { from, to, ...done, isResumed: false };
}

/**
 * Marks the further databases among source and target as this service's (`claimDatabase`, whose errors it throws).
 * Throws EngineError `conflict` if source and target are the same database.
 */
function requireSeparate({ config, target }: Context, { database: from }: PlacementRecord): void {
  const homeId = placeIdOf(config.OM_DATABASE_URL!);
  const idOf = (name: string | null) =>
    name === null ? homeId : claimDatabase({ database: knownAddress(config, name), name }, homeId);
  if (idOf(from) === idOf(target))
    throw new EngineError('conflict', `${from ?? HOME_DATABASE} and ${target ?? HOME_DATABASE} are one database`);
}

/**
 * Copies the tenant, compares the copy, and changes the placement. If anything fails before that, the move is given up,
 * and the error is thrown.
 */
async function copyAndComplete(
  context: Context,
  placement: PlacementRecord,
  token: string,
): Promise<{ readonly memories: number; readonly questions: number }> {
  const { config, control, tenant, target, to } = context;
  const from = placement.database ?? HOME_DATABASE;
  const audit = openServiceAudit(control, config, systemClock);
  let frozen: ReturnType<typeof freezeTenant> | undefined;
  try {
    const placed = { id: tenant, placement: placement.number };
    frozen = freezeTenant(knownAddress(config, placement.database), placed, context.freezeMs);
    const done = await copy(context, placement, token);
    await failpoint('after-move-copies');
    nameArrived(knownAddress(config, target), tenant, { token, placement: placement.number + 1 });
    await failpoint('after-move-names');
    if (!frozen.mark(token))
      throw new EngineError('conflict', 'the tenant was written to, as a connection was lost: run the command again');
    await failpoint('after-move-marks');
    control.write(() => {
      completeMove(control, tenant, token);
      audit.append('tenant.move', { tenant, from, to });
    });
    return done;
  } catch (error) {
    // The commit may have come about although its answer was lost.
    const { number, database } = readPlacement(control, tenant);
    if (database === target && number > placement.number) return { memories: 0, questions: 0 };
    frozen?.close();
    frozen = undefined;
    tryCleanUp(context, placement, token);
    throw error;
  } finally {
    frozen?.close();
  }
}

async function copy(context: Context, placement: PlacementRecord, token: string) {
  const { config, tenant, target, now, showProgress } = context;
  const source = knownAddress(config, placement.database);
  const database = knownAddress(config, target);
  const sources = openMovedTenants(source);
  const targets = openMovedTenants(database);
  try {
    return await transferTenant(
      {
        config,
        source: { open: (id) => openTenantOf({ database: source, config, tenants: sources }, id, id) },
        target: {
          make(id) {
            const name = movingName(token, id);
            targets.make(name);
            return openTenantOf({ database, config, tenants: targets }, id, name);
          },
        },
        columns: targets.columns,
        now,
        showProgress,
      },
      tenant,
    );
  } finally {
    targets.close();
    sources.close();
  }
}

/** Deletes the rows that a move has left, if there are any. */
function cleanUp({ config, control, tenant }: Context, { database, remains }: PlacementRecord): void {
  if (remains === null) return;
  const { token } = remains;
  deleteRemains(knownAddress(config, remains.database), knownAddress(config, database), { id: tenant, token });
  forgetRemains(control, tenant, token);
}

/**
 * Gives up the move that is under way, if another process has not done so, and takes its mark off the source. What
 * fails here is left to the next run, and to processes that use the tenant.
 * @param before the placement from which the tenant was to be moved
 */
function tryCleanUp(context: Context, before: PlacementRecord, token: string): void {
  const { config, control, tenant } = context;
  try {
    giveUpMove(control, config, tenant, { holdsLock: true });
    const placement = readPlacement(control, tenant);
    // A process that gave it up while this one still copied found no mark, and has noted that there is none.
    if (placement.number === before.number) clearMark(knownAddress(config, before.database), { id: tenant, token });
    cleanUp(context, placement);
  } catch {
    // The error that broke off the move says more, and is thrown.
  }
}

/** Waits until every process knows the new placement, so that none reads at the old one any more. */
async function waitForAll({ tenant, showProgress, graceMs = GRACE_MS }: Context): Promise<void> {
  const seconds = Math.ceil(graceMs / 1_000);
  const progress = showProgress(`Waiting ${tenant}`, seconds);
  for (let second = 1; second <= seconds; second += 1) {
    await pause(graceMs / seconds);
    progress.update(second, 'until every process knows the new place');
  }
  progress.stop();
}

/** Returns the address of a database. Throws EngineError `unavailable` if the settings do not name it. */
function knownAddress(config: Config, name: string | null): string {
  const address = addressOf(config, name);
  if (address !== undefined) return address;
  throw new EngineError('unavailable', `the tenant has rows in the database ${name}, which OM_DATABASES does not name`);
}

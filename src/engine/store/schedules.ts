/**
 * Stores the last run of each schedule (periodic maintenance task), and the process that runs it at present. As both
 * are in the file, only one process runs a schedule at a time, and an interrupted run is still due. The signals to
 * check schedules may be lost, doubled or late without harm.
 */

import { deleteInfo, findInfo, prefetchInfo, putInfo } from './store-info.ts';
import type { Store } from './open-store.ts';

/** A periodic maintenance task: it is due again when its period has passed. */
export interface Schedule {
  readonly name: string;
  /** Period from the beginning of a completed run until the next run is due, in ms. */
  readonly everyMs: number;
  /**
   * Whether a schedule that never ran is due only when one period has passed since it was first checked; otherwise it
   * is due at once.
   */
  readonly waitsAPeriod: boolean;
  /**
   * Whether a failed run is repeated only after a pause: a minute, doubled by each further failure, at most an hour or
   * the period. Otherwise it is due again at once.
   */
  readonly backsOff?: boolean;
}

/** A process's claim on a schedule (periodic task). It expires unless it is renewed within `leaseMs` (ms). */
export interface ScheduleClaim {
  /** Name of the schedule. */
  readonly name: string;
  /** Name of the process, which no other process has. */
  readonly owner: string;
  /** Time of the claim or of its renewal, Unix ms. */
  readonly now: number;
  readonly leaseMs: number;
}

/**
 * Tells whether `claimSchedule` would write anything: the schedule is due, nobody has claimed it, and it is not in a
 * pause after failures. It only reads, so it takes no write lock.
 */
export function mayBeClaimed(store: Store, schedule: Schedule, times: Times): boolean {
  const { name, everyMs } = schedule;
  const last = lastRun(store, name);
  // A clock that was set back must not hold up a schedule until it catches up.
  const isDue = last === undefined || times.now - last >= everyMs || last > times.now;
  return isDue && !isClaimed(store, name, times) && !isResting(store, schedule, times);
}

/**
 * Returns the time (Unix ms) from which on `mayBeClaimed` is true if nothing is written before; `times.now` or earlier
 * if it is true already.
 */
export function claimableFrom(store: Store, schedule: Schedule, times: Times): number {
  const { name, everyMs } = schedule;
  const last = lastRun(store, name);
  const dueAt = last === undefined || last > times.now ? times.now : last + everyMs;
  const claimedUntil = isClaimed(store, name, times) ? findClaim(store, name)!.until : 0;
  return Math.max(dueAt, claimedUntil, restsUntil(store, schedule, times));
}

/** Prefetches what `mayBeClaimed` and `claimableFrom` read of schedules in this transaction. */
export function prefetchSchedules(store: Store, schedules: readonly Schedule[]): void {
  const keys = schedules.flatMap(({ name, backsOff = false }) => [
    ...[lastKey(name), claimKey(name)],
    ...(backsOff ? [failedKey(name)] : []),
  ]);
  prefetchInfo(store, keys);
}

/**
 * Claims a schedule if `mayBeClaimed` is true. For a schedule that `waitsAPeriod` and never ran, it only stores the
 * time of this first check. Call inside a write.
 * @returns whether the claim succeeded, so that the caller must run the schedule
 */
export function claimSchedule(store: Store, schedule: Schedule, claim: ScheduleClaim): boolean {
  const { name, now } = claim;
  prefetchSchedules(store, [schedule]);
  if (!mayBeClaimed(store, schedule, claim)) return false;
  if (schedule.waitsAPeriod && lastRun(store, name) === undefined) {
    putInfo(store, lastKey(name), String(now));
    return false;
  }
  putClaim(store, claim);
  return true;
}

/**
 * Renews a claim at `claim.now` (Unix ms), unless another process has taken it over or it was given up. Call inside a
 * write.
 * @returns whether the claim is still the caller's
 */
export function renewSchedule(store: Store, claim: ScheduleClaim): boolean {
  if (findClaim(store, claim.name)?.owner !== claim.owner) return false;
  putClaim(store, claim);
  return true;
}

/**
 * Gives up a claim, unless another process has taken it over. Call inside a write.
 * @param ranAt time at which the completed run began, Unix ms, which is stored as the last run, while noted failures
 *   are deleted; left out after an interrupted run, which stays due
 */
export function releaseSchedule(
  store: Store,
  { name, owner, ranAt }: Pick<ScheduleClaim, 'name' | 'owner'> & { readonly ranAt?: number | undefined },
): void {
  if (findClaim(store, name)?.owner !== owner) return;
  deleteInfo(store, claimKey(name));
  if (ranAt === undefined) return;
  putInfo(store, lastKey(name), String(ranAt));
  deleteInfo(store, failedKey(name));
}

/** Stores that a run failed, so that a schedule that `backsOff` pauses. Call inside a write. */
export function noteFailure(store: Store, { name, now }: Pick<ScheduleClaim, 'name' | 'now'>): void {
  putInfo(store, failedKey(name), `${now} ${(findFailure(store, name)?.times ?? 0) + 1}`);
}

/** Deletes the claims on all schedules. Call inside a write, and only if no process can be running one of them. */
export function forgetScheduleClaims(store: Store): void {
  store.prepare(`DELETE FROM store_info WHERE substr(key, 1, 6) = 'claim_'`).run();
}

/**
 * Lists the times (Unix ms) at which these schedules began their last completed run; for a schedule that `waitsAPeriod`
 * and never ran, the time of its first check. A schedule without such a time is left out.
 */
export function listLastRuns(store: Store, names: readonly string[]): [name: string, at: number][] {
  return names.flatMap((name) => {
    const at = lastRun(store, name);
    return at === undefined ? [] : [[name, at] as [string, number]];
  });
}

/** A schedule that may be requested. One that `waitsAPeriod` may not: without a last run it waits for a period. */
export type RequestedSchedule = 'backup';

/**
 * Makes a schedule due at once, even in a pause after failures, by deleting its last run and its failures. Call inside
 * a write.
 * @returns false, without writing anything, while a process runs it
 */
export function requestRun(store: Store, name: RequestedSchedule, times: Times): boolean {
  if (isClaimed(store, name, times)) return false;
  deleteInfo(store, lastKey(name));
  deleteInfo(store, failedKey(name));
  return true;
}

/**
 * Reads the state of a schedule. Times are Unix ms; null stands for a time that is not known.
 * @returns `lastRunAt`: beginning of the last completed run, or the first check; `isRunning`; `isDue`; `failures`:
 *   number of failed runs since; `failedAt`: time of the latest of them
 */
export function scheduleState(store: Store, schedule: Schedule, times: Times) {
  const { name } = schedule;
  const failure = findFailure(store, name);
  return {
    lastRunAt: lastRun(store, name) ?? null,
    isRunning: isClaimed(store, name, times),
    isDue: mayBeClaimed(store, schedule, times),
    failures: failure?.times ?? 0,
    failedAt: failure?.at ?? null,
  };
}

interface Times {
  readonly now: number;
  readonly leaseMs: number;
}

function lastRun(store: Store, name: string): number | undefined {
  const last = Number(findInfo(store, lastKey(name)) ?? Number.NaN);
  return Number.isNaN(last) ? undefined : last;
}

function isClaimed(store: Store, name: string, { now, leaseMs }: Times): boolean {
  const until = findClaim(store, name)?.until ?? 0;
  // A claim that ends further ahead was written before the clock was set back.
  return until > now && until <= now + 2 * leaseMs;
}

const FIRST_REST_MS = 60_000;
const LONGEST_REST_MS = 3_600_000;

/**
 * Tells whether a schedule is in a pause after failures. A failure with a time after `now` was stored before the clock
 * was set back, and does not count.
 */
function isResting(store: Store, schedule: Schedule, times: Times): boolean {
  return times.now < restsUntil(store, schedule, times);
}

/** Returns the end of a schedule's pause after failures, Unix ms; 0 if it is in none. */
function restsUntil(store: Store, { name, everyMs, backsOff = false }: Schedule, { now }: Times): number {
  const failure = backsOff ? findFailure(store, name) : undefined;
  if (failure === undefined || failure.at > now) return 0;
  return failure.at + Math.min(FIRST_REST_MS * 2 ** (failure.times - 1), LONGEST_REST_MS, everyMs);
}

function findFailure(store: Store, name: string): { at: number; times: number } | undefined {
  const [at = Number.NaN, times = Number.NaN] = findInfo(store, failedKey(name))?.split(' ').map(Number) ?? [];
  return Number.isSafeInteger(at) && times >= 1 ? { at, times } : undefined;
}

function findClaim(store: Store, name: string): { owner: string; until: number } | undefined {
  const [until, owner] = findInfo(store, claimKey(name))?.split(' ') ?? [];
  return until === undefined || owner === undefined ? undefined : { owner, until: Number(until) };
}

function putClaim(store: Store, { name, owner, now, leaseMs }: ScheduleClaim): void {
  putInfo(store, claimKey(name), `${now + leaseMs} ${owner}`);
}

const lastKey = (name: string) => `last_${name}`;
const claimKey = (name: string) => `claim_${name}`;
const failedKey = (name: string) => `failed_${name}`;

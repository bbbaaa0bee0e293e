import { deleteInfo, findInfo, putInfo } from './store-info.ts';
import type { Store } from './open-store.ts';

/**
 * When each schedule last ran in this file, and who runs it now. Kept in the file, so that it is one at a time whoever asks, that what was
 * broken off is still due, and that whatever tells the time to look may be lost, doubled or late.
 */

export interface Schedule {
  readonly name: string;
  readonly everyMs: number;
  /** Where it never ran it has nothing to do yet: its first period begins with the first look. */
  readonly waitsAPeriod: boolean;
}

/** Whoever runs a schedule claims it, and says again before `leaseMs` are over that it is still at it. */
export interface ScheduleClaim {
  readonly name: string;
  readonly owner: string;
  readonly now: number;
  readonly leaseMs: number;
}

/** Whether `claimSchedule` would write anything: a look that takes no lock. */
export function mayBeClaimed(store: Store, { name, everyMs }: Schedule, times: Times): boolean {
  const last = lastRun(store, name);
  // A clock that was set back must not hold up a schedule until it catches up.
  const isDue = last === undefined || times.now - last >= everyMs || last > times.now;
  return isDue && !isClaimed(store, name, times);
}

/** @returns whether it is the caller's to run. Call inside a write. */
export function claimSchedule(store: Store, schedule: Schedule, claim: ScheduleClaim): boolean {
  const { name, now } = claim;
  if (!mayBeClaimed(store, schedule, claim)) return false;
  if (schedule.waitsAPeriod && lastRun(store, name) === undefined) {
    putInfo(store, lastKey(name), String(now));
    return false;
  }
  putClaim(store, claim);
  return true;
}

export function renewSchedule(store: Store, claim: ScheduleClaim): void {
  if (findClaim(store, claim.name)?.owner === claim.owner) putClaim(store, claim);
}

/** Gives up the claim, if nobody took it over. `ranAt` is when the run began that has come to its end. Call inside a write. */
export function releaseSchedule(
  store: Store,
  { name, owner, ranAt }: Pick<ScheduleClaim, 'name' | 'owner'> & { readonly ranAt?: number | undefined },
): void {
  if (findClaim(store, name)?.owner !== owner) return;
  deleteInfo(store, claimKey(name));
  if (ranAt !== undefined) putInfo(store, lastKey(name), String(ranAt));
}

/** Where whoever made the claims is known to be dead. Call inside a write. */
export function forgetScheduleClaims(store: Store): void {
  store.prepare(`DELETE FROM store_info WHERE key GLOB 'claim_*'`).run();
}

/** When each of these schedules last began a run that came to its end here, or was first looked at (Unix ms). */
export function listLastRuns(store: Store, names: readonly string[]): [name: string, at: number][] {
  return names.flatMap((name) => {
    const at = lastRun(store, name);
    return at === undefined ? [] : [[name, at] as [string, number]];
  });
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
  // What lies further ahead was written before the clock was set back.
  return until > now && until <= now + 2 * leaseMs;
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

import type { Metrics } from '../metrics.ts';
import type { Logger } from '../ports.ts';
import type { ReadCommandName } from './commands.ts';
import { mayReadFromStandby, type StandbyReport, type StandbyUse } from './standby-reads.ts';

/**
 * Time after which a standby that did not answer is tried again, by a single read (ms). Until then, all reads go to the
 * primary at once.
 */
const RETRY_MS = 5_000;
/**
 * Longest time that a read waits for the standby to receive what the read must see (ms). Log arrives within
 * milliseconds as a rule. The primary can answer at any time, and a read that waits keeps a thread.
 */
const WAIT_MS = 500;
/** Time after such a wait was in vain for which later reads go to the primary at once if the standby is behind (ms). */
const BEHIND_MS = 5_000;
/** Shortest time between two warnings that the standby is behind (ms). */
const WARN_EVERY_MS = 60_000;

/** What a process knows of its standby, and what reads of it must see. */
export interface StandbyState {
  /** Whether the standby is read: false while it does not answer or is not to be read. */
  readonly isUp: boolean;
  /**
   * Says how the read that is sent now uses the standby; null if it reads from the primary. Call it once for each read,
   * as only one read in 5 s tries a standby that is down.
   */
  use(path: string, name: ReadCommandName): StandbyUse | null;
  /** Takes the report of a thread about a read that was to use the standby. */
  note(path: string, name: ReadCommandName, report: StandbyReport): void;
  /** Lets later reads of the tenant at `path` see a state that is at least as new as `position`. */
  raise(path: string, position: number): void;
}

export interface StandbyStateOptions {
  readonly metrics: Metrics;
  readonly logger: Logger;
  /** Why the standby cannot be read at the start; null if it can. */
  readonly problem: string | null;
  /** Whether the standby has the tenant at a path: not one that is in a further database (OM_DATABASES). */
  readonly hasTenant: (path: string) => boolean;
  /** Returns a time in ms that never goes back; `performance.now()` by default. */
  readonly clock?: () => number;
}

/** Creates the state. A standby that cannot be read at the start is tried again, as one that is lost later. */
export function createStandbyState(options: StandbyStateOptions): StandbyState {
  const { metrics, logger, problem, hasTenant, clock = () => performance.now() } = options;
  /** Position that reads of a tenant must see, by path, which is another one for each placement of the tenant. */
  const floors = new Map<string, number>();
  let isUp = true;
  let [retryAt, behindUntil] = [-Infinity, -Infinity];
  let warnedAt = -Infinity;

  function noteDown(reason: string): void {
    retryAt = clock() + RETRY_MS;
    if (isUp) logger.warn({ reason }, 'standby_lost');
    isUp = false;
  }

  function noteUp(): void {
    if (!isUp) logger.info({}, 'standby_back');
    isUp = true;
  }

  function raise(path: string, position: number): void {
    if (position > (floors.get(path) ?? 0)) floors.set(path, position);
  }

  if (problem !== null) noteDown(problem);
  metrics.watchStandby(() => isUp);
  return {
    get isUp() {
      return isUp;
    },
    use(path, name) {
      if (!mayReadFromStandby(name) || !hasTenant(path)) return null;
      if (!isUp) {
        if (clock() < retryAt) {
          metrics.standbyReads.inc({ outcome: 'down' });
          return null;
        }
        // This read tries it, and others only if it has not come back by then.
        retryAt = clock() + RETRY_MS;
      }
      return { floor: floors.get(path) ?? 0, waitMs: clock() < behindUntil ? 0 : WAIT_MS };
    },
    note(path, name, { outcome, reason, position }) {
      metrics.standbyReads.inc({ outcome });
      if (outcome === 'down') noteDown(reason);
      else noteUp();
      if (outcome === 'behind') {
        behindUntil = clock() + BEHIND_MS;
        if (clock() - warnedAt > WARN_EVERY_MS) {
          warnedAt = clock();
          logger.warn({ reason }, 'standby_behind');
        }
      }
      // The slices of an export must not come from a state before its bounds.
      if (name === 'startExport') raise(path, position);
    },
    raise,
  };
}

import { setTimeout as pause } from 'node:timers/promises';
import { v7 as uuidv7 } from 'uuid';
import type { WriteContext } from '../commands/write-context.ts';
import type { Config } from '../config.ts';
import type { Metrics } from '../metrics.ts';
import type { Clock, Logger } from '../ports.ts';
import type { OpenTenant } from '../tenant-file/open-tenant.ts';

/** Pause between two slices (ms), in which other connections write. */
const PAUSE_MS = 1;

/** What the upkeep of a tenant's file uses. */
export interface MaintenanceContext {
  /** Returns the tenant's file on a connection that may write. It is called anew after each await. */
  readonly open: () => OpenTenant;
  readonly config: Config;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly logger: Logger;
  /** Stops the work between two slices when it is aborted: the work then rejects with an AbortError. */
  readonly signal?: AbortSignal | undefined;
  /** Called between two slices; within a schedule it renews the schedule's claim. */
  readonly onPause?: (() => void) | undefined;
  /**
   * Called after a commit that only made a note, on which the work of no schedule depends. So a look does not take it
   * for a change that gives schedules new work.
   */
  readonly onNote?: (() => void) | undefined;
}

/**
 * Pauses between two slices of upkeep, so that others can write and the claim is renewed. Rejects if the work was
 * aborted.
 */
export async function yieldTurn({ signal, onPause }: MaintenanceContext): Promise<void> {
  await pause(PAUSE_MS, undefined, { signal });
  onPause?.();
}

/**
 * Makes the context in which upkeep runs commands that erase; it names no API key as the writer. It opens the tenant's
 * file and fixes `now`, so make a new one after each await.
 */
export function writeContextOf({ open, config, clock }: MaintenanceContext): WriteContext {
  const { store, indexes } = open();
  return { store, indexes, config, now: clock.now(), newId: uuidv7, backlog: { atMost: 0 }, writtenBy: null };
}

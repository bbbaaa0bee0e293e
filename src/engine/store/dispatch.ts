import { JOB_IDS_MOST, type QueuedStep } from '../jobs.ts';
import { IS_DUE } from './jobs.ts';
import type { Store } from './open-store.ts';

/**
 * Which rows of the ledger have been handed to a queue. A mark is no claim: it only keeps a row from being handed out twice while a
 * queue knows it, and lapses, since a queue may forget.
 */

/** How long a row that nobody claimed counts as known to a queue. Handing it out twice costs a look, never a second effect. */
const DISPATCH_LAPSE_MS = 15_000;

/** Rows for one job of a queue. */
export interface Handout {
  readonly seqs: readonly number[];
  /** Unique for as long as the ledger lives: a queue ignores a name that it still knows. */
  readonly name: string;
  readonly bulk: boolean;
  readonly alone: boolean;
}

interface DueRow {
  readonly seq: number;
  readonly id: string;
  readonly priority: number;
  readonly dispatches: number;
}

/**
 * Which handouts of fewer than 64 rows may be taken. Where jobs wait to be picked up anyway, rows gather meanwhile: a few full jobs
 * cost much less than many small ones.
 */
export type PartialHandouts = 'any' | 'interactive' | 'none';

export interface HandoutOptions {
  readonly step: QueuedStep;
  readonly partial: PartialHandouts;
  readonly now: number;
}

/** A mark further ahead than this was made before the clock was set back. */
const IS_UNMARKED = `(dispatched_until <= :now OR dispatched_until > :now + ${2 * DISPATCH_LAPSE_MS})`;

/**
 * Marks rows that are due and known to no queue, and returns them: a suspect by itself, else up to 64 of one priority, interactive
 * before bulk, oldest first. Call inside a write.
 */
export function takeHandout(store: Store, options: HandoutOptions): Handout | undefined {
  const handout = peekHandout(store, options);
  if (handout === undefined) return undefined;
  store
    .prepare(
      `UPDATE jobs SET dispatches = dispatches + 1, dispatched_until = ? WHERE seq IN (SELECT value FROM json_each(?))`,
    )
    .run(options.now + DISPATCH_LAPSE_MS, JSON.stringify(handout.seqs));
  return handout;
}

/** What `takeHandout` would return, and no mark: a look that takes no lock. */
export function peekHandout(store: Store, { step, partial, now }: HandoutOptions): Handout | undefined {
  const [suspect] = listUnmarked(store, { step, suspect: 1, limit: 1, now });
  const rows = suspect === undefined ? listUnmarked(store, { step, suspect: 0, limit: JOB_IDS_MOST, now }) : [suspect];
  const first = rows[0];
  if (first === undefined) return undefined;
  const bulk = first.priority > 0;
  const seqs = rows.filter(({ priority }) => priority === first.priority).map(({ seq }) => seq);
  const mayBePartial = suspect !== undefined || partial === 'any' || (partial === 'interactive' && !bulk);
  if (seqs.length < JOB_IDS_MOST && !mayBePartial) return undefined;
  return { seqs, name: `${first.id}.${first.dispatches + 1}`, bulk, alone: suspect !== undefined };
}

function listUnmarked(
  store: Store,
  parameters: { step: QueuedStep; suspect: 0 | 1; limit: number; now: number },
): DueRow[] {
  return store
    .prepare(
      `SELECT seq, id, priority, dispatches FROM jobs INDEXED BY jobs_due
       WHERE step = :step AND suspect = :suspect AND state IN ('queued', 'failed') AND ${IS_DUE} AND ${IS_UNMARKED}
       ORDER BY priority, run_at, seq LIMIT :limit`,
    )
    .all(parameters) as DueRow[];
}

/** True if a row is due at this step and known to no queue. */
export function hasUnmarked(store: Store, step: QueuedStep, now: number): boolean {
  return (
    store
      .prepare(
        `SELECT 1 FROM jobs INDEXED BY jobs_due
         WHERE step = :step AND state IN ('queued', 'failed') AND ${IS_DUE} AND ${IS_UNMARKED} LIMIT 1`,
      )
      .get({ step, now }) !== undefined
  );
}

/** The queue did not take them, so they are due again at once. */
export function returnHandout(store: Store, seqs: readonly number[]): void {
  store
    .prepare('UPDATE jobs SET dispatched_until = 0 WHERE seq IN (SELECT value FROM json_each(?))')
    .run(JSON.stringify(seqs));
}

/** Forgets every mark: the queues lost all that they knew. @returns how many rows are to be handed out again */
export function forgetHandouts(store: Store): number {
  return store
    .prepare(
      `UPDATE jobs SET dispatched_until = 0 WHERE seq IN (
         SELECT seq FROM jobs INDEXED BY jobs_due WHERE state IN ('queued', 'failed')) AND dispatched_until > 0`,
    )
    .run().changes;
}

import { JOB_IDS_MOST, QUESTIONS_MOST, QUEUED_STEPS, type QueuedStep } from '../jobs.ts';
import { ALL_BULK, bulkDueUntil, hasLapsedLease, IS_DUE, type LeaseTimes } from './jobs.ts';
import { tracesOf } from '../tracing.ts';
import type { Store } from './open-store.ts';

/**
 * Which rows of the ledger have been handed to a queue. A mark is no claim: it only keeps a row from being handed out twice while a
 * queue knows it, and lapses, since a queue may forget.
 */

/** How long a row that nobody claimed counts as known to a queue. Handing it out twice costs a look, never a second effect. */
const DISPATCH_LAPSE_MS = 15_000;

/** A document is minutes of work at worst, so each is a job of its own; a language model takes its time about a question, too. */
function rowsMost(step: QueuedStep): number {
  return step === 'ingest' ? 1 : step === 'reason' ? QUESTIONS_MOST : JOB_IDS_MOST;
}

/** Rows for one job of a queue. */
export interface Handout {
  readonly seqs: readonly number[];
  /** Unique for as long as the ledger lives: a queue ignores a name that it still knows. */
  readonly name: string;
  readonly bulk: boolean;
  readonly alone: boolean;
  /** W3C trace contexts of the rows, each once. */
  readonly traces: readonly string[];
}

interface DueRow {
  readonly seq: number;
  readonly id: string;
  readonly dispatches: number;
  readonly trace: string | null;
}

export interface WantedHandout {
  readonly step: QueuedStep;
  /** Rows of bulk adds, or interactive ones. */
  readonly bulk: boolean;
  /**
   * False takes nothing but full jobs. Where jobs wait to be picked up anyway, rows gather meanwhile: a few full jobs cost much less than
   * many small ones.
   */
  readonly partial: boolean;
}

export interface HandoutOptions extends WantedHandout {
  /** Whether vectors are computed on this machine, so that they wait for documents to be read. */
  readonly embedsHere: boolean;
  readonly now: number;
}

/** There are rows, but too few for a full job. */
export type TooFew = 'too_few';

/** A mark further ahead than this was made before the clock was set back. */
const IS_UNMARKED = `(dispatched_until <= :now OR dispatched_until > :now + ${2 * DISPATCH_LAPSE_MS})`;

/**
 * Marks rows that are due and known to no queue, and returns them: a group of suspects, else up to 64, oldest first. Call inside a write.
 * @returns undefined where there are none
 */
export function takeHandout(store: Store, options: HandoutOptions): Handout | TooFew | undefined {
  const handout = peekHandout(store, options);
  if (handout === undefined || handout === 'too_few') return handout;
  store
    .prepare(
      `UPDATE jobs SET dispatches = dispatches + 1, dispatched_until = ? WHERE seq IN (SELECT value FROM json_each(?))`,
    )
    .run(options.now + DISPATCH_LAPSE_MS, JSON.stringify(handout.seqs));
  return handout;
}

/** What `takeHandout` would return, and no mark: a look that takes no lock. */
export function peekHandout(store: Store, options: HandoutOptions): Handout | TooFew | undefined {
  const { step, bulk, partial, now } = options;
  const priority = bulk ? 1 : 0;
  const together = largestUnmarkedGroup(store, { step, priority, now });
  const alone = together > 0;
  const limit = alone ? Math.min(together, rowsMost(step)) : rowsMost(step);
  const dueUntil = step === 'encode' && bulk && !alone ? bulkDueUntil(store, options) : ALL_BULK;
  const rows = listUnmarked(store, { step, suspect: together, priority, dueUntil, limit, now });
  const first = rows[0];
  if (first === undefined) return undefined;
  if (rows.length < limit && !alone && !partial) return 'too_few';
  const name = `${first.id}.${first.dispatches + 1}`;
  return { seqs: rows.map(({ seq }) => seq), name, bulk, alone, traces: tracesOf(rows) };
}

/** How many suspects may go together, the largest group first; 0 if there are none. */
function largestUnmarkedGroup(store: Store, parameters: { step: QueuedStep; priority: 0 | 1; now: number }): number {
  const row = store
    .prepare(
      `SELECT max(suspect) AS together FROM jobs INDEXED BY jobs_due
       WHERE step = :step AND suspect > 0 AND priority = :priority AND state IN ('queued', 'failed') AND ${IS_DUE}
         AND ${IS_UNMARKED}`,
    )
    .get(parameters) as { together: number | null };
  return row.together ?? 0;
}

function listUnmarked(
  store: Store,
  parameters: { step: QueuedStep; suspect: number; priority: 0 | 1; dueUntil: number; limit: number; now: number },
): DueRow[] {
  return store
    .prepare(
      `SELECT seq, id, dispatches, trace_context AS trace FROM jobs INDEXED BY jobs_due
       WHERE step = :step AND suspect = :suspect AND priority = :priority AND run_at <= :dueUntil
         AND state IN ('queued', 'failed') AND ${IS_DUE} AND ${IS_UNMARKED}
       ORDER BY run_at, seq LIMIT :limit`,
    )
    .all(parameters) as DueRow[];
}

/** What the ledger of a file says at one moment. */
export interface LedgerSight {
  /** Steps at which a row is due and known to no queue. */
  readonly steps: readonly QueuedStep[];
  /** A row is claimed by somebody who fell silent. */
  readonly hasLapsed: boolean;
  /** A row has not ended, so that time alone brings work: a retry falls due, a mark or a lease lapses. */
  readonly isUnfinished: boolean;
}

export function sightLedger(store: Store, times: LeaseTimes): LedgerSight {
  return store.read(() => {
    const hasQueued = store
      .prepare(
        `SELECT 1 FROM jobs INDEXED BY jobs_due WHERE step IN (SELECT value FROM json_each(?)) AND state IN ('queued', 'failed') LIMIT 1`,
      )
      .get(JSON.stringify(QUEUED_STEPS));
    const hasLeased = store.prepare(`SELECT 1 FROM jobs INDEXED BY jobs_leased WHERE state = 'active' LIMIT 1`).get();
    return {
      steps: hasQueued === undefined ? [] : QUEUED_STEPS.filter((step) => hasUnmarked(store, step, times.now)),
      hasLapsed: hasLeased !== undefined && hasLapsedLease(store, times),
      isUnfinished: hasQueued !== undefined || hasLeased !== undefined,
    };
  });
}

function hasUnmarked(store: Store, step: QueuedStep, now: number): boolean {
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

/** True if a row that waits is marked. */
export function hasHandouts(store: Store): boolean {
  return (
    store
      .prepare(
        `SELECT 1 FROM jobs WHERE seq IN (SELECT seq FROM jobs INDEXED BY jobs_due WHERE state IN ('queued', 'failed'))
           AND dispatched_until > 0 LIMIT 1`,
      )
      .get() !== undefined
  );
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

import { IS_DUE, type DocumentClaim } from './jobs.ts';
import type { Store } from './open-store.ts';

/** Most jobs that are looked at in one write. Further ones are due still, and found by the next look. */
const POSTPONED_AT_ONCE = 1_000;
/**
 * Longest time by which a job is postponed (ms). A due time further ahead could not be told from a clock that was set
 * back, and a limit that is raised takes effect after this time at the latest.
 */
const MAX_POSTPONED_MS = 60_000;

/** SQL that joins a job to the generation that it reads. */
const GENERATION = `documents o JOIN document_generations g ON g.generation_no = coalesce(o.next_no, o.live_no)`;

/** Tells whether the document of a claim is a page, which is fetched from a URL. */
export function isPage(store: Store, { documentNo }: DocumentClaim): boolean {
  return (
    store.prepare(`SELECT 1 FROM ${GENERATION} WHERE o.document_no = ? AND g.source = 'url'`).get(documentNo) !==
    undefined
  );
}

/** Counts the pages that workers have claimed, to fetch or to read them. */
export function countClaimedPages(store: Store): number {
  return store
    .prepare(
      `SELECT count(*) FROM jobs j INDEXED BY jobs_of_documents, ${GENERATION}
       WHERE j.kind = 'document' AND j.state = 'active' AND j.step = 'ingest' AND o.document_no = j.document
         AND g.source = 'url'`,
    )
    .pluck()
    .get() as number;
}

/**
 * Postpones due documents of the ledger, at most 1,000, and notes why in those jobs that have not failed. Nothing is
 * counted against them. Suspects are postponed, too. Call inside a write.
 * @param options.pagesOnly true for pages alone, of the first 1,000 documents
 * @param options.ms        time by which the first is postponed (ms); none is postponed by more than a minute
 * @param options.apartMs   time by which each further one waits longer than the one before it (ms)
 * @returns how many were postponed
 */
export function postponeDocuments(
  store: Store,
  options: {
    readonly pagesOnly: boolean;
    readonly ms: number;
    readonly apartMs: number;
    readonly code: string;
    readonly message: string;
    readonly now: number;
  },
): number {
  const { pagesOnly, ...parameters } = options;
  const isWanted = pagesOnly
    ? `EXISTS (SELECT 1 FROM ${GENERATION} WHERE o.document_no = due.document AND g.source = 'url')`
    : 'true';
  return store
    .prepare(
      `WITH due AS MATERIALIZED (
         SELECT seq, document, priority, run_at FROM jobs INDEXED BY jobs_due
         WHERE step = 'ingest' AND state IN ('queued', 'failed') AND ${IS_DUE}
         ORDER BY suspect, priority, run_at, seq LIMIT ${POSTPONED_AT_ONCE}
       ), waiting AS MATERIALIZED (
         SELECT seq, row_number() OVER (ORDER BY priority, run_at, seq) - 1 AS place FROM due
         WHERE ${isWanted}
       )
       UPDATE jobs SET run_at = :now + CAST(min(${MAX_POSTPONED_MS}, max(1, :ms + place * :apartMs)) AS INTEGER),
         dispatched_until = 0, updated_at = :now,
         error_code = iif(state = 'failed', error_code, :code), error = iif(state = 'failed', error, :message)
       FROM waiting WHERE jobs.seq = waiting.seq`,
    )
    .run(parameters).changes;
}

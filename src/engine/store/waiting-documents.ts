import { IS_DUE, type DocumentClaim } from './jobs.ts';
import type { Store } from './open-store.ts';

/** Greatest number of jobs that one write postpones. Further jobs stay due, and the next call finds them. */
const POSTPONED_AT_ONCE = 1_000;
/**
 * Longest time by which a job is postponed (ms). A due time further ahead could not be distinguished from one that was
 * stored before the clock was set back. Also, a raised limit takes effect after this time at the latest.
 */
const MAX_POSTPONED_MS = 60_000;

/**
 * SQL that joins a document to the generation (parsed version) that is being read, or else to the one that queries
 * find.
 */
const GENERATION = `documents o JOIN document_generations g ON g.generation_no = coalesce(o.next_no, o.live_no)`;

/** Tells whether the document of a claimed job is a web page, which is fetched from a URL. */
export function isPage(store: Store, { documentNo }: DocumentClaim): boolean {
  return (
    store.prepare(`SELECT 1 FROM ${GENERATION} WHERE o.document_no = ? AND g.source = 'url'`).get(documentNo) !==
    undefined
  );
}

/** Counts the web pages that workers have claimed, to fetch or to read them. */
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
 * Postpones the due jobs that read documents, at most 1,000, even suspects (jobs that were active when their worker
 * died). It stores the reason in those that are `queued`. It does not count as an attempt. Call inside a write.
 * @param options.pagesOnly whether only web pages among the first 1,000 due jobs are postponed
 * @param options.ms time by which the first job is postponed, in ms; no job is postponed by more than a minute
 * @param options.apartMs time by which each further job is postponed more than the one before it, in ms
 * @returns the number of jobs that were postponed
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

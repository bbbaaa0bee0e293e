import { countParts } from './chunks.ts';
import { selectDue } from './due-jobs.ts';
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

/** SQL conditions on a due job, by the documents that it selects. */
const WHICH = {
  all: 'true',
  pages: `EXISTS (SELECT 1 FROM ${GENERATION} WHERE o.document_no = due.document AND g.source = 'url')`,
  new: 'EXISTS (SELECT 1 FROM documents o WHERE o.document_no = due.document AND o.live_no IS NULL)',
};

const JOB_COLUMNS = 'seq, document, suspect, priority, run_at';

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
 * @param options.which which of the first 1,000 due jobs are postponed: all, those of web pages, or those of documents
 *   of which queries find nothing yet (`new`)
 * @param options.ms time by which the first job is postponed, in ms; no job is postponed by more than a minute
 * @param options.apartMs time by which each further job is postponed more than the one before it, in ms
 * @returns the number of jobs that were postponed
 */
export function postponeDocuments(
  store: Store,
  options: {
    readonly which: keyof typeof WHICH;
    readonly ms: number;
    readonly apartMs: number;
    readonly code: string;
    readonly message: string;
    readonly now: number;
  },
): number {
  const { which, ...parameters } = options;
  return store
    .prepare(
      `WITH due AS MATERIALIZED (
         SELECT * FROM (
           ${selectDue(JOB_COLUMNS)}
           UNION ALL SELECT * FROM (SELECT ${JOB_COLUMNS} FROM jobs INDEXED BY jobs_due
             WHERE step = :step AND suspect > 0 AND state IN ('queued', 'failed') AND ${IS_DUE}
             ORDER BY suspect, priority, run_at, seq LIMIT :limit)
         ) ORDER BY suspect, priority, run_at, seq LIMIT :limit
       ), waiting AS MATERIALIZED (
         SELECT seq, row_number() OVER (ORDER BY priority, run_at, seq) - 1 AS place FROM due
         WHERE ${WHICH[which]}
       )
       UPDATE jobs SET run_at = :now + CAST(min(${MAX_POSTPONED_MS}, max(1, :ms + place * :apartMs)) AS INTEGER),
         dispatched_until = 0, updated_at = :now,
         error_code = iif(state = 'failed', error_code, :code), error = iif(state = 'failed', error, :message)
       FROM waiting WHERE jobs.seq = waiting.seq`,
    )
    .run({ ...parameters, step: 'ingest', limit: POSTPONED_AT_ONCE }).changes;
}

/**
 * Counts the documents that wait to be read or are being read, at most `most` of those that wait and as many of the
 * others.
 */
export function countWaitingDocuments(store: Store, most: number): number {
  return store
    .prepare(
      `SELECT (SELECT count(*) FROM (SELECT seq FROM jobs INDEXED BY jobs_due
           WHERE step = 'ingest' AND state IN ('queued', 'failed') LIMIT :most) AS waiting)
         + (SELECT count(*) FROM (SELECT seq FROM jobs INDEXED BY jobs_of_documents
           WHERE kind = 'document' AND state = 'active' AND step = 'ingest' LIMIT :most) AS reading)`,
    )
    .pluck()
    .get({ most }) as number;
}

/**
 * Reads how many memories a document will have, and how many it has now.
 * @returns `next`: number of memories of the generation that waits to be read, by an earlier attempt to read it; null
 *   if there was none. `live`: number of memories of the generation that queries find, null if they find none.
 *   Undefined if no generation waits
 */
export function readSizes(
  store: Store,
  documentNo: number,
): { readonly next: number | null; readonly live: number | null } | undefined {
  const row = store
    .prepare(
      `SELECT o.live_no AS live, g.chunks FROM documents o
         JOIN document_generations g ON g.generation_no = o.next_no WHERE o.document_no = ?`,
    )
    .get(documentNo) as { live: number | null; chunks: number } | undefined;
  if (row === undefined) return undefined;
  return {
    next: row.chunks === 0 ? null : row.chunks + 1,
    live: row.live === null ? null : countParts(store, row.live),
  };
}

/**
 * Sets the number of chunks of a generation that is read anew to 0, since it comes from an earlier attempt to read it.
 * Call inside a write.
 */
export function forgetSize(store: Store, generationNo: number): void {
  store.prepare('UPDATE document_generations SET chunks = 0 WHERE generation_no = ?').run(generationNo);
}

/**
 * Counts the memories that other documents, which workers have read just now, will have beside those that are stored.
 * @param documentNo number of the document that does not count
 */
export function countExpectedMemories(store: Store, documentNo: number): number {
  return store
    .prepare(
      `SELECT coalesce(sum(g.chunks + 1 - (SELECT count(*) FROM chunks c WHERE c.generation_no = g.generation_no)), 0)
       FROM jobs j INDEXED BY jobs_of_documents
         CROSS JOIN documents o ON o.document_no = j.document
         CROSS JOIN document_generations g ON g.generation_no = o.next_no
       WHERE j.kind = 'document' AND j.state = 'active' AND j.step = 'ingest' AND g.chunks > 0 AND o.document_no <> ?`,
    )
    .pluck()
    .get(documentNo) as number;
}

/** Stores why the job of a document, which a worker has given back, waits. Call inside a write. */
export function noteWait(
  store: Store,
  { jobNo }: DocumentClaim,
  { code, message }: { readonly code: string; readonly message: string },
): void {
  store
    .prepare(`UPDATE jobs SET error_code = ?, error = ? WHERE seq = ? AND state = 'queued'`)
    .run(code, message, jobNo);
}

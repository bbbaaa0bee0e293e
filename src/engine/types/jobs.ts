import type { Page } from './pages.ts';

/** The states of a job; `JobState` says what they mean. */
export const JOB_STATES = ['queued', 'active', 'failed', 'done', 'dead', 'cancelled'] as const;
/**
 * Says how far a job is. `queued` waits for a worker and `active` is held by one; `failed` waits for its next attempt.
 * The other three have ended: `done` well, `dead` by using up its attempts or killing its workers, `cancelled` on
 * request.
 */
export type JobState = (typeof JOB_STATES)[number];

/** The steps of a job; `JobStep` says what they do. */
export const JOB_STEPS = ['ingest', 'settle', 'encode', 'link', 'reason', 'done'] as const;
/**
 * Names the step that a job is at. `ingest` reads a document and `settle` waits for its chunks; `encode` embeds a
 * memory and `link` makes its waypoint; `reason` asks a language model. A job that ended well is at `done`.
 */
export type JobStep = (typeof JOB_STEPS)[number];

/** The kinds of jobs; `JobKind` says what they work on. */
export const JOB_KINDS = ['memory', 'document', 'reembed', 'contradictions', 'reflection', 'consolidation'] as const;
/**
 * Names what a job works on: a `memory` is embedded and linked, a `document` is read, `reembed` embeds a memory by a
 * new model or directs that change, `contradictions` compares a memory with near ones, `reflection` reflects on
 * several, and `consolidation` gathers those that say nearly the same.
 */
export type JobKind = (typeof JOB_KINDS)[number];

/** A job in the ledger as an operator sees it. Times are Unix milliseconds. */
export interface Job {
  readonly id: string;
  /** Number of the job in its ledger; later jobs have higher numbers. */
  readonly jobNo: number;
  readonly kind: JobKind;
  /** Id of the memory that the job works on; null if it works on none, or if that memory was erased. */
  readonly memoryId: string | null;
  /** Id of the document that the job reads, or that its memory belongs to; null for none. */
  readonly documentId: string | null;
  readonly step: JobStep;
  readonly state: JobState;
  /** Priority among waiting jobs: 0 for an interactive job, which goes first, and 1 for a bulk job. */
  readonly priority: number;
  /** Attempts of the current step that failed. */
  readonly attempts: number;
  /** Worker deaths while this job ran alone; three make it dead. */
  readonly crashes: number;
  /** Earliest time of the next attempt of a job that waits, Unix ms. */
  readonly runAt: number;
  /** Why the last attempt failed; null if none has. */
  readonly error: { readonly code: string; readonly message: string } | null;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Time the job ended, well or not; null until then. */
  readonly finishedAt: number | null;
  /** Events of the job, such as `queued`, `encoded` or `failed`, with their times, earliest first. */
  readonly timeline: readonly { readonly event: string; readonly at: number }[];
}

/** Number of jobs in each state. */
export type JobCounts = Readonly<Record<JobState, number>>;

/** Number of unfinished jobs at one step. */
export interface StepBacklog extends Pick<JobCounts, 'queued' | 'active' | 'failed'> {
  readonly step: JobStep;
  /** Time the oldest unfinished job at this step was added, Unix ms. */
  readonly oldestAt: number;
}

/** Counts over a tenant's whole ledger. */
export interface JobSummary {
  readonly counts: JobCounts;
  /** Unfinished jobs by step, in the order of JOB_STEPS; steps without any are left out. */
  readonly backlog: readonly StepBacklog[];
}

/** Which jobs `Tenant.listJobs` lists, and which page of them. */
export interface JobFilter extends Page {
  /** Lists only jobs in this state; jobs in all states if left out. */
  readonly state?: JobState | undefined;
  /** Lists only jobs of this kind; jobs of all kinds if left out. */
  readonly kind?: JobKind | undefined;
}

/** What a tenant does with its jobs. */
export interface Jobs {
  /** Returns a job by its id. Throws EngineError `not_found`. */
  getJob(id: string): Promise<Job>;
  /** Lists the jobs that match a filter, newest first. `total` counts all that match; the summary counts all jobs. */
  listJobs(filter: JobFilter): Promise<JobSummary & { readonly items: Job[]; readonly total: number }>;
  /** Counts all jobs in the ledger by state. */
  countJobs(): Promise<JobCounts>;
  /**
   * Counts the jobs that wait for a worker or for another attempt (`queued` and `failed`). Jobs that ended do not slow
   * it down, as they do `countJobs`.
   */
  countWaitingJobs(): Promise<number>;
  /** Counts the jobs that a worker holds (`active`), including those of a dead worker that are not taken back yet. */
  countActiveJobs(): Promise<number>;
  /** Returns when the oldest job that has not ended was added, Unix ms; null if all have ended. */
  oldestWaitingJobAt(): Promise<number | null>;
  /**
   * Puts a dead, failed or cancelled job back to its step, with no failed attempts. A cancelled reading of a document
   * cannot be retried.
   * @throws EngineError `not_found`; `conflict` if the job is in another state, its memory or file is gone, or a
   *   newer job works on its memory
   */
  retryJob(id: string): Promise<Job>;
  /**
   * Cancels an unfinished job, and the reading of a document with its job. A memory stays and is found by its words.
   * @throws EngineError `not_found`; `conflict` if the job has ended
   */
  cancelJob(id: string): Promise<Job>;
  /**
   * Removes a dead or cancelled job from the ledger, and a document's file with its job.
   * @throws EngineError `not_found`; `conflict` if the job is in another state
   */
  discardJob(id: string): Promise<void>;
}

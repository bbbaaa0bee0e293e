import type { Page } from './pages.ts';

/** The states of a job; `JobState` says what they mean. */
export const JOB_STATES = ['queued', 'active', 'failed', 'done', 'dead', 'cancelled'] as const;
/**
 * Says how far a job is. `queued`: it waits for a worker. `active`: a worker holds it. `failed`: an attempt failed, and
 * another one follows. `done`: it ended well. `dead`: it was given up after its last attempt, or because its workers
 * died. `cancelled`: a caller ended it, its memory or document was erased, or its document was sent again.
 */
export type JobState = (typeof JOB_STATES)[number];

/** The steps of a job; `JobStep` says what they do. */
export const JOB_STEPS = ['ingest', 'settle', 'encode', 'link', 'reason', 'done'] as const;
/**
 * Names the step at which a job is. `ingest` reads a document, and `settle` waits for the jobs of its chunks. `encode`
 * embeds a memory, and `link` links it to the most similar one. `reason` asks a language model, or consolidates
 * memories without one. `done` is the step of a job that ended well.
 */
export type JobStep = (typeof JOB_STEPS)[number];

/** The kinds of jobs; `JobKind` says what they do. */
export const JOB_KINDS = ['memory', 'document', 'reembed', 'contradictions', 'reflection', 'consolidation'] as const;
/**
 * Names what a job does. `memory` embeds and links a memory; `document` reads a document; `reembed` embeds a memory by
 * a new model, or (without a memory) directs the change of the model; `contradictions` compares a memory with similar
 * ones; `reflection` draws conclusions from several memories; `consolidation` makes one memory of several that say
 * nearly the same.
 */
export type JobKind = (typeof JOB_KINDS)[number];

/** A job in the ledger as an operator sees it. Times are Unix milliseconds. */
export interface Job {
  readonly id: string;
  /** Number of the job in its tenant's ledger; a job that was added later has a higher number. */
  readonly jobNo: number;
  readonly kind: JobKind;
  /** Id of the memory that the job works on; null if it works on none, or if the memory was erased. */
  readonly memoryId: string | null;
  /** Id of the document that the job reads, or that its memory is a part of; null if there is none. */
  readonly documentId: string | null;
  /**
   * The one user whose memories a reflection or consolidation is about. Null for other jobs and a consolidation of all
   * users, and again for a reflection that is done, and for an ended consolidation once the next one is requested.
   */
  readonly userId: string | null;
  readonly step: JobStep;
  readonly state: JobState;
  /** Priority: 0 for an interactive job, which is claimed first, and 1 for a bulk job. */
  readonly priority: number;
  /** Number of failed attempts at the current step. */
  readonly attempts: number;
  /** Number of times that a worker died while it ran this job and no other; after three the job is dead. */
  readonly crashes: number;
  /** Earliest time of the next attempt, Unix ms; without meaning once the job has ended. */
  readonly runAt: number;
  /** Why the last attempt failed; null if none failed, or after the job was done or was retried by an operator. */
  readonly error: { readonly code: string; readonly message: string } | null;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Time at which the job ended, well or not, Unix ms; null until then. */
  readonly finishedAt: number | null;
  /** Events of the job, such as `queued`, `encoded` or `failed`, with their times (Unix ms), earliest first. */
  readonly timeline: readonly { readonly event: string; readonly at: number }[];
}

/** Number of jobs in each state. */
export type JobCounts = Readonly<Record<JobState, number>>;

/** Numbers of unfinished jobs at one step, by state. */
export interface StepBacklog extends Pick<JobCounts, 'queued' | 'active' | 'failed'> {
  readonly step: JobStep;
  /** Time at which the oldest unfinished job at this step was added, Unix ms; it may have come to the step later. */
  readonly oldestAt: number;
}

/** Counts of all jobs in a tenant's ledger. */
export interface JobSummary {
  readonly counts: JobCounts;
  /** Unfinished jobs by step, in the order of JOB_STEPS; a step without unfinished jobs is left out. */
  readonly backlog: readonly StepBacklog[];
}

/** Selects the jobs that `Jobs.listJobs` lists, and a page of them. */
export interface JobFilter extends Page {
  /** Lists only jobs in this state; jobs in all states if left out. */
  readonly state?: JobState | undefined;
  /** Lists only jobs of this kind; jobs of all kinds if left out. */
  readonly kind?: JobKind | undefined;
}

/** The methods of a tenant for its jobs. */
export interface Jobs {
  /** Returns the job with this id. @throws EngineError `not_found` */
  getJob(id: string): Promise<Job>;
  /** Returns those of the jobs that exist, in no certain order, by one read on a reader thread. */
  findJobs(ids: readonly string[]): Promise<Job[]>;
  /**
   * Lists a page of the jobs that match a filter, newest first. `total` counts all jobs that match; `counts` and
   * `backlog` count all jobs, whatever the filter.
   */
  listJobs(filter: JobFilter): Promise<JobSummary & { readonly items: Job[]; readonly total: number }>;
  /** Counts all jobs in the ledger by state. It reads every job, ended ones included. */
  countJobs(): Promise<JobCounts>;
  /**
   * Counts the jobs that wait for a worker or for another attempt (`queued` and `failed`). Unlike `countJobs`, it does
   * not read ended jobs.
   */
  countWaitingJobs(): Promise<number>;
  /**
   * Counts the jobs that are `active` (claimed by a worker). If a worker died, its jobs count until their lease has run
   * out.
   */
  countActiveJobs(): Promise<number>;
  /** Returns the time at which the oldest unfinished job was added, Unix ms; null if no job is unfinished. */
  oldestWaitingJobAt(): Promise<number | null>;
  /**
   * Queues a dead, failed or cancelled job again at its step, due at once and with all its attempts. The cancelled job
   * of a document cannot be retried.
   * @throws EngineError `not_found`; `conflict` if the job is queued, active or done, if its memory or file is gone, or
   *   if a newer job works on its memory or reads its document
   */
  retryJob(id: string): Promise<Job>;
  /**
   * Cancels an unfinished job, even while a worker runs it. Its memory stays and is found by its words; the reading of
   * a document is given up with its job.
   * @throws EngineError `not_found`; `conflict` if the job has ended, or if it has read its document and waits for the
   *   jobs of the document's chunks
   */
  cancelJob(id: string): Promise<Job>;
  /**
   * Removes a dead or cancelled job from the ledger. The file that it would have read is deleted, too; a file that was
   * handed in for the same document later is not.
   * @throws EngineError `not_found`; `conflict` if the job is in another state
   */
  discardJob(id: string): Promise<void>;
}

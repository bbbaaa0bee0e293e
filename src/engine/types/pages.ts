/** What a caller of a list asks for. */
import type { JobKind, JobState } from './jobs.ts';

/** Which part of a list is wanted. */
export interface Page {
  /** Most items returned, from 0. */
  readonly limit: number;
  /** Items skipped at the start of the list; 0 for the first page. */
  readonly offset: number;
}

/** Which revisions of a memory are wanted. */
export interface RevisionPage {
  /** Most revisions returned, from 1; all of them by default. */
  readonly limit?: number | undefined;
  /** Only revisions that replaced a lower version than this; all by default. */
  readonly before?: number | undefined;
}

/** Which jobs `Tenant.listJobs` lists, and which page of them. */
export interface JobFilter extends Page {
  /** Lists only jobs in this state; jobs in all states if left out. */
  readonly state?: JobState | undefined;
  /** Lists only jobs of this kind; jobs of all kinds if left out. */
  readonly kind?: JobKind | undefined;
}

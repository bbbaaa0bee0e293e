/** Which reads may be answered by a standby, and what a process and its reader threads tell each other about it. */

import type { STANDBY_OUTCOMES } from '../standby-outcomes.ts';
import type { ReadCommandName } from './commands.ts';

/**
 * The reads that a standby may answer. Left out are reads on whose result a write depends (what is to be erased, moved
 * or compared), those that clients make after a write (receipts, single documents, jobs, session logs, events,
 * webhooks, recalls), differences, whose next window begins where this one ends, revisions, of which a key that is
 * bound to tags sees those since the memory has its tags, and the rest of a page that an earlier read began, which must
 * not be older than its beginning.
 */
const STANDBY_READS: ReadonlySet<ReadCommandName> = new Set<ReadCommandName>([
  'query',
  'explain',
  'askEval',
  'timeline',
  'listMemories',
  'listMemoryPlaces',
  'listItemPlaces',
  'listNamespaces',
  'listNames',
  'listDocuments',
  'listLinks',
  'listEntities',
  'getEntity',
  'neighbourhood',
  'userGraph',
  'readNearDuplicates',
  'readProposals',
  'proposeConsolidations',
  'previewDecay',
  'sectorStats',
  'startExport',
  'readExportSlice',
]);

/** Whether a standby may answer a read. */
export function mayReadFromStandby(name: ReadCommandName): boolean {
  return STANDBY_READS.has(name);
}

/** How a read is to use the standby. */
export interface StandbyUse {
  /** Position of the tenant that the answer must hold (`Store.position`); 0 if any state will do. */
  readonly floor: number;
  /** Longest time that the read waits for the standby to reach that position (ms). */
  readonly waitMs: number;
}

/** Report of a reader thread about a read that was to use the standby. */
export interface StandbyReport {
  /**
   * `standby`: it answered. `behind`: it had not received what the read needs. `failed`: it ended the read, for example
   * since the read was in the way of the log, or its answer does not count: `not_found`, `unavailable`, or given by a
   * session that was replaced meanwhile. `down`: it does not answer, or is not to be read.
   */
  readonly outcome: (typeof STANDBY_OUTCOMES)[number];
  /** Why the standby did not answer, for the log; '' if it did. */
  readonly reason: string;
  /**
   * Position of the tenant in the answer (`Store.position`); 0 if the standby did not answer and the primary has not
   * yet.
   */
  readonly position: number;
}

const PREFIX = 'standby:';

/**
 * Returns the name under which a thread keeps a tenant that it reads from the standby, beside the same tenant of the
 * primary: what it holds in memory follows one server only.
 * @param path path of the tenant's file
 */
export function standbyKey(path: string): string {
  return `${PREFIX}${path}`;
}

/** Returns the path of a tenant's file, and from where it is read, from the name that a thread has for the tenant. */
export function ofKey(key: string): { readonly path: string; readonly isStandby: boolean } {
  const isStandby = key.startsWith(PREFIX);
  return { path: isStandby ? key.slice(PREFIX.length) : key, isStandby };
}

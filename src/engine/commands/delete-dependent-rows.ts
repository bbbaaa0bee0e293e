import { freesMany, MAX_RELABELLED, splitChain } from '../store/chains.ts';
import { deleteEdge, listSuccessors, MAX_LINKED_ANEW, putStatedEdge } from '../store/edges.ts';
import {
  listOwnSupersessions,
  listWonContradictions,
  deleteAnswersSlice,
  deleteLinksSlice,
  deleteRecallsSlice,
  deleteRevisionsSlice,
  deleteWaypointsSlice,
  detachJobsSlice,
} from '../store/dependent-rows.ts';
import { type MemoryRow, readMemoryRows } from '../store/memories.ts';
import type { Store } from '../store/open-store.ts';
import { withinBytes } from '../store/text-sizes.ts';
import type { DeleteReceipt } from '../types.ts';
import { DEFAULT_WEIGHTS } from './relate.ts';
import { settleStatus, startOf } from './settle-status.ts';
import type { WriteContext } from './write-context.ts';

/** Greatest number of rows of one kind that one commit removes together with memories; each takes some microseconds. */
const MAX_ROWS = 1_000;
/** Greatest number of bytes of earlier versions that one commit removes, since their pages are overwritten. */
const MAX_BYTES = 2 * 1024 * 1024;
/**
 * Greatest number of links by which erased memories supersede others, and of contradictions that they won, that the
 * commit of the erasure removes itself; more are removed before it, in commits of their own. With each the other memory
 * gets its status back, which takes some 100 µs.
 */
const MAX_SETTLED = 100;
/** What `MAX_SETTLED` is in PostgreSQL, where restoring the status of a memory takes about ten round trips. */
const MAX_SETTLED_IN_DATABASE = 10;
/**
 * Greatest size (bytes) of the texts and values of superseded or contradicted memories whose status one commit
 * restores, since their rows are rewritten with them.
 */
const SETTLED_BYTES = 2 * 1024 * 1024;

const mostSettled = ({ ahead }: Store) => (ahead === null ? MAX_SETTLED : MAX_SETTLED_IN_DATABASE);

/** Numbers of links and earlier versions that were removed, and of jobs from which their memory was removed. */
export type DeletedRows = Pick<DeleteReceipt, 'edges' | 'revisions' | 'jobs'>;

/**
 * Removes some of the rows that depend on memories which are about to be erased (earlier versions, rows of recalls,
 * answers to standing queries, links), and the memories from some of their ended jobs, if they are more than one commit
 * should change: all writes of all tenants wait for a commit. Memories that a removed link had superseded or
 * contradicted get their own status back. The caller repeats the call until it returns undefined, and then erases the
 * memories.
 *
 * Of the memories whose waypoint (automatic link) leads to an erased memory, the erasure links only 100
 * (`MAX_LINKED_ANEW`) again. The waypoints of the others are removed here, and they get another one when they change.
 * @param memoryNos `memoryNo` of each memory
 * @returns numbers of what was removed, without rows of recalls and answers; undefined if nothing had to be removed
 */
export function deleteDependentRowsSlice(context: WriteContext, memoryNos: readonly number[]): DeletedRows | undefined {
  const { store } = context;
  // First: what follows reads past the links that these release.
  const released = releaseSuperseded(context, memoryNos) || releaseLosers(context, memoryNos);
  if (released > 0) return { revisions: 0, jobs: 0, edges: released };
  const revisions = deleteRevisionsSlice(store, memoryNos, { most: MAX_ROWS, bytes: MAX_BYTES });
  const jobs = detachJobsSlice(store, memoryNos, MAX_ROWS);
  const recalls = deleteRecallsSlice(store, memoryNos, MAX_ROWS);
  const answers = deleteAnswersSlice(store, memoryNos, MAX_ROWS);
  const links =
    deleteLinksSlice(store, memoryNos, MAX_ROWS) +
    deleteWaypointsSlice(store, memoryNos, { most: MAX_LINKED_ANEW, slice: MAX_ROWS });
  if (revisions + jobs + recalls + answers + links === 0) return undefined;
  return { revisions, jobs, edges: links };
}

/**
 * Removes `supersedes` links from memories that are about to be erased, if there are more than 100 (10 in PostgreSQL),
 * if they lead to memories with over 2 MiB of texts and values, or if long parts of chains would get a new end. If a
 * later memory of the chain remains, it supersedes the older memory in their place.
 * @returns the number of links that were removed; 0 if the erasure itself can do it
 */
function releaseSuperseded(context: WriteContext, memoryNos: readonly number[]): number {
  const { store, now } = context;
  const most = mostSettled(store);
  const found = listOwnSupersessions(store, memoryNos, most + 1);
  if (found.length === 0) return 0;
  const successorOf = createSuccessorFinder(context, new Set(memoryNos));
  const freed = found.filter(({ src }) => successorOf(src) === undefined).map(({ dst }) => dst);
  const few = withinSettled(store, found, ({ dst }) => dst);
  if (found.length <= most && few.length === found.length && !freesMany(store, freed)) return 0;
  let [released, moved] = [0, 0];
  for (const { src, dst } of few) {
    const successor = successorOf(src);
    deleteEdge(store, { src, dst, type: 'supersedes' });
    if (successor === undefined) moved += splitChain(store, dst);
    else putStatedEdge(store, { src: successor.memoryNo, dst, type: 'supersedes' }, DEFAULT_WEIGHTS.supersedes, now);
    settleStatus(context, dst, successor && { endsAt: startOf(successor) });
    released += 1;
    if (moved >= MAX_RELABELLED) break;
  }
  return released;
}

/**
 * Returns the first links whose other memories, given by `otherOf`, have at most 2 MiB of texts and values together, or
 * the first one.
 */
function withinSettled<Ends>(store: Store, links: readonly Ends[], otherOf: (link: Ends) => number): readonly Ends[] {
  return links.slice(0, withinBytes(store, links.map(otherOf), SETTLED_BYTES).length);
}

/**
 * Makes a function that takes the number of an erased memory, and returns the next later memory of its chain of
 * supersessions that is not erased; undefined if there is none.
 */
function createSuccessorFinder({ store }: WriteContext, erased: ReadonlySet<number>) {
  const successors = new Map<number, MemoryRow | undefined>();
  return (memoryNo: number): MemoryRow | undefined => {
    const passed: number[] = [];
    let next: number | undefined = memoryNo;
    while (next !== undefined && erased.has(next) && !successors.has(next)) {
      passed.push(next);
      [next] = listSuccessors(store, next);
    }
    const isKnown = next === undefined || successors.has(next);
    const successor = isKnown ? successors.get(next!) : readMemoryRows(store, [next!])[0];
    for (const number of passed) successors.set(number, successor);
    return successor;
  };
}

/**
 * Removes contradictions that one of these memories won, if there are more than 100 (10 in PostgreSQL), or if the
 * memories that lost have over 2 MiB of texts and values, and restores the status of the latter.
 * @returns the number of links that were removed; 0 if the erasure itself can do it
 */
function releaseLosers(context: WriteContext, memoryNos: readonly number[]): number {
  const { store } = context;
  const most = mostSettled(store);
  const found = listWonContradictions(store, memoryNos, most + 1);
  const loserOf = ({ src, dst, winner }: (typeof found)[number]) => (winner === src ? dst : src);
  const few = withinSettled(store, found, loserOf);
  if (found.length <= most && few.length === found.length) return 0;
  for (const { src, dst } of few) deleteEdge(store, { src, dst, type: 'contradicts' });
  for (const loser of new Set(few.map(loserOf))) settleStatus(context, loser);
  return few.length;
}

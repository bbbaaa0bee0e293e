/** Commands by which callers state how memories relate. */

import { EngineError, isEngineError } from '../errors.ts';
import { hasTags } from '../store/bounds.ts';
import { isLiveEndOf, joinChains, joinsLargeParts, MAX_RELABELLED, splitChain } from '../store/chains.ts';
import { isGatheredFrom } from '../store/consolidations.ts';
import {
  deleteEdge,
  type EdgeKey,
  findEdge,
  listLostContradictions,
  listSuccessors,
  putConcludedEdge,
  putStatedEdge,
  putWinner,
} from '../store/edges.ts';
import { readMemoryRows, toMemory, type MemoryRow } from '../store/memories.ts';
import { ensureWriter } from '../store/writers.ts';
import type {
  BoundOptions,
  Contradiction,
  EdgeType,
  Link,
  Memory,
  NamedLink,
  NewLink,
  Supersession,
} from '../types.ts';
import { type Quota, refuseOverQuota } from './quota.ts';
import { settleStatus, startOf } from './settle-status.ts';
import { getBoundMemory } from './within-bounds.ts';
import type { WriteContext } from './write-context.ts';

/**
 * Weights, 0 to 1, of links for which none is stated: the share of activation (relevance that spreads over links in a
 * query) that passes along the link. Those of `contradicts` and `same_as` are OpenMem's; no activation passes
 * `contradicts`, which is only listed. The words of a parent or a successor are about the same thing, while a mention
 * may be in passing.
 */
export const DEFAULT_WEIGHTS: Readonly<Record<EdgeType, number>> = {
  waypoint: 0.6,
  mentions: 0.5,
  supports: 0.7,
  contradicts: 0.8,
  depends_on: 0.7,
  same_as: 0.3,
  supersedes: 1,
  derived_from: 0.8,
};

/**
 * Adds a link, or changes the weight of an existing one. If no weight is given, an existing link keeps its own, and a
 * new one gets that of `DEFAULT_WEIGHTS`. An automatic link counts as stated from then on, unless it is `derived_from`.
 * @returns the link as seen from `src`
 * @throws EngineError `not_found`; `invalid` for `supersedes`, `contradicts`, and a link from a memory to itself;
 *   `conflict` for the link from a consolidated memory to a source; `storage_full` for a new link over the quota of
 *   disk
 */
export function linkMemories(
  context: WriteContext,
  { src, dst, type, weight, withinTags, quota = null }: NewLink & BoundOptions & { readonly quota?: Quota | null },
): Link {
  const { store, now } = context;
  if (type === 'supersedes' || type === 'contradicts') {
    const command = type === 'supersedes' ? 'supersede' : 'contradict';
    throw new EngineError('invalid', `type: ${type} changes more than a link; use ${command} instead`);
  }
  if (src === dst) throw new EngineError('invalid', 'dst: a memory cannot be linked to itself');
  const [from, to] = [getNamed(context, 'src', src, withinTags), getNamed(context, 'dst', dst, withinTags)];
  const key = { src: from.memoryNo, dst: to.memoryNo, type };
  refuseLinkToSource(context, key);
  const known = findEdge(store, key);
  if (known === undefined) refuseOverQuota(context, quota, 0);
  const put = weight ?? known?.weight ?? DEFAULT_WEIGHTS[type];
  putStatedEdge(store, key, put, now, writerNo(context));
  return getLink(context, key, to);
}

/**
 * Returns the `memoryNo` of each memory that a new memory is derived from, in the order of the ids.
 * @throws EngineError `not_found`
 */
export function getSources(context: WriteContext, ids: readonly string[], { withinTags }: BoundOptions = {}): number[] {
  return ids.map((id) => getNamed(context, 'derived', id, withinTags).memoryNo);
}

/** Links a new memory to the memories that it is derived from, as a reflection is linked to its sources. */
export function deriveFrom({ store, now }: WriteContext, src: number, sources: readonly number[]): void {
  const link = { similarity: null, weight: DEFAULT_WEIGHTS.derived_from };
  for (const dst of sources) putConcludedEdge(store, { src, dst, type: 'derived_from' }, link, now);
}

/**
 * Removes a link, stated or automatic, and restores the status of a memory that the link had changed. The two memories
 * of a contradiction may be given in either order.
 * @throws EngineError `not_found` for a memory or the link; `conflict` for the link from a consolidated memory to a
 *   source, and for a supersession with over 500 (`MAX_RELABELLED`) memories of its chain before it, and over 500 after
 *   it
 */
export function unlinkMemories(context: WriteContext, link: NamedLink & BoundOptions): void {
  const key = getEdgeKey(context, link);
  if (findEdge(context.store, key) === undefined)
    throw new EngineError('not_found', `no link of type ${link.type} from src to dst`);
  if (key.type === 'supersedes') refuseLargeParts(context, { older: key.dst, newer: key.src, field: 'dst' });
  removeLink(context, key);
}

/**
 * Removes a link as `unlinkMemories` does, but also in the middle of a chain of any length, and of memories that have
 * expired or are hidden. If there is no such link, it does nothing.
 * @param settle called with the number of each memory whose status may have changed; left out, its status is settled.
 *   One who removes many links settles each memory once, after the last of them
 * @returns the number of memories that are in another chain now
 */
export function removeLink(
  context: WriteContext,
  key: EdgeKey,
  settle: (memoryNo: number) => void = (memoryNo) => settleStatus(context, memoryNo),
): number {
  const { store } = context;
  const edge = findEdge(store, key);
  if (edge === undefined) return 0;
  deleteEdge(store, key);
  let moved = 0;
  if (key.type === 'supersedes') {
    if (listSuccessors(store, edge.dst).length === 0) moved = splitChain(store, edge.dst);
    settle(edge.dst);
  }
  if (edge.winner !== null) settle(loserOf(edge, edge.winner));
  return moved;
}

function getEdgeKey(context: WriteContext, { src, dst, type, withinTags }: NamedLink & BoundOptions): EdgeKey {
  const [from, to] = [getNamed(context, 'src', src, withinTags), getNamed(context, 'dst', dst, withinTags)];
  const key = type === 'contradicts' ? contradictionOf(from, to) : { src: from.memoryNo, dst: to.memoryNo, type };
  refuseLinkToSource(context, key);
  return key;
}

/**
 * Throws EngineError `conflict` if a link would join, or its removal would separate, two long chains of supersession:
 * all writes of all tenants would wait for the commit.
 */
function refuseLargeParts(
  { store }: WriteContext,
  { older, newer, field }: { readonly older: number; readonly newer: number; readonly field: string },
): void {
  if (!joinsLargeParts(store, { older, newer })) return;
  throw new EngineError(
    'conflict',
    `${field}: over ${MAX_RELABELLED} memories superseded each other before this link, and as many after it, ` +
      'so it can be neither made nor removed; choose one nearer to an end of its chain',
  );
}

/**
 * Refuses to change a link from a consolidated memory to one of its sources.
 * @throws EngineError `conflict`
 */
function refuseLinkToSource({ store }: WriteContext, { src, dst, type }: EdgeKey): void {
  if (type !== 'derived_from' || !isGatheredFrom(store, { gathered: src, source: dst })) return;
  throw new EngineError(
    'conflict',
    'src was gathered from dst, and this link says so: undo the consolidation to remove it',
  );
}

/**
 * Makes a newer memory supersede an older one of the same user. If it does already, nothing changes.
 * @returns the older memory as it is now
 * @throws EngineError `not_found`; `invalid` for the same memory or different users; `conflict` if another memory
 *   supersedes the older one already, the older one supersedes the newer one, or the link would join two chains of over
 *   500 (`MAX_RELABELLED`) memories; `storage_full` for a new link over the quota of disk
 */
export function supersedeMemory(
  context: WriteContext,
  { oldId, newId, withinTags, quota = null }: Supersession & BoundOptions & { readonly quota?: Quota | null },
): Memory {
  if (oldId === newId) throw new EngineError('invalid', 'new_id: a memory cannot supersede itself');
  const older = getNamed(context, 'old_id', oldId, withinTags);
  const newer = getNamed(context, 'new_id', newId, withinTags);
  refuseStrangers(older, newer);
  const key: EdgeKey = { src: newer.memoryNo, dst: older.memoryNo, type: 'supersedes' };
  if (findEdge(context.store, key) === undefined) refuseOverQuota(context, quota, 0);
  takePlace(context, { older, newer, field: 'old_id', withinTags });
  return toMemory(readMemoryRows(context.store, [older.memoryNo])[0] as MemoryRow, context.now);
}

/**
 * Returns the row of the stored memory that a new one says it supersedes.
 * @param id public id of the older memory, as the field `supersedes` of the new one names it
 * @param userId user of the new memory
 * @throws EngineError `not_found`; `invalid` if the older memory belongs to another user
 */
export function getReplaced(
  context: WriteContext,
  id: string,
  { userId, withinTags }: BoundOptions & Pick<Memory, 'userId'>,
): MemoryRow {
  const older = getNamed(context, 'supersedes', id, withinTags);
  if (older.user_id !== userId) throw new EngineError('invalid', 'supersedes: this memory belongs to another user');
  return older;
}

/** What the message of a refused supersession names. */
interface LinkNames extends BoundOptions {
  /** Name of the field that names the older memory. */
  readonly field: string;
}

/**
 * Makes a memory supersede an older one of the same user; writes nothing if it does already.
 * @param names.field name of the field that names the older memory, for messages
 * @returns the number of memories that were moved to another chain; undefined if nothing was written
 * @throws EngineError `conflict` for the same memory, if another memory supersedes the older one already, if the older
 *   one supersedes the newer one, or if the link would join two chains of over 500 (`MAX_RELABELLED`) memories
 */
export function takePlace(
  context: WriteContext,
  { older, newer, ...names }: { readonly older: MemoryRow; readonly newer: MemoryRow } & LinkNames,
): number | undefined {
  const { store, now } = context;
  const { field } = names;
  const key: EdgeKey = { src: newer.memoryNo, dst: older.memoryNo, type: 'supersedes' };
  if (findEdge(store, key) !== undefined) return undefined;
  if (older.memoryNo === newer.memoryNo)
    throw new EngineError('conflict', `${field}: this memory says the same already`);
  refuseSecondSuccessor(context, older, names);
  refuseCircle(context, { older, newer, field });
  refuseLargeParts(context, { older: older.memoryNo, newer: newer.memoryNo, field });
  putStatedEdge(store, key, DEFAULT_WEIGHTS.supersedes, now, writerNo(context));
  const moved = joinChains(store, { older: older.memoryNo, newer: newer.memoryNo });
  settleStatus(context, older.memoryNo, { endsAt: startOf(newer) });
  return moved;
}

/**
 * Removes the links that made a memory superseded or contradicted, because the memory was stated again. It gets back
 * the status that it had before these links.
 * @returns false if only some of the links were removed, because one commit would be too large: the caller commits and
 *   calls again
 * @throws EngineError `conflict` if over 500 (`MAX_RELABELLED`) memories of its chain are before a removed link, and
 *   over 500 after it
 */
export function restate(context: WriteContext, memoryNo: number): boolean {
  const { store } = context;
  refuseRestating(context, memoryNo);
  const successors = listSuccessors(store, memoryNo);
  const lost = listLostContradictions(store, memoryNo, MAX_LOST);
  for (const key of lost) deleteEdge(store, key);
  // The status changes last, since that gives the memory another version, which a repeated put would not expect.
  if (lost.length === MAX_LOST) return false;
  for (const src of successors) deleteEdge(store, { src, dst: memoryNo, type: 'supersedes' });
  if (successors.length > 0) splitChain(store, memoryNo);
  settleStatus(context, memoryNo);
  return true;
}

/**
 * Refuses a memory that `restate` could not state again. Call it before the first commit of a change that restates.
 * @throws EngineError `conflict` as `restate`
 */
export function refuseRestating({ store }: WriteContext, memoryNo: number): void {
  if (!listSuccessors(store, memoryNo).some((newer) => joinsLargeParts(store, { older: memoryNo, newer }))) return;
  throw new EngineError(
    'conflict',
    `key: the item was superseded in the middle of a chain of over ${2 * MAX_RELABELLED} memories; ` +
      'delete it, and put it anew',
  );
}

/** Greatest number of lost contradictions that one commit removes; each takes some 10 µs. */
const MAX_LOST = 1_000;

/**
 * States that two memories of a user contradict each other, and which of them wins if that is known. A decided
 * contradiction keeps its winner if it is stated again without one. Who gives it another winner becomes its writer.
 * @returns the link as seen from `a`
 * @throws EngineError `not_found`; `invalid` for the same memory, different users, or a winner that is neither of them;
 *   `storage_full` for a new link or another winner over the quota of disk
 */
export function contradictMemories(
  context: WriteContext,
  { a, b, winner, withinTags, quota = null }: Contradiction & BoundOptions & { readonly quota?: Quota | null },
): Link {
  const { store, now } = context;
  if (a === b) throw new EngineError('invalid', 'b: a memory cannot contradict itself');
  if (winner !== undefined && winner !== a && winner !== b) {
    throw new EngineError('invalid', 'winner: expected the id given as a or b');
  }
  const [rowOfA, rowOfB] = [getNamed(context, 'a', a, withinTags), getNamed(context, 'b', b, withinTags)];
  refuseStrangers(rowOfA, rowOfB);
  const key = contradictionOf(rowOfA, rowOfB);
  const edge = findEdge(store, key);
  const winnerNo = winner === undefined ? undefined : (winner === a ? rowOfA : rowOfB).memoryNo;
  const isDecided = winnerNo !== undefined && winnerNo !== edge?.winner;
  // A change of status keeps a revision.
  if (edge === undefined || isDecided) refuseOverQuota(context, quota, 0);
  if (edge === undefined || edge.automatic)
    putStatedEdge(store, key, DEFAULT_WEIGHTS.contradicts, now, writerNo(context));
  if (isDecided) {
    putWinner(store, key, { winner: winnerNo, writerNo: writerNo(context), now });
    settleStatus(context, rowOfA.memoryNo);
    settleStatus(context, rowOfB.memoryNo);
  }
  return getLink(context, key, rowOfB);
}

/**
 * Returns the key of a contradiction. It has no direction, and is stored once, from the memory with the lower number to
 * the other.
 */
export function contradictionOf(one: Pick<MemoryRow, 'memoryNo'>, other: Pick<MemoryRow, 'memoryNo'>): EdgeKey {
  return {
    src: Math.min(one.memoryNo, other.memoryNo),
    dst: Math.max(one.memoryNo, other.memoryNo),
    type: 'contradicts',
  };
}

function loserOf({ src, dst }: Pick<EdgeKey, 'src' | 'dst'>, winner: number): number {
  return winner === src ? dst : src;
}

function writerNo({ store, writtenBy }: WriteContext): number | null {
  return ensureWriter(store, writtenBy);
}

function getNamed(context: WriteContext, name: string, id: string, withinTags: BoundOptions['withinTags']): MemoryRow {
  try {
    return getBoundMemory(context, id, withinTags);
  } catch (error) {
    if (isEngineError(error, 'not_found')) throw new EngineError('not_found', `${name}: ${error.message}`);
    throw error;
  }
}

function refuseStrangers(one: MemoryRow, other: MemoryRow): void {
  if (one.user_no !== other.user_no) throw new EngineError('invalid', 'the two memories belong to different users');
}

/**
 * Refuses a further successor of a memory that another memory supersedes already. If the latter has expired and only
 * waits to be erased, its link is removed instead.
 * @throws EngineError `conflict`, with the name of the field and the id of the successor if it has the tags of
 *   `withinTags`; or as `unlinkMemories` if the
 *   link of an expired one cannot be removed
 */
export function refuseSecondSuccessor(
  context: WriteContext,
  older: MemoryRow,
  { field, withinTags = [] }: LinkNames,
): void {
  const { store, now } = context;
  for (const successor of readMemoryRows(store, listSuccessors(store, older.memoryNo))) {
    if (successor.expires_at === null || successor.expires_at > now) {
      const isNamed = hasTags(JSON.parse(successor.tags) as string[], withinTags);
      const by = isNamed ? `${successor.id}; supersede that one, or unlink the two first` : 'another memory';
      throw new EngineError('conflict', `${field}: already superseded by ${by}`);
    }
    refuseLargeParts(context, { older: older.memoryNo, newer: successor.memoryNo, field });
    deleteEdge(store, { src: successor.memoryNo, dst: older.memoryNo, type: 'supersedes' });
    splitChain(store, older.memoryNo);
    settleStatus(context, older.memoryNo);
  }
}

/**
 * Refuses to make a memory supersede one that superseded it, directly or through others of the chain.
 * @param older memory at the live end of its chain: no other supersedes it
 * @throws EngineError `conflict`
 */
function refuseCircle(
  { store }: WriteContext,
  { older, newer, field }: { readonly older: MemoryRow; readonly newer: MemoryRow; readonly field: string },
): void {
  if (!isLiveEndOf(store, older.memoryNo, newer.memoryNo)) return;
  throw new EngineError('conflict', `${field}: it supersedes the new one already, so this would close a circle`);
}

/**
 * Returns a link as seen from the memory at the end that is not `other`.
 * @param other the end that the link names
 */
function getLink({ store }: WriteContext, key: EdgeKey, other: MemoryRow): Link {
  const edge = findEdge(store, key) as NonNullable<ReturnType<typeof findEdge>>;
  return {
    id: other.id,
    type: edge.type,
    direction: edge.dst === other.memoryNo ? 'out' : 'in',
    similarity: edge.similarity,
    weight: edge.weight,
    automatic: edge.automatic,
    createdAt: edge.createdAt,
    updatedAt: edge.updatedAt,
    writtenBy: edge.writtenBy,
  };
}

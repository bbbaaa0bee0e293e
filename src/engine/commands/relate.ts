import { EngineError, isEngineError } from '../errors.ts';
import { chainOf, joinChains, splitChain } from '../store/chains.ts';
import {
  deleteEdge,
  type EdgeKey,
  findEdge,
  isOnTheWay,
  listSuccessors,
  putStatedEdge,
  putWinner,
} from '../store/edges.ts';
import { getMemoryRow, readMemoryRows, toMemory, type MemoryRow } from '../store/memories.ts';
import type { NewLink, EdgeType, Link, Memory } from '../types.ts';
import { settleStatus, startOf } from './settle-status.ts';
import type { WriteContext } from './write-context.ts';

/** What people state about how memories relate. */

/**
 * How well activation passes a link of which nobody said more. OpenMem's for `contradicts` (which nothing passes, it is only
 * listed) and `same_as`; a parent's or a successor's words are about the same thing, a mention may be in passing.
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

/** States a link, or changes the weight of one that is there; without a weight that one keeps its own. */
export function linkMemories(context: WriteContext, { src, dst, type, weight }: NewLink): Link {
  const { store, now } = context;
  if (type === 'supersedes' || type === 'contradicts') {
    const command = type === 'supersedes' ? 'supersede' : 'contradict';
    throw new EngineError('invalid', `type: ${type} changes more than a link; use ${command} instead`);
  }
  if (src === dst) throw new EngineError('invalid', 'dst: a memory cannot be linked to itself');
  const [from, to] = [getNamed(context, 'src', src), getNamed(context, 'dst', dst)];
  const key = { src: from.seq, dst: to.seq, type };
  putStatedEdge(store, key, weight ?? findEdge(store, key)?.weight ?? DEFAULT_WEIGHTS[type], now);
  return getLink(context, key, to);
}

/** Removes a link; a contradiction whichever way round it is named. What it did to a status is undone. */
export function unlinkMemories(context: WriteContext, { src, dst, type }: Pick<NewLink, 'src' | 'dst' | 'type'>): void {
  const { store } = context;
  const [from, to] = [getNamed(context, 'src', src), getNamed(context, 'dst', dst)];
  const key = type === 'contradicts' ? contradictionOf(from, to) : { src: from.seq, dst: to.seq, type };
  const edge = findEdge(store, key);
  if (edge === undefined) throw new EngineError('not_found', `no link of type ${type} from src to dst`);
  deleteEdge(store, key);
  if (type === 'supersedes') {
    if (listSuccessors(store, edge.dst).length === 0) splitChain(store, edge.dst);
    settleStatus(context, edge.dst);
  }
  if (edge.winner !== null) settleStatus(context, loserOf(edge, edge.winner));
}

/** @returns the old memory as it is now */
export function supersedeMemory(
  context: WriteContext,
  { oldId, newId }: { readonly oldId: string; readonly newId: string },
): Memory {
  const { store, now } = context;
  if (oldId === newId) throw new EngineError('invalid', 'new_id: a memory cannot supersede itself');
  const [older, newer] = [getNamed(context, 'old_id', oldId), getNamed(context, 'new_id', newId)];
  refuseStrangers(older, newer);
  const key: EdgeKey = { src: newer.seq, dst: older.seq, type: 'supersedes' };
  if (findEdge(store, key) !== undefined) return toMemory(older, now);
  refuseCircle(context, older, newer);
  refuseSecondSuccessor(context, older);
  putStatedEdge(store, key, DEFAULT_WEIGHTS.supersedes, now);
  joinChains(store, { older: older.seq, newer: newer.seq });
  settleStatus(context, older.seq, { endsAt: startOf(newer) });
  return toMemory(readMemoryRows(store, [older.seq])[0] as MemoryRow, now);
}

/** Said again without a winner, a contradiction that was decided stays so. @returns the link as `a` sees it */
export function contradictMemories(
  context: WriteContext,
  { a, b, winner }: { readonly a: string; readonly b: string; readonly winner?: string | undefined },
): Link {
  const { store, now } = context;
  if (a === b) throw new EngineError('invalid', 'b: a memory cannot contradict itself');
  if (winner !== undefined && winner !== a && winner !== b) {
    throw new EngineError('invalid', 'winner: expected the id given as a or b');
  }
  const [one, other] = [getNamed(context, 'a', a), getNamed(context, 'b', b)];
  refuseStrangers(one, other);
  const key = contradictionOf(one, other);
  const known = findEdge(store, key);
  if (known === undefined || known.automatic) putStatedEdge(store, key, DEFAULT_WEIGHTS.contradicts, now);
  if (winner !== undefined) {
    putWinner(store, key, winner === a ? one.seq : other.seq, now);
    settleStatus(context, one.seq);
    settleStatus(context, other.seq);
  }
  return getLink(context, key, other);
}

/** A contradiction has no direction: it is stored once, from the older to the newer. */
export function contradictionOf(one: Pick<MemoryRow, 'seq'>, other: Pick<MemoryRow, 'seq'>): EdgeKey {
  return { src: Math.min(one.seq, other.seq), dst: Math.max(one.seq, other.seq), type: 'contradicts' };
}

function loserOf({ src, dst }: Pick<EdgeKey, 'src' | 'dst'>, winner: number): number {
  return winner === src ? dst : src;
}

function getNamed({ store, now }: WriteContext, name: string, id: string): MemoryRow {
  try {
    return getMemoryRow(store, id, now);
  } catch (error) {
    if (isEngineError(error, 'not_found')) throw new EngineError('not_found', `${name}: ${error.message}`);
    throw error;
  }
}

function refuseStrangers(one: MemoryRow, other: MemoryRow): void {
  if (one.user_no !== other.user_no) throw new EngineError('invalid', 'the two memories belong to different users');
}

/** A successor that has expired, and only waits to be erased, gives its place up now. */
function refuseSecondSuccessor(context: WriteContext, older: MemoryRow): void {
  const { store, now } = context;
  for (const successor of readMemoryRows(store, listSuccessors(store, older.seq))) {
    if (successor.expires_at === null || successor.expires_at > now) {
      throw new EngineError(
        'conflict',
        `old_id: already superseded by ${successor.id}; supersede that one, or unlink the two first`,
      );
    }
    deleteEdge(store, { src: successor.seq, dst: older.seq, type: 'supersedes' });
    splitChain(store, older.seq);
    settleStatus(context, older.seq);
  }
}

function refuseCircle({ store }: WriteContext, older: MemoryRow, newer: MemoryRow): void {
  if (chainOf(store, newer.seq) === null) return;
  if (chainOf(store, newer.seq) === chainOf(store, older.seq) && isOnTheWay(store, newer.seq, older.seq)) {
    throw new EngineError('conflict', 'old_id: it supersedes the new one already, so this would close a circle');
  }
}

function getLink({ store }: WriteContext, key: EdgeKey, other: MemoryRow): Link {
  const edge = findEdge(store, key) as NonNullable<ReturnType<typeof findEdge>>;
  return {
    id: other.id,
    type: edge.type,
    direction: edge.dst === other.seq ? 'out' : 'in',
    similarity: edge.similarity,
    weight: edge.weight,
    automatic: edge.automatic,
    createdAt: edge.createdAt,
    updatedAt: edge.updatedAt,
  };
}

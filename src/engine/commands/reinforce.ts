import { recallMemory, reinforceMemory as strengthenMemory } from '../store/dynamics.ts';
import { strengthenWaypoint } from '../store/edges.ts';
import { getMemoryRow, toMemory } from '../store/memories.ts';
import type { BoundOptions, Memory } from '../types.ts';
import { type Quota, refuseOverQuota } from './quota.ts';
import { getBoundMemory } from './within-bounds.ts';
import type { WriteContext } from './write-context.ts';

/**
 * Adds `boost` to the salience of a memory, within one hour at most `OM_REINFORCE_PER_HOUR`, and 0.1 to its strength,
 * each up to 1. If `boost` is 0 or the hour's limit is reached, neither rises. In any case the memory is last seen now.
 * @returns the memory as it is now
 * @throws EngineError `not_found`; `storage_full` over the quota of disk
 */
export function reinforceMemory(
  context: WriteContext,
  {
    id,
    boost,
    withinTags,
    quota = null,
  }: BoundOptions & { readonly id: string; readonly boost: number; readonly quota?: Quota | null },
): Memory {
  const { store, now } = context;
  const { memoryNo } = getBoundMemory(context, id, withinTags);
  refuseOverQuota(context, quota, 0); // Each reinforcement leaves an audit record, which no delete frees.
  const perHour = context.config.OM_REINFORCE_PER_HOUR;
  strengthenMemory(store, memoryNo, { boost, now, perHour });
  return toMemory(getMemoryRow(store, id, now), now);
}

/**
 * What one recall (answered query) changes: the memories that it returned, and the waypoints (automatic links) by which
 * it found them, are reinforced. Memories are given by their `memoryNo`.
 */
export interface RecallEffects {
  readonly memories: readonly number[];
  readonly waypoints: readonly (readonly [from: number, to: number])[];
  /** Time at which the query was answered, Unix ms. */
  readonly at: number;
}

/** Reinforces the memories and waypoints of each recall (answered query). Those that no longer exist are skipped. */
export function applyRecalls(
  { store, config }: WriteContext,
  { recalls }: { readonly recalls: readonly RecallEffects[] },
): void {
  for (const recall of recalls) {
    for (const memoryNo of recall.memories)
      recallMemory(store, memoryNo, { now: recall.at, perHour: config.OM_REINFORCE_PER_HOUR });
    for (const [from, to] of recall.waypoints) strengthenWaypoint(store, from, to, recall.at);
  }
}

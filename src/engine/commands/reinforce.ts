import { recallMemory, reinforceMemory as strengthenMemory } from '../store/dynamics.ts';
import { strengthenWaypoint } from '../store/edges.ts';
import { getMemoryRow, toMemory } from '../store/memories.ts';
import type { Memory } from '../types.ts';
import type { WriteContext } from './write-context.ts';

export function reinforceMemory(
  context: WriteContext,
  { id, boost }: { readonly id: string; readonly boost: number },
): Memory {
  const { store, now } = context;
  strengthenMemory(store, getMemoryRow(store, id, now).seq, boost, now);
  return toMemory(getMemoryRow(store, id, now), now);
}

/** What one recall owes: the memories that it returned and the waypoints that it walked to reach them. */
export interface RecallEffects {
  readonly memories: readonly number[];
  readonly waypoints: readonly (readonly [from: number, to: number])[];
  readonly at: number;
}

/** Applies recalls once each; memories that are gone by now are passed over. */
export function applyRecalls(
  { store }: WriteContext,
  { recalls }: { readonly recalls: readonly RecallEffects[] },
): void {
  for (const recall of recalls) {
    for (const seq of recall.memories) recallMemory(store, seq, recall.at);
    for (const [from, to] of recall.waypoints) strengthenWaypoint(store, from, to, recall.at);
  }
}

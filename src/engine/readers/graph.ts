import { shownGist } from '../entities/skim.ts';
import { type BareGraph, readNeighbourhood, readUserGraph } from '../store/graph.ts';
import { findUserNo } from '../store/items.ts';
import { getMemoryRow } from '../store/memories.ts';
import type { MemoryFilter, MemoryGraph } from '../types.ts';
import type { ReadContext } from './read-context.ts';

type Bounds = Pick<MemoryFilter, 'withinTags'> & { readonly limit: number };

/** Reads what lies around a memory. @throws EngineError `not_found` */
export function neighbourhood(
  { open, clock }: ReadContext,
  { id, ...bounds }: Bounds & { readonly id: string; readonly hops: number },
): MemoryGraph {
  const { store } = open();
  const now = clock.now();
  return store.read(() => {
    const row = getMemoryRow(store, id, now);
    return withGists(readNeighbourhood(store, row.memoryNo, { ...bounds, userId: row.user_id, now }));
  });
}

/** Reads the graph of a user; an unknown user has an empty one. */
export function userGraph(
  { open, clock }: ReadContext,
  { userId, ...bounds }: Bounds & { readonly userId: string },
): MemoryGraph {
  const { store } = open();
  return store.read(() => {
    const userNo = findUserNo(store, userId);
    if (userNo === undefined)
      return { memories: [], entities: [], links: [], mentions: [], relations: [], isCut: false };
    return withGists(readUserGraph(store, userNo, { ...bounds, userId, now: clock.now() }));
  });
}

function withGists(graph: BareGraph): MemoryGraph {
  const memories = graph.memories.map(({ start, title, gist, ...memory }) => ({
    ...memory,
    gist: shownGist({ content: start, title, gist }),
  }));
  return { ...graph, memories };
}

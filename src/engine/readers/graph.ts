import { shownGist } from '../entities/skim.ts';
import { requireBounds } from '../store/bounds.ts';
import { type BareGraph, readNeighbourhood, readUserGraph } from '../store/graph.ts';
import { getMemoryRow } from '../store/memories.ts';
import { createWorkBudget, runWithin } from '../store/work-budget.ts';
import { MAX_GRAPH_BYTES, type MemoryFilter, type MemoryGraph } from '../types.ts';
import type { ReadContext } from './read-context.ts';
import { workLimits } from './work-limits.ts';
import { findUserNo } from '../store/users.ts';

type Bounds = Pick<MemoryFilter, 'withinTags'> & { readonly limit: number };

/**
 * Reads the graph around a memory: the memories and names that lie within `hops` steps of it. A link between memories
 * is a step, and so is the mention of a name. `isCut` of the graph tells whether some were left out: for `limit`, for
 * the size of the graph or because the work budget was used up.
 * @throws EngineError `not_found` if there is no such memory, or if it lacks a tag of `withinTags`
 */
export function neighbourhood(
  { open, clock, config }: ReadContext,
  { id, ...bounds }: Bounds & { readonly id: string; readonly hops: number },
): MemoryGraph {
  const { store } = open();
  const now = clock.now();
  return runWithin(createWorkBudget(workLimits(config)), () =>
    store.read(() => {
      const row = getMemoryRow(store, id, now);
      requireBounds(row, bounds.withinTags);
      return withGists(readNeighbourhood(store, row.memoryNo, { ...bounds, userId: row.user_id, now }));
    }),
  );
}

/**
 * Reads the graph of a user's most salient memories and of the names that they mention, at most `limit` together; it is
 * empty for an unknown user. `isCut` is as in `neighbourhood`.
 */
export function userGraph(
  { open, clock, config }: ReadContext,
  { userId, ...bounds }: Bounds & { readonly userId: string },
): MemoryGraph {
  const { store } = open();
  return runWithin(createWorkBudget(workLimits(config)), () =>
    store.read(() => {
      const userNo = findUserNo(store, userId);
      if (userNo === undefined)
        return { memories: [], entities: [], links: [], mentions: [], relations: [], isCut: false };
      return withGists(readUserGraph(store, userNo, { ...bounds, userId, now: clock.now() }));
    }),
  );
}

function withGists(graph: BareGraph): MemoryGraph {
  const memories = graph.memories.map(({ start, title, gist, ...memory }) => ({
    ...memory,
    gist: shownGist({ content: start, title, gist }),
  }));
  return withinBytes({ ...graph, memories });
}

/**
 * Leaves out the farthest nodes and the last links, mentions and relations of a graph that exceeds `MAX_GRAPH_BYTES`;
 * `isCut` tells whether anything was left out.
 */
function withinBytes(graph: MemoryGraph): MemoryGraph {
  const nodes = [
    ...graph.memories.map((memory) => ({ memory, hop: memory.hop })),
    ...graph.entities.map((entity) => ({ entity, hop: entity.hop })),
  ].sort((a, b) => a.hop - b.hop);
  const kept = fitting(nodes, MAX_GRAPH_BYTES.nodes);
  const memories = kept.flatMap((node) => ('memory' in node ? node.memory : []));
  const entities = kept.flatMap((node) => ('entity' in node ? node.entity : []));
  const ids = new Set(memories.map(({ id }) => id));
  const names = new Set(entities.map(({ name }) => name));
  const lines = {
    links: fitting(
      graph.links.filter(({ src, dst }) => ids.has(src) && ids.has(dst)),
      MAX_GRAPH_BYTES.lines,
    ),
    mentions: fitting(
      graph.mentions.filter(({ memory, entity }) => ids.has(memory) && names.has(entity)),
      MAX_GRAPH_BYTES.lines,
    ),
    relations: fitting(
      graph.relations.filter(({ src, dst }) => names.has(src) && names.has(dst)),
      MAX_GRAPH_BYTES.lines,
    ),
  };
  const isCut =
    graph.isCut ||
    kept.length < nodes.length ||
    (['links', 'mentions', 'relations'] as const).some((kind) => lines[kind].length < graph[kind].length);
  return { memories, entities, ...lines, isCut };
}

/**
 * Returns the leading entries of a list that together fit into `most` bytes as JSON; at least one of a list that is not
 * empty.
 */
function fitting<Entry>(list: readonly Entry[], most: number): Entry[] {
  let bytes = 0;
  const end = list.findIndex((entry, index) => {
    bytes += Buffer.byteLength(JSON.stringify(entry));
    return index > 0 && bytes > most;
  });
  return end === -1 ? [...list] : list.slice(0, end);
}

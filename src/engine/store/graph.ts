/**
 * Reads graphs of memories and entities (names). A graph has a bounded number of nodes and edges, and whole texts are
 * not read. Examined rows count against the work budget of the request. When it is used up, the graph is returned
 * incomplete.
 */

import { MEMORY_STATUSES, type EntityNode, type MemoryGraph, type MemoryNode } from '../types.ts';
import { SALIENCE_AT } from './faded-sql.ts';
import { type CompiledFilter, compileFilter } from './filter.ts';
import type { Store } from './open-store.ts';
import { outerOrder } from './outer-order.ts';
import { hasWorkEnded, readUntilWorkEnds, ROW_BYTES, spendWork } from './work-budget.ts';

/**
 * Greatest number of links, and of mentions, that are followed from one node in each direction: the links with the
 * highest weights, and the newest memories that mention an entity.
 */
const FOLLOWED = 64;
/** Number of links or mentions that one statement reads while those that pass are too few, after the first. */
const STEPS_AT_ONCE = 500;
/** Greatest number of nodes whose edges one statement reads, since the work budget is checked before each statement. */
const NODES_AT_ONCE = 50;
/**
 * Greatest number of edges of one kind (links, mentions, relations) in a graph, as a multiple of its greatest number of
 * nodes.
 */
const LINES_PER_NODE = 4;
/** Number of collected memories at which they are sorted and all but the most salient ones are dropped. */
const SORTED_AT_ONCE = 10_000;
/** Number of characters (Unicode code points) at the beginning of a text from which a gist is derived. */
const GIST_CHARACTERS = 1_000;

/**
 * A memory of a graph without its gist, the one-line description. The gist is derived later from the title and from
 * `start`, the first 1,000 characters of the text.
 */
type BareNode = MemoryNode & { readonly title: string; readonly start: string };
export type BareGraph = Omit<MemoryGraph, 'memories'> & { readonly memories: readonly BareNode[] };

/** The nodes of a graph: memories and entities by number, each with its distance from the start in steps. */
interface Nodes {
  readonly memories: Map<number, number>;
  readonly entities: Map<number, number>;
  isCut: boolean;
}

/**
 * Limits of a graph: the user of its memories, the tags that each of them must have, and the greatest number of nodes;
 * `now` is in Unix ms.
 */
export interface GraphBounds {
  readonly userId: string;
  readonly withinTags?: readonly string[] | undefined;
  readonly limit: number;
  readonly now: number;
}

/**
 * Reads the graph around a memory, up to a distance of `hops` steps. Left out are memories of other users or without
 * one of `withinTags`, expired memories, memories that are not valid, and hidden parts of documents. Memories of every
 * status are included.
 * @param start number of the memory, which is included without a check
 */
export function readNeighbourhood(
  store: Store,
  start: number,
  { hops, ...bounds }: GraphBounds & { readonly hops: number },
): BareGraph {
  const passes = graphFilter(bounds);
  const nodes: Nodes = { memories: new Map([[start, 0]]), entities: new Map(), isCut: false };
  const walk = { store, passes, nodes };
  let [memories, entities] = [[start], [] as number[]];
  for (let hop = 1; hop <= hops && memories.length + entities.length > 0 && !hasWorkEnded(); hop += 1) {
    const linked = [...memories.flatMap((no) => linksOf(walk, no)), ...entities.flatMap((no) => mentionsIn(walk, no))];
    const named = memories.flatMap((no) => entitiesOf(walk, no));
    memories = enter(nodes, nodes.memories, linked, { hop, limit: bounds.limit });
    entities = enter(nodes, nodes.entities, named, { hop, limit: bounds.limit });
  }
  return describe(store, nodes, bounds, passes);
}

/**
 * Reads a graph of a user's most salient memories, which are at most three quarters of `limit`, and of the names that
 * the largest number of these memories mention.
 */
export function readUserGraph(store: Store, userNo: number, bounds: GraphBounds): BareGraph {
  const passes = graphFilter(bounds);
  const most = Math.max(1, Math.floor(bounds.limit * 0.75));
  const salient = mostSalient(store, passes, { userNo, count: most + 1 });
  const memoryNos = salient.memoryNos;
  const shown = memoryNos.slice(0, most);
  const room = bounds.limit - shown.length;
  const named = store
    .prepare(
      `SELECT x.entity_no FROM json_each(?) AS wanted CROSS JOIN entity_mentions x ON x.memory = wanted.value
       CROSS JOIN entities n ON n.entity_no = x.entity_no
       GROUP BY x.entity_no, n.name ORDER BY count(*) DESC, n.name LIMIT ?`,
    )
    .pluck()
    .all(JSON.stringify(shown), room + 1) as number[];
  const nodes: Nodes = {
    memories: new Map(shown.map((no) => [no, 0])),
    entities: new Map(named.slice(0, room).map((no) => [no, 0])),
    isCut: salient.isCut || memoryNos.length > most || named.length > room,
  };
  return describe(store, nodes, bounds, passes);
}

/**
 * Lists the `count` most salient memories of a user that pass a filter. It examines the user's memories, the newest
 * first, until the work budget is used up; `isCut` is then true.
 */
function mostSalient(
  store: Store,
  passes: CompiledFilter,
  { userNo, count }: { readonly userNo: number; readonly count: number },
): { readonly memoryNos: number[]; readonly isCut: boolean } {
  const statement = store
    .prepare(
      `SELECT m.seq, d.salience_now FROM memories m INDEXED BY memories_by_user
         CROSS JOIN memory_dynamics d ON d.seq = m.seq
       WHERE m.user_no = ? AND ${passes.sql} ORDER BY m.seq DESC`,
    )
    .raw();
  type Place = readonly [memoryNo: number, salience: number];
  let best: Place[] = [];
  const keepBest = () => {
    best = best.sort((a, b) => b[1] - a[1] || b[0] - a[0]).slice(0, count);
  };
  const { isCut } = readUntilWorkEnds(function* (): Generator<never> {
    for (const place of statement.iterate(userNo, ...passes.parameters) as Iterable<Place>) {
      spendWork(ROW_BYTES);
      best.push(place);
      if (best.length >= SORTED_AT_ONCE + count) keepBest();
    }
  });
  keepBest();
  return { memoryNos: best.map(([memoryNo]) => memoryNo), isCut };
}

function graphFilter({ userId, withinTags, now }: GraphBounds): CompiledFilter {
  return compileFilter({ userIds: [userId], statuses: MEMORY_STATUSES, withinTags }, now);
}

/**
 * Adds the nodes in `found` that `into` (the graph's memories, or its entities) does not have yet, at the distance
 * `hop`, until the graph has `limit` nodes together.
 * @returns the nodes that were added
 */
function enter(
  nodes: Nodes,
  into: Map<number, number>,
  found: readonly number[],
  { hop, limit }: { readonly hop: number; readonly limit: number },
): number[] {
  const fresh = [...new Set(found)].filter((no) => !into.has(no));
  const room = limit - nodes.memories.size - nodes.entities.size;
  if (fresh.length > room) nodes.isCut = true;
  const entered = fresh.slice(0, room);
  for (const no of entered) into.set(no, hop);
  return entered;
}

/** A memory at the other end of a link, or one that mentions an entity. */
interface Step {
  readonly no: number;
  /** Weight of the link; 0 for a mention. */
  readonly weight: number;
  /** True if the memory passes the filter; 0 or false if it does not. */
  readonly passes: unknown;
}
type Place = Pick<Step, 'no' | 'weight'>;
/** A place before every link, as weights are at most 1. */
const BEFORE_LINKS: Place = { no: 0, weight: 2 };
const BEFORE_MENTIONS: Place = { no: Number.MAX_SAFE_INTEGER, weight: 0 };

interface Walk {
  readonly store: Store;
  readonly passes: CompiledFilter;
  readonly nodes: Nodes;
}

function linksOf(walk: Walk, memoryNo: number): number[] {
  // In the order of the index; SQL has no comparison of places in which one column falls and the other rises.
  const towards = (own: 'src' | 'dst', other: 'src' | 'dst') =>
    follow(walk, BEFORE_LINKS, {
      near: `SELECT * FROM (SELECT ${other} AS no, weight FROM edges WHERE ${own} = ? AND weight = ? AND ${other} > ?
          ORDER BY ${other} LIMIT ?) AS equal
        UNION ALL SELECT * FROM (SELECT ${other} AS no, weight FROM edges WHERE ${own} = ? AND weight < ?
          ORDER BY weight DESC, ${other} LIMIT ?) AS lighter
        ORDER BY weight DESC, no LIMIT ?`,
      order: 'near.weight DESC, near.no',
      parameters: ({ weight, no }, limit) => [memoryNo, weight, no, limit, memoryNo, weight, limit, limit],
    });
  return [...towards('src', 'dst'), ...towards('dst', 'src')];
}

function mentionsIn(walk: Walk, entityNo: number): number[] {
  return follow(walk, BEFORE_MENTIONS, {
    near: `SELECT memory AS no, 0 AS weight FROM entity_mentions WHERE entity_no = ? AND memory < ?
      ORDER BY memory DESC LIMIT ?`,
    order: 'near.no DESC',
    parameters: ({ no }, limit) => [entityNo, no, limit],
  });
}

/** A SELECT of the next steps after a place, at most `limit`, by number and weight, and their order. */
interface Steps {
  readonly near: string;
  readonly order: string;
  readonly parameters: (place: Place, limit: number) => readonly number[];
}

/**
 * Returns the first memories that pass, at most `FOLLOWED`, among those that a SELECT finds after a place. The others
 * are read past: a limit on them would tell how many there are.
 */
function follow({ store, passes, nodes }: Walk, start: Place, { near, order, parameters }: Steps): number[] {
  const statement = store.prepare(
    `SELECT near.no, near.weight, (${passes.sql}) AS passes FROM (${near}) AS near
     CROSS JOIN memories m ON m.seq = near.no CROSS JOIN memory_dynamics d ON d.seq = m.seq
     ${outerOrder(store, order)}`,
  );
  const passing: number[] = [];
  let limit = FOLLOWED + 1;
  for (let place: Place | undefined = start; place !== undefined && !hasWorkEnded();) {
    const steps = statement.all(...passes.parameters, ...parameters(place, limit)) as Step[];
    if (!spendWork(ROW_BYTES * (1 + steps.length))) nodes.isCut = true;
    passing.push(...steps.filter((step) => step.passes).map(({ no }) => no));
    place = steps.length < limit || passing.length > FOLLOWED ? undefined : steps.at(-1);
    limit = STEPS_AT_ONCE;
  }
  if (passing.length > FOLLOWED) nodes.isCut = true;
  return passing.slice(0, FOLLOWED);
}

function entitiesOf({ store, nodes }: Walk, memoryNo: number): number[] {
  // Not by their numbers, which follow the first mentions, also those in memories outside of the bounds.
  const named = store
    .prepare(
      `SELECT x.entity_no FROM entity_mentions x CROSS JOIN entities n ON n.entity_no = x.entity_no
       WHERE x.memory = ? ORDER BY n.name LIMIT ?`,
    )
    .pluck()
    .all(memoryNo, FOLLOWED + 1) as number[];
  if (!spendWork(ROW_BYTES * (1 + named.length))) nodes.isCut = true;
  if (named.length > FOLLOWED) nodes.isCut = true;
  return named.slice(0, FOLLOWED);
}

/**
 * Reads the data of the nodes and the edges between them. An entity gets the spelling of a memory in the graph that
 * mentions it; an entity without such a mention is left out.
 */
function describe(store: Store, nodes: Nodes, { limit, now }: GraphBounds, passes: CompiledFilter): BareGraph {
  const shown = { memories: [...nodes.memories.keys()], entities: [...nodes.entities.keys()] };
  const [memoryNos, entityNos] = [JSON.stringify(shown.memories), JSON.stringify(shown.entities)];
  const most = LINES_PER_NODE * limit;
  let isCut = nodes.isCut || hasWorkEnded();
  /**
   * Reads the edges of one kind, group by group of their nodes, until the work budget is used up. Notes in `isCut`
   * whether that ended it, or there are more edges than the graph may have.
   */
  const lines = <Line>(from: readonly number[], to: readonly number[], read: (group: string) => Iterable<Line>) => {
    const found = readUntilWorkEnds(function* (): Generator<Line> {
      for (let at = 0; at < from.length; at += NODES_AT_ONCE) {
        const group = from.slice(at, at + NODES_AT_ONCE);
        // Each of these nodes is looked up beside each of the others.
        spendWork(ROW_BYTES * group.length * (1 + to.length));
        yield* read(JSON.stringify(group));
      }
    });
    if (found.isCut || found.rows.length > most) isCut = true;
    return found.rows;
  };
  const memories = store
    .prepare(
      `SELECT m.seq AS no, m.id, m.gist, m.title, substr(m.content, 1, ${GIST_CHARACTERS}) AS start,
         min(1.0, ${SALIENCE_AT}) AS salience,
         d.primary_sector AS sector, d.status, m.event_time AS eventTime, m.created_at AS createdAt
       FROM json_each(?) AS wanted CROSS JOIN memories m ON m.seq = wanted.value
       CROSS JOIN memory_dynamics d ON d.seq = m.seq ORDER BY wanted.key`,
    )
    .all(now, memoryNos) as (Omit<BareNode, 'hop'> & { no: number })[];
  type Link = MemoryGraph['links'][number] & { readonly srcNo: number; readonly dstNo: number };
  const linksFrom = store.prepare(
    `SELECT e.src AS srcNo, e.dst AS dstNo, s.id AS src, t.id AS dst, e.type, e.weight, e.similarity
     FROM json_each(?) AS wanted
     CROSS JOIN edges e ON e.src = wanted.value AND e.dst IN (SELECT value FROM json_each(?))
     CROSS JOIN memories s ON s.seq = e.src CROSS JOIN memories t ON t.seq = e.dst
     ORDER BY e.weight DESC, e.src, e.dst, e.type LIMIT ?`,
  );
  const links = lines(shown.memories, shown.memories, (group) => linksFrom.all(group, memoryNos, most + 1) as Link[])
    .sort((a, b) => b.weight - a.weight || a.srcNo - b.srcNo || a.dstNo - b.dstNo || (a.type < b.type ? -1 : 1))
    .slice(0, most)
    .map(({ srcNo: _src, dstNo: _dst, ...link }) => link);
  type Mention = { no: number; memory: string; entity: string; label: string; type: string };
  const mentionsBy = store.prepare(
    `SELECT x.entity_no AS no, m.id AS memory, n.name AS entity, x.label, x.type FROM json_each(?) AS wanted
     CROSS JOIN entity_mentions x ON x.memory = wanted.value AND x.entity_no IN (SELECT value FROM json_each(?))
     CROSS JOIN entities n ON n.entity_no = x.entity_no CROSS JOIN memories m ON m.seq = x.memory
     ORDER BY wanted.key, n.name LIMIT ?`,
  );
  const mentions = lines(
    shown.memories,
    shown.entities,
    (group) => mentionsBy.all(group, entityNos, most + 1) as Mention[],
  ).slice(0, most);
  const relations = lines(shown.entities, shown.entities, (group) =>
    distinctRelations(store, passes, { group, entityNos, most: most + 1 }),
  ).slice(0, most);
  const entities = new Map<number, EntityNode>();
  for (const { no, entity: name, label, type } of mentions)
    if (!entities.has(no)) entities.set(no, { name, label, type, hop: nodes.entities.get(no)! });
  const names = new Set([...entities.values()].map(({ name }) => name));
  return {
    memories: memories.map(({ no, ...memory }) => ({ ...memory, hop: nodes.memories.get(no)! })),
    entities: [...entities.values()],
    links,
    mentions: mentions.map(({ memory, entity }) => ({ memory, entity })),
    relations: relations.filter(({ src, dst }) => names.has(src) && names.has(dst)),
    isCut,
  };
}

/**
 * Reads the relations from the entities of a group to the entities of the graph, each relation once. Many memories may
 * state the same relation, and each of these statements is examined.
 */
function* distinctRelations(
  store: Store,
  passes: CompiledFilter,
  { group, entityNos, most }: { readonly group: string; readonly entityNos: string; readonly most: number },
): Generator<MemoryGraph['relations'][number]> {
  const statement = store.prepare(
    `SELECT a.name AS src, b.name AS dst, r.relation FROM json_each(?) AS wanted
     CROSS JOIN entity_relations r ON r.src = wanted.value AND r.dst IN (SELECT value FROM json_each(?))
     CROSS JOIN memories m ON m.seq = r.memory CROSS JOIN memory_dynamics d ON d.seq = m.seq
     CROSS JOIN entities a ON a.entity_no = r.src CROSS JOIN entities b ON b.entity_no = r.dst
     WHERE ${passes.sql} ${outerOrder(store, 'wanted.key, r.dst, r.relation, r.memory')}`,
  );
  const known = new Set<string>();
  const stated = statement.iterate(group, entityNos, ...passes.parameters);
  for (const relation of stated as Iterable<MemoryGraph['relations'][number]>) {
    spendWork(ROW_BYTES);
    const key = JSON.stringify(relation);
    if (known.has(key)) continue;
    known.add(key);
    yield relation;
    if (known.size >= most) return;
  }
}

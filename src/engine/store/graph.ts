/**
 * Reads graphs of memories and names. Each has a bounded number of nodes and lines, and whole texts are not read. What
 * is looked at for them counts as work, and a graph whose work budget ends is cut there.
 */

import { DAY_MS } from '../dynamics.ts';
import { MEMORY_STATUSES, type EntityNode, type MemoryGraph, type MemoryNode } from '../types.ts';
import { type CompiledFilter, compileFilter } from './filter.ts';
import type { Store } from './open-store.ts';
import { listPassingOf } from './passing-memories.ts';
import { hasWorkEnded, readUntilWorkEnds, ROW_BYTES, spendWork } from './work-budget.ts';

/**
 * Greatest number of links, and of mentions, that are followed from one node in each direction, heaviest links first.
 */
const FOLLOWED = 64;
/** Most nodes whose lines are read by one statement, which the work budget cannot interrupt. */
const NODES_AT_ONCE = 50;
/** Most lines of one kind for each node that a graph may have. */
const LINES_PER_NODE = 4;
/** Most memories that are gathered before all but the most salient ones are dropped. */
const SORTED_AT_ONCE = 10_000;
/** Most characters of a text from which a gist is derived. */
const GIST_CHARACTERS = 1_000;

/**
 * A memory of a graph before its gist is derived from the title and from `start`, the first 1,000 characters of its
 * text.
 */
type BareNode = MemoryNode & { readonly title: string; readonly start: string };
export type BareGraph = Omit<MemoryGraph, 'memories'> & { readonly memories: readonly BareNode[] };

/** The nodes of a graph: memories and entities by number, each with its number of steps from the start. */
interface Nodes {
  readonly memories: Map<number, number>;
  readonly entities: Map<number, number>;
  isCut: boolean;
}

/**
 * Bounds of a graph: the user of its memories, the tags that they must have, and the greatest number of nodes; `now` is
 * in Unix ms.
 */
export interface GraphBounds {
  readonly userId: string;
  readonly withinTags?: readonly string[] | undefined;
  readonly limit: number;
  readonly now: number;
}

/**
 * Reads the graph around a memory, at most `hops` steps far. Memories of other users, expired ones, and ones that are
 * not valid are left out.
 */
export function readNeighbourhood(
  store: Store,
  start: number,
  { hops, ...bounds }: GraphBounds & { readonly hops: number },
): BareGraph {
  const passes = graphFilter(bounds);
  const nodes: Nodes = { memories: new Map([[start, 0]]), entities: new Map(), isCut: false };
  let [memories, entities] = [[start], [] as number[]];
  for (let hop = 1; hop <= hops && memories.length + entities.length > 0 && !hasWorkEnded(); hop += 1) {
    const linked = [
      ...memories.flatMap((no) => linksOf(store, no, nodes)),
      ...entities.flatMap((no) => mentionsIn(store, no, nodes)),
    ];
    const named = memories.flatMap((no) => entitiesOf(store, no, nodes));
    memories = enter(nodes, nodes.memories, passingInOrder(store, passes, linked), { hop, limit: bounds.limit });
    entities = enter(nodes, nodes.entities, named, { hop, limit: bounds.limit });
  }
  return describe(store, nodes, bounds, passes);
}

/**
 * Reads the graph of a user's most salient memories, at most three quarters of `limit`, and of the names that most of
 * them mention.
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
       GROUP BY x.entity_no ORDER BY count(*) DESC, x.entity_no LIMIT ?`,
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
 * Lists the `count` most salient memories of a user that pass. It looks at each of the user's memories, the newest
 * first, until the work budget ends.
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
 * Adds nodes that the graph does not have, in their order, until it has `limit` nodes.
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

function linksOf(store: Store, memoryNo: number, nodes: Nodes): number[] {
  const outward = store.prepare('SELECT dst FROM edges WHERE src = ? ORDER BY weight DESC LIMIT ?').pluck();
  const inward = store.prepare('SELECT src FROM edges WHERE dst = ? ORDER BY weight DESC LIMIT ?').pluck();
  return [
    ...followed(outward.all(memoryNo, FOLLOWED + 1), nodes),
    ...followed(inward.all(memoryNo, FOLLOWED + 1), nodes),
  ];
}

function entitiesOf(store: Store, memoryNo: number, nodes: Nodes): number[] {
  const named = store
    .prepare('SELECT entity_no FROM entity_mentions WHERE memory = ? ORDER BY entity_no LIMIT ?')
    .pluck();
  return followed(named.all(memoryNo, FOLLOWED + 1), nodes);
}

function mentionsIn(store: Store, entityNo: number, nodes: Nodes): number[] {
  const latest = store
    .prepare('SELECT memory FROM entity_mentions WHERE entity_no = ? ORDER BY memory DESC LIMIT ?')
    .pluck();
  return followed(latest.all(entityNo, FOLLOWED + 1), nodes);
}

function followed(found: unknown[], nodes: Nodes): number[] {
  if (!spendWork(ROW_BYTES * (1 + found.length))) nodes.isCut = true;
  if (found.length > FOLLOWED) nodes.isCut = true;
  return found.slice(0, FOLLOWED) as number[];
}

function passingInOrder(store: Store, passes: CompiledFilter, memoryNos: readonly number[]): number[] {
  const passing = new Set(listPassingOf(store, passes, [...new Set(memoryNos)]));
  return memoryNos.filter((no) => passing.has(no));
}

/** Reads the nodes and the lines between them. A name gets the spelling of one of the graph's memories. */
function describe(store: Store, nodes: Nodes, { limit, now }: GraphBounds, passes: CompiledFilter): BareGraph {
  const shown = { memories: [...nodes.memories.keys()], entities: [...nodes.entities.keys()] };
  const [memoryNos, entityNos] = [JSON.stringify(shown.memories), JSON.stringify(shown.entities)];
  const most = LINES_PER_NODE * limit;
  let isCut = nodes.isCut || hasWorkEnded();
  /** Reads lines from each group of nodes, and of all of them at most one more than the graph may have of one kind. */
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
         min(1.0, d.salience * exp(-d.decay_lambda * max(0, ? - d.salience_at) / ${DAY_MS}.0)) AS salience,
         d.primary_sector AS sector, d.status,
         m.event_time AS eventTime, m.created_at AS createdAt
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
     CROSS JOIN entities n ON n.entity_no = x.entity_no CROSS JOIN memories m ON m.seq = x.memory LIMIT ?`,
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
 * Reads what joins the names of a group with others, each relation once. Any number of memories may state one relation,
 * and each of them is looked at.
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
     WHERE ${passes.sql}`,
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

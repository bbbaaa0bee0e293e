/** Graphs of memories and names, each with bounded numbers of nodes and lines, read without whole texts. */
import { DAY_MS } from '../dynamics.ts';
import { MEMORY_STATUSES, type EntityNode, type MemoryGraph, type MemoryNode } from '../types.ts';
import { type CompiledFilter, compileFilter } from './filter.ts';
import type { Store } from './open-store.ts';
import { listPassingOf } from './passing-memories.ts';

/** Most links, and most mentions, that are followed from one node in one direction, the strongest first. */
const FOLLOWED = 64;
/** Most lines of one kind for each node that a graph may have. */
const LINES_PER_NODE = 4;
/** Most characters of a text from which a gist is derived. */
const GIST_CHARACTERS = 1_000;

/** A memory node before its gist is derived from the title and from `start`, the beginning of its text. */
type BareNode = MemoryNode & { readonly title: string; readonly start: string };
export type BareGraph = Omit<MemoryGraph, 'memories'> & { readonly memories: readonly BareNode[] };

/** The nodes of a graph by number, with their hops. */
interface Nodes {
  readonly memories: Map<number, number>;
  readonly entities: Map<number, number>;
  isCut: boolean;
}

/** What a graph may show. */
export interface GraphBounds {
  readonly userId: string;
  readonly withinTags?: readonly string[] | undefined;
  readonly limit: number;
  readonly now: number;
}

/** Reads what lies around a memory of a user. Memories of other users and expired ones are not reached. */
export function readNeighbourhood(
  store: Store,
  start: number,
  { hops, ...bounds }: GraphBounds & { readonly hops: number },
): BareGraph {
  const passes = graphFilter(bounds);
  const nodes: Nodes = { memories: new Map([[start, 0]]), entities: new Map(), isCut: false };
  let [memories, entities] = [[start], [] as number[]];
  for (let hop = 1; hop <= hops && memories.length + entities.length > 0; hop += 1) {
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

/** Reads the graph of the memories of a user that are most salient, and of the names that most of them mention. */
export function readUserGraph(store: Store, userNo: number, bounds: GraphBounds): BareGraph {
  const passes = graphFilter(bounds);
  const most = Math.max(1, Math.floor(bounds.limit * 0.75));
  const memoryNos = store
    .prepare(
      `SELECT m.seq FROM memories m INDEXED BY memories_by_user CROSS JOIN memory_dynamics d ON d.seq = m.seq
       WHERE m.user_no = ? AND ${passes.sql} ORDER BY d.salience_now DESC, m.seq DESC LIMIT ?`,
    )
    .pluck()
    .all(userNo, ...passes.parameters, most + 1) as number[];
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
    isCut: memoryNos.length > most || named.length > room,
  };
  return describe(store, nodes, bounds, passes);
}

function graphFilter({ userId, withinTags, now }: GraphBounds): CompiledFilter {
  return compileFilter({ userIds: [userId], statuses: MEMORY_STATUSES, withinTags }, now);
}

/** Enters new nodes in their order, up to the bound on all nodes. Returns those that were entered. */
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
  if (found.length > FOLLOWED) nodes.isCut = true;
  return found.slice(0, FOLLOWED) as number[];
}

function passingInOrder(store: Store, passes: CompiledFilter, memoryNos: readonly number[]): number[] {
  const passing = new Set(listPassingOf(store, passes, [...new Set(memoryNos)]));
  return memoryNos.filter((no) => passing.has(no));
}

/** Reads the nodes and the lines between them. A name is spelled as a memory of the graph spells it. */
function describe(store: Store, nodes: Nodes, { limit, now }: GraphBounds, passes: CompiledFilter): BareGraph {
  const [memoryNos, entityNos] = [
    JSON.stringify([...nodes.memories.keys()]),
    JSON.stringify([...nodes.entities.keys()]),
  ];
  const most = LINES_PER_NODE * limit;
  let { isCut } = nodes;
  const lines = <Line>(sql: string, ...parameters: unknown[]): Line[] => {
    const found = store.prepare(sql).all(...parameters, most + 1) as Line[];
    if (found.length > most) isCut = true;
    return found.slice(0, most);
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
  const links = lines<MemoryGraph['links'][number]>(
    `SELECT s.id AS src, t.id AS dst, e.type, e.weight, e.similarity FROM json_each(?) AS wanted
     CROSS JOIN edges e ON e.src = wanted.value AND e.dst IN (SELECT value FROM json_each(?))
     CROSS JOIN memories s ON s.seq = e.src CROSS JOIN memories t ON t.seq = e.dst
     ORDER BY e.weight DESC, e.src, e.dst, e.type LIMIT ?`,
    memoryNos,
    memoryNos,
  );
  const mentions = lines<{ no: number; memory: string; entity: string; label: string; type: string }>(
    `SELECT x.entity_no AS no, m.id AS memory, n.name AS entity, x.label, x.type FROM json_each(?) AS wanted
     CROSS JOIN entity_mentions x ON x.memory = wanted.value AND x.entity_no IN (SELECT value FROM json_each(?))
     CROSS JOIN entities n ON n.entity_no = x.entity_no CROSS JOIN memories m ON m.seq = x.memory LIMIT ?`,
    memoryNos,
    entityNos,
  );
  const relations = lines<MemoryGraph['relations'][number]>(
    `SELECT DISTINCT a.name AS src, b.name AS dst, r.relation FROM json_each(?) AS wanted
     CROSS JOIN entity_relations r ON r.src = wanted.value AND r.dst IN (SELECT value FROM json_each(?))
     CROSS JOIN memories m ON m.seq = r.memory CROSS JOIN memory_dynamics d ON d.seq = m.seq
     CROSS JOIN entities a ON a.entity_no = r.src CROSS JOIN entities b ON b.entity_no = r.dst
     WHERE ${passes.sql} LIMIT ?`,
    entityNos,
    entityNos,
    ...passes.parameters,
  );
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

import type { EntityDetails, EntitySummary } from '../types.ts';
import type { EntityGraph } from '../entities/extract.ts';
import type { CompiledFilter } from './filter.ts';
import type { Store } from './open-store.ts';

/** The knowledge graph: which memories mention what, and what they state about two of these. */

/** Puts what a memory says in the place of what it said before. */
export function putEntities(
  store: Store,
  { memory, userNo }: { readonly memory: number; readonly userNo: number },
  { entities, relations }: EntityGraph,
): void {
  eraseEntities(store, memory);
  if (entities.length === 0) return;
  const rows = store
    .prepare(
      `INSERT INTO entities (user_no, name, label, type, mentions)
       SELECT ?, value ->> 0, value ->> 1, value ->> 2, 1 FROM json_each(?) WHERE true
       ON CONFLICT (name, user_no) DO UPDATE
         SET mentions = mentions + 1, type = iif(type = 'other', excluded.type, type)
       RETURNING entity_no AS entityNo, name`,
    )
    .all(userNo, JSON.stringify(entities.map(({ name, label, type }) => [name, label, type]))) as {
    entityNo: number;
    name: string;
  }[];
  store
    .prepare('INSERT INTO entity_mentions (entity_no, memory) SELECT value, ? FROM json_each(?)')
    .run(memory, JSON.stringify(rows.map(({ entityNo }) => entityNo)));
  if (relations.length === 0) return;
  const numbers = new Map(rows.map(({ entityNo, name }) => [name, entityNo]));
  store
    .prepare(
      `INSERT INTO entity_relations (src, dst, relation, memory)
       SELECT value ->> 0, value ->> 1, value ->> 2, ? FROM json_each(?)`,
    )
    .run(memory, JSON.stringify(relations.map(({ from, to, type }) => [numbers.get(from), numbers.get(to), type])));
}

/**
 * Removes what a memory says; a name that no memory mentions any more goes with it, as it is personal data like the
 * rest.
 */
export function eraseEntities(store: Store, memory: number): void {
  const rows = store.prepare('SELECT entity_no AS entityNo FROM entity_mentions WHERE memory = ?').all(memory) as {
    entityNo: number;
  }[];
  if (rows.length === 0) return;
  const numbers = JSON.stringify(rows.map(({ entityNo }) => entityNo));
  store.prepare('DELETE FROM entity_relations WHERE memory = ?').run(memory);
  store.prepare('DELETE FROM entity_mentions WHERE memory = ?').run(memory);
  store
    .prepare('UPDATE entities SET mentions = mentions - 1 WHERE entity_no IN (SELECT value FROM json_each(?))')
    .run(numbers);
  store
    .prepare('DELETE FROM entities WHERE entity_no IN (SELECT value FROM json_each(?)) AND mentions <= 0')
    .run(numbers);
}

/** Removes the whole graph. */
export function clearEntities(store: Store): void {
  for (const table of ['entity_relations', 'entity_mentions', 'entities']) store.prepare(`DELETE FROM ${table}`).run();
}

/** Whether any memory states a relation: else the graph leads nowhere, and nothing need be looked up in it. */
export function hasRelations(store: Store): boolean {
  return store.prepare('SELECT 1 FROM entity_relations LIMIT 1').get() !== undefined;
}

export interface NamedEntity {
  readonly entityNo: number;
  readonly label: string;
}

/** Entities with one of these names, of these users or of all, the rarest first. Hubs are left out: see `IS_HUB`. */
export function findEntities(
  store: Store,
  names: readonly string[],
  userIds: readonly string[] | undefined,
  limit: number,
): NamedEntity[] {
  const wanted = JSON.stringify(names);
  const statement =
    userIds === undefined
      ? store.prepare(
          `SELECT entity_no AS entityNo, label FROM (
             SELECT e.* FROM json_each(?) AS wanted CROSS JOIN entities e ON e.name = wanted.value
             LIMIT ${READ_MOST}) AS e
           CROSS JOIN users u ON u.user_no = e.user_no
           WHERE NOT ${IS_HUB} ORDER BY mentions, entity_no LIMIT ?`,
        )
      : store.prepare(
          `SELECT entity_no AS entityNo, label
           FROM json_each(?) AS owner CROSS JOIN users u ON u.user_id = owner.value
             CROSS JOIN json_each(?) AS wanted CROSS JOIN entities e ON e.name = wanted.value AND e.user_no = u.user_no
           WHERE NOT ${IS_HUB} ORDER BY mentions, entity_no LIMIT ?`,
        );
  const parameters = userIds === undefined ? [wanted, limit] : [JSON.stringify(userIds), wanted, limit];
  return statement.all(...parameters) as NamedEntity[];
}

const HUB_MENTIONS = 50;
const HUB_SHARE = 0.05;
/** An entity that a good part of its user's memories mention says nothing about any of them. Aliases: `e`, `u`. */
const IS_HUB = `(e.mentions > ${HUB_MENTIONS} AND e.mentions > ${HUB_SHARE} * u.memories)`;
/** Rows that a statement looks at where a name belongs to many users, and relations that it follows. */
const READ_MOST = 256;

export interface RelatedEntity {
  readonly entityNo: number;
  readonly label: string;
  readonly relation: string;
  readonly mentions: number;
  /** Memories of its user. */
  readonly memories: number;
}

/** Entities one relation away, in either direction, as memories state it that pass the filter. Hubs are left out. */
export function relatedEntities(store: Store, entityNos: readonly number[], filter: CompiledFilter): RelatedEntity[] {
  const numbers = JSON.stringify(entityNos);
  return store
    .prepare(
      `WITH stated AS (
         SELECT * FROM (
           SELECT r.dst AS related, r.relation, r.memory
           FROM json_each(?) AS origin CROSS JOIN entity_relations r ON r.src = origin.value LIMIT ${READ_MOST})
         UNION ALL
         SELECT * FROM (
           SELECT r.src, r.relation, r.memory
           FROM json_each(?) AS origin CROSS JOIN entity_relations r ON r.dst = origin.value LIMIT ${READ_MOST})
       )
       SELECT DISTINCT e.entity_no AS entityNo, e.label, stated.relation, e.mentions, u.memories
       FROM stated CROSS JOIN entities e ON e.entity_no = stated.related CROSS JOIN users u ON u.user_no = e.user_no
         CROSS JOIN memories m ON m.seq = stated.memory CROSS JOIN memory_dynamics d ON d.seq = stated.memory
       WHERE NOT ${IS_HUB} AND related NOT IN (SELECT value FROM json_each(?)) AND ${filter.sql}
       ORDER BY entityNo, relation`,
    )
    .all(numbers, numbers, numbers, ...filter.parameters) as RelatedEntity[];
}

/** Mentions of one entity that are looked at, the latest ones. */
const MENTIONS_READ = 100;

/** The latest memories that mention each of these entities and pass the filter, in descending order of number. */
export function mentioningMemories(
  store: Store,
  entityNos: readonly number[],
  filter: CompiledFilter,
  perEntity: number,
): { readonly entityNo: number; readonly memories: readonly number[] }[] {
  const rows = store
    .prepare(
      `SELECT wanted.value AS entityNo, (
         SELECT json_group_array(seq) FROM (
           SELECT m.seq FROM (
             SELECT memory FROM entity_mentions WHERE entity_no = wanted.value
             ORDER BY memory DESC LIMIT ${MENTIONS_READ}) AS em
             CROSS JOIN memories m ON m.seq = em.memory CROSS JOIN memory_dynamics d ON d.seq = em.memory
           WHERE ${filter.sql} ORDER BY em.memory DESC LIMIT ?)) AS memories
       FROM json_each(?) AS wanted ORDER BY wanted.key`,
    )
    .all(...filter.parameters, perEntity, JSON.stringify(entityNos)) as { entityNo: number; memories: string }[];
  return rows.map(({ entityNo, memories }) => ({ entityNo, memories: JSON.parse(memories) as number[] }));
}

/**
 * Names that begin so, or one as a whole; most mentioned first, ties by name; a name of several users is counted once.
 */
export function listEntities(
  store: Store,
  { prefix, userId }: { readonly prefix: string; readonly userId: string | undefined },
  { limit, offset }: { readonly limit: number; readonly offset: number },
  match: 'prefix' | 'whole' = 'prefix',
): EntitySummary[] {
  const end = match === 'whole' ? prefix : `${prefix}${LAST_CHARACTER}`;
  const owned = userId === undefined ? '' : 'AND user_no = (SELECT user_no FROM users WHERE user_id = ?)';
  return store
    .prepare(
      `SELECT name, min(label) AS label, min(type) AS type, sum(mentions) AS mentions
       FROM entities WHERE name BETWEEN ? AND ? ${owned}
       GROUP BY name ORDER BY mentions DESC, name LIMIT ? OFFSET ?`,
    )
    .all(prefix, end, ...(userId === undefined ? [] : [userId]), limit, offset) as EntitySummary[];
}

const LAST_CHARACTER = '\u{10ffff}';
const SHOWN_MOST = 100;

/** One name with what memories that pass the filter say about it; undefined if none mentions it. */
export function findEntity(
  store: Store,
  name: string,
  { userId, filter }: { readonly userId: string | undefined; readonly filter: CompiledFilter },
): EntityDetails | undefined {
  const mentioned = store
    .prepare(
      `SELECT m.id FROM entities e CROSS JOIN entity_mentions em ON em.entity_no = e.entity_no
         CROSS JOIN memories m ON m.seq = em.memory CROSS JOIN memory_dynamics d ON d.seq = em.memory
       WHERE e.name = ? AND ${filter.sql} ORDER BY em.memory DESC LIMIT ${SHOWN_MOST}`,
    )
    .all(name, ...filter.parameters) as { id: string }[];
  if (mentioned.length === 0) return undefined;
  const summary = listEntities(store, { prefix: name, userId }, { limit: 1, offset: 0 }, 'whole');
  const relations = store
    .prepare(
      `WITH stated AS (
         SELECT r.relation, 'out' AS direction, r.dst AS other, r.memory
         FROM entities e CROSS JOIN entity_relations r ON r.src = e.entity_no WHERE e.name = ?
         UNION ALL
         SELECT r.relation, 'in', r.src, r.memory
         FROM entities e CROSS JOIN entity_relations r ON r.dst = e.entity_no WHERE e.name = ?
       )
       SELECT stated.relation AS type, stated.direction, o.name, min(o.label) AS label, count(*) AS memories
       FROM stated CROSS JOIN entities o ON o.entity_no = stated.other
         CROSS JOIN memories m ON m.seq = stated.memory CROSS JOIN memory_dynamics d ON d.seq = stated.memory
       WHERE ${filter.sql}
       GROUP BY stated.relation, stated.direction, o.name
       ORDER BY memories DESC, o.name, stated.relation, stated.direction LIMIT ${SHOWN_MOST}`,
    )
    .all(name, name, ...filter.parameters) as EntityDetails['relations'];
  return { ...(summary[0] as EntitySummary), relations, memoryIds: mentioned.map(({ id }) => id) };
}

/**
 * The knowledge graph: which memories mention which entities (names), and the relations between two entities that
 * memories state.
 */

import type { CompiledFilter } from './filter.ts';
import type { Store } from './open-store.ts';
import { outerOrder } from './outer-order.ts';

/** SQL that selects a row if a memory mentions any entity; its parameter is the number of the memory. */
export const SELECT_ANY_MENTION = 'SELECT 1 FROM entity_mentions WHERE memory = ? LIMIT 1';

/** Tells whether a memory mentions any entity. */
export function hasMentions(store: Store, memoryNo: number): boolean {
  return store.prepare(SELECT_ANY_MENTION).get(memoryNo) !== undefined;
}

/**
 * Deletes the mentions and relations of these memories. A name that no other memory mentions is personal data and is
 * deleted, too. A name that stays gets its spelling and type from the first memories that still mention it, since its
 * old spelling may be that of a deleted memory. Several memories are erased at once because the chunks of a document
 * share most of their names. Call inside a write.
 */
export function eraseEntities(store: Store, memories: readonly number[]): void {
  const among = JSON.stringify(memories);
  const rows = store
    .prepare(
      'DELETE FROM entity_mentions WHERE memory IN (SELECT value FROM json_each(?)) RETURNING entity_no AS entityNo',
    )
    .all(among) as { entityNo: number }[];
  if (rows.length === 0) return;
  const lost = new Map<number, number>();
  for (const { entityNo } of rows) lost.set(entityNo, (lost.get(entityNo) ?? 0) + 1);
  const numbers = JSON.stringify([...lost.keys()]);
  store.prepare('DELETE FROM entity_relations WHERE memory IN (SELECT value FROM json_each(?))').run(among);
  store
    .prepare(
      `UPDATE entities SET mentions = mentions - CAST(lost.value ->> 1 AS INTEGER)
       FROM json_each(?) AS lost WHERE entity_no = CAST(lost.value ->> 0 AS INTEGER)`,
    )
    .run(JSON.stringify([...lost]));
  store
    .prepare('DELETE FROM entities WHERE entity_no IN (SELECT value FROM json_each(?)) AND mentions <= 0')
    .run(numbers);
  store
    .prepare(
      `UPDATE entities AS e SET
         label = (SELECT label FROM entity_mentions WHERE entity_no = e.entity_no ORDER BY memory LIMIT 1),
         type = coalesce((
           SELECT type FROM (
             SELECT type FROM entity_mentions WHERE entity_no = e.entity_no ORDER BY memory LIMIT ${MAX_READ})
           WHERE type <> 'other' LIMIT 1), 'other')
       WHERE entity_no IN (SELECT value FROM json_each(?))`,
    )
    .run(numbers);
}

/** Removes all entities, mentions and relations of the file. Call inside a write. */
export function clearEntities(store: Store): void {
  for (const table of ['entity_relations', 'entity_mentions', 'entities']) store.prepare(`DELETE FROM ${table}`).run();
}

/** Tells whether any memory states a relation. If none does, no lookup in the graph is needed. */
export function hasRelations(store: Store): boolean {
  return store.prepare('SELECT 1 FROM entity_relations LIMIT 1').get() !== undefined;
}

/** An entity with its number and its label, which is the spelling in the first memory that still mentions it. */
export interface NamedEntity {
  readonly entityNo: number;
  readonly label: string;
  /** Whether any memory states a relation between the entity and another one. */
  readonly isRelated: boolean;
}

/**
 * Finds at most `limit` entities with one of these names, those with the fewest mentions first. Hubs are left out:
 * entities with more than 50 mentions that more than 5 % of their user's memories mention.
 * @param names names in folded form
 * @param userIds users whose entities are found; undefined for all users, with at most 256 entities of each name
 */
export function findEntities(
  store: Store,
  names: readonly string[],
  userIds: readonly string[] | undefined,
  limit: number,
): NamedEntity[] {
  const wanted = JSON.stringify(names);
  const columns = `e.entity_no AS entityNo, e.label, ${IS_RELATED} AS isRelated`;
  const statement =
    userIds === undefined
      ? store.prepare(
          `SELECT ${columns}
           FROM json_each(?) AS wanted CROSS JOIN json_each((
             SELECT json_group_array(entity_no) FROM (
               SELECT e.entity_no FROM entities e CROSS JOIN users u ON u.user_no = e.user_no
               WHERE e.name = wanted.value AND NOT ${IS_HUB} LIMIT ${MAX_READ}))) AS named
             CROSS JOIN entities e ON e.entity_no = CAST(named.value AS INTEGER)
           ORDER BY e.mentions, e.entity_no LIMIT ?`,
        )
      : store.prepare(
          `SELECT ${columns}
           FROM json_each(?) AS owner CROSS JOIN users u ON u.user_id = owner.value
             CROSS JOIN json_each(?) AS wanted CROSS JOIN entities e ON e.name = wanted.value AND e.user_no = u.user_no
           WHERE NOT ${IS_HUB} ORDER BY e.mentions, e.entity_no LIMIT ?`,
        );
  const parameters = userIds === undefined ? [wanted, limit] : [JSON.stringify(userIds), wanted, limit];
  const rows = statement.all(...parameters) as (NamedEntity & { isRelated: 0 | 1 | boolean })[];
  return rows.map((row) => ({ ...row, isRelated: Boolean(row.isRelated) }));
}

/** SQL condition that a memory states a relation of the entity with the alias `e`, in either direction. */
const IS_RELATED = `(EXISTS (SELECT 1 FROM entity_relations WHERE src = e.entity_no)
  OR EXISTS (SELECT 1 FROM entity_relations WHERE dst = e.entity_no))`;

/** Number of mentions up to which an entity is not a hub, however few memories its user has. */
const HUB_MENTIONS = 50;
/** Share of a user's memories above which an entity that they mention is a hub. */
const HUB_SHARE = 0.05;
/**
 * SQL condition that an entity is a hub, over the aliases `e` (entities) and `u` (users). A name that many of a user's
 * memories mention says nothing about any one of them.
 */
const IS_HUB = `(e.mentions > ${HUB_MENTIONS} AND e.mentions > ${HUB_SHARE} * u.memories)`;
/**
 * Greatest number of entities with one name that are read, since many users may have the name; of relations that are
 * followed from an entity in each direction; and of mentions that are read to find the type of an entity.
 */
export const MAX_READ = 256;
/** Greatest number of mentions or relations of an entity to which a filter is applied. */
export const MAX_LOOKED_AT = 2_000;

/** An entity that a relation connects to another one. */
export interface RelatedEntity {
  readonly entityNo: number;
  readonly label: string;
  /** Type of the relation, such as `uses`, in whichever direction it leads. */
  readonly relation: string;
  /** Number of memories that mention the entity. */
  readonly mentions: number;
  /** Number of all memories of the entity's user. */
  readonly memories: number;
}

/**
 * Finds the entities that relations connect to these, in either direction, if a memory that passes the filter states
 * the relation. These entities themselves and hubs are left out. For each entity, at most 256 passing relations among
 * the first 2,000 in each direction are followed. An entity is listed once for each type of relation that leads to it.
 */
export function relatedEntities(store: Store, entityNos: readonly number[], filter: CompiledFilter): RelatedEntity[] {
  const numbers = JSON.stringify(entityNos);
  return store
    .prepare(
      `WITH stated AS (
         ${passingRelations(store, 'src', 'dst', filter)}
         UNION ALL
         ${passingRelations(store, 'dst', 'src', filter)}
       )
       SELECT DISTINCT e.entity_no AS entityNo, e.label, stated.relation, e.mentions, u.memories
       FROM stated CROSS JOIN entities e ON e.entity_no = stated.related CROSS JOIN users u ON u.user_no = e.user_no
       WHERE NOT ${IS_HUB} AND related NOT IN (SELECT value FROM json_each(?))
       ORDER BY entityNo, relation`,
    )
    .all(numbers, ...filter.parameters, numbers, ...filter.parameters, numbers) as RelatedEntity[];
}

/**
 * Returns the SQL for the relations of entities in one direction. The relations pass through JSON, because SQLite has a
 * lateral join only with a table-valued function, and each entity needs a limit of its own. PostgreSQL has lateral
 * joins, and takes five times as long for the JSON as for the rest.
 */
function passingRelations(store: Store, from: 'src' | 'dst', to: 'src' | 'dst', filter: CompiledFilter): string {
  const passing = `SELECT DISTINCT r.related, r.relation FROM (
               SELECT ${to} AS related, relation, memory FROM entity_relations WHERE ${from} = origin.value
               ORDER BY ${to}, relation, memory LIMIT ${MAX_LOOKED_AT}
             ) AS r CROSS JOIN memories m ON m.seq = r.memory CROSS JOIN memory_dynamics d ON d.seq = r.memory
             WHERE ${filter.sql}${outerOrder(store, 'r.related, r.relation')} LIMIT ${MAX_READ}`;
  if (store.ahead !== null)
    return `SELECT near.related, near.relation FROM json_each(?) AS origin CROSS JOIN LATERAL (${passing}) AS near`;
  return `SELECT CAST(near.value ->> 0 AS INTEGER) AS related, near.value ->> 1 AS relation
         FROM json_each(?) AS origin CROSS JOIN json_each((
           SELECT json_group_array(json_array(related, relation)) FROM (
             ${passing}))) AS near`;
}

/**
 * Finds the latest memories that mention each of these entities and pass the filter, by descending number: at most
 * `perEntity`, among the latest 2,000 mentions.
 * @returns one entry for each entity, in the order of `entityNos`; its `memories` may be empty
 */
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
             ORDER BY memory DESC LIMIT ${MAX_LOOKED_AT}) AS em
             CROSS JOIN memories m ON m.seq = em.memory CROSS JOIN memory_dynamics d ON d.seq = em.memory
           WHERE ${filter.sql}${outerOrder(store, 'em.memory DESC')} LIMIT ?)) AS memories
       FROM json_each(?) AS wanted ORDER BY wanted.key`,
    )
    .all(...filter.parameters, perEntity, JSON.stringify(entityNos)) as { entityNo: number; memories: string }[];
  return rows.map(({ entityNo, memories }) => ({ entityNo, memories: JSON.parse(memories) as number[] }));
}

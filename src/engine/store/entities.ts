/** The knowledge graph: mentions of entities in memories, and relations that memories state between two entities. */
import type { EntityDetails, EntitySummary } from '../types.ts';
import type { EntityGraph } from '../entities/extract.ts';
import type { CompiledFilter } from './filter.ts';
import type { Store } from './open-store.ts';

/**
 * Replaces the entities and relations that a memory states; empty lists remove them. Relations name their ends by names
 * of `entities`. Call inside a write.
 */
export function putEntities(
  store: Store,
  { memory, userNo }: { readonly memory: number; readonly userNo: number },
  { entities, relations }: EntityGraph,
): void {
  if (hasMentions(store, memory)) eraseEntities(store, [memory]);
  if (entities.length === 0) return;
  const count = store
    .prepare(
      `INSERT INTO entities (user_no, name, label, type, mentions) VALUES (?, ?, ?, ?, 1)
       ON CONFLICT (name, user_no) DO UPDATE
         SET mentions = mentions + 1, type = iif(type = 'other', excluded.type, type)
       RETURNING entity_no`,
    )
    .pluck();
  const mention = store.prepare('INSERT INTO entity_mentions (entity_no, memory, label, type) VALUES (?, ?, ?, ?)');
  const numbers = new Map<string, number>();
  for (const { name, label, type } of entities) {
    const entityNo = count.get(userNo, name, label, type) as number;
    mention.run(entityNo, memory, label, type);
    numbers.set(name, entityNo);
  }
  if (relations.length === 0) return;
  store
    .prepare(
      `INSERT INTO entity_relations (src, dst, relation, memory)
       SELECT CAST(value ->> 0 AS INTEGER), CAST(value ->> 1 AS INTEGER), value ->> 2, ? FROM json_each(?)`,
    )
    .run(memory, JSON.stringify(relations.map(({ from, to, type }) => [numbers.get(from), numbers.get(to), type])));
}

function hasMentions(store: Store, memoryNo: number): boolean {
  return store.prepare('SELECT 1 FROM entity_mentions WHERE memory = ? LIMIT 1').get(memoryNo) !== undefined;
}

/**
 * Deletes the mentions and relations that these memories state. A name that no other memory mentions is deleted as
 * well, as it is personal data. The spelling is personal data too, so a name that remains is written as the first
 * remaining memory writes it. Many memories are erased at once, since the parts of a document share most of their
 * names, and each name is then settled once. Call inside a write.
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

/** Tells whether any memory states a relation. Without one the graph leads nowhere, and no lookup in it is needed. */
export function hasRelations(store: Store): boolean {
  return store.prepare('SELECT 1 FROM entity_relations LIMIT 1').get() !== undefined;
}

/** An entity with its number and its label: the spelling in the first memory that still mentions it. */
export interface NamedEntity {
  readonly entityNo: number;
  readonly label: string;
}

/**
 * Finds at most `limit` entities with one of these names, fewest mentions first. Hubs, which a large share of their
 * user's memories mention, are left out.
 * @param names folded names
 * @param userIds users whose entities are found; undefined for all users, with at most MAX_READ entities of each name
 */
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
          `SELECT e.entity_no AS entityNo, e.label
           FROM json_each(?) AS wanted CROSS JOIN json_each((
             SELECT json_group_array(entity_no) FROM (
               SELECT e.entity_no FROM entities e CROSS JOIN users u ON u.user_no = e.user_no
               WHERE e.name = wanted.value AND NOT ${IS_HUB} LIMIT ${MAX_READ}))) AS named
             CROSS JOIN entities e ON e.entity_no = CAST(named.value AS INTEGER)
           ORDER BY e.mentions, e.entity_no LIMIT ?`,
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

/** Mentions up to which an entity is no hub, however few memories its user has. */
const HUB_MENTIONS = 50;
/** Share of a user's memories above which an entity is a hub. */
const HUB_SHARE = 0.05;
/**
 * SQL condition for a hub: an entity that a large share of its user's memories mention says nothing about any one of
 * them. Aliases: `e`, `u`.
 */
const IS_HUB = `(e.mentions > ${HUB_MENTIONS} AND e.mentions > ${HUB_SHARE} * u.memories)`;
/**
 * Most entities that are read of one name, which many users may have; most relations followed from an entity in each
 * direction; and most mentions that are read to find the type of an entity.
 */
const MAX_READ = 256;
/** Most mentions or relations of an entity that the filter is applied to. */
const MAX_LOOKED_AT = 2_000;

/** An entity that a relation connects with another. */
export interface RelatedEntity {
  readonly entityNo: number;
  readonly label: string;
  /** Name of the relation, whichever of the two entities it leads from. */
  readonly relation: string;
  /** Number of memories that mention the entity. */
  readonly mentions: number;
  /** Number of memories that the entity's user has. */
  readonly memories: number;
}

/**
 * Finds the entities one relation away from these, in either direction, as stated by memories that pass the filter.
 * These themselves and hubs are left out. An entity is listed once for each relation by which it is reached.
 */
export function relatedEntities(store: Store, entityNos: readonly number[], filter: CompiledFilter): RelatedEntity[] {
  const numbers = JSON.stringify(entityNos);
  return store
    .prepare(
      `WITH stated AS (
         ${passingRelations('src', 'dst', filter)}
         UNION ALL
         ${passingRelations('dst', 'src', filter)}
       )
       SELECT DISTINCT e.entity_no AS entityNo, e.label, stated.relation, e.mentions, u.memories
       FROM stated CROSS JOIN entities e ON e.entity_no = stated.related CROSS JOIN users u ON u.user_no = e.user_no
       WHERE NOT ${IS_HUB} AND related NOT IN (SELECT value FROM json_each(?))
       ORDER BY entityNo, relation`,
    )
    .all(numbers, ...filter.parameters, numbers, ...filter.parameters, numbers) as RelatedEntity[];
}

/**
 * SQL for the relations of one direction. They pass through JSON, since SQLite joins laterally only to a table-valued
 * function; so each origin is bounded alone.
 */
function passingRelations(from: 'src' | 'dst', to: 'src' | 'dst', filter: CompiledFilter): string {
  return `SELECT CAST(near.value ->> 0 AS INTEGER) AS related, near.value ->> 1 AS relation
         FROM json_each(?) AS origin CROSS JOIN json_each((
           SELECT json_group_array(json_array(related, relation)) FROM (
             SELECT DISTINCT r.related, r.relation FROM (
               SELECT ${to} AS related, relation, memory FROM entity_relations WHERE ${from} = origin.value
               LIMIT ${MAX_LOOKED_AT}
             ) AS r CROSS JOIN memories m ON m.seq = r.memory CROSS JOIN memory_dynamics d ON d.seq = r.memory
             WHERE ${filter.sql} LIMIT ${MAX_READ}))) AS near`;
}

/**
 * Finds the latest memories that mention each of these entities and pass the filter, in descending order of number, at
 * most `perEntity` of each. That is the order of the index, so reading ends with the last memory that is wanted.
 * @returns one item for each entity, in the order of `entityNos`; `memories` may be empty
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
           WHERE ${filter.sql} LIMIT ?)) AS memories
       FROM json_each(?) AS wanted ORDER BY wanted.key`,
    )
    .all(...filter.parameters, perEntity, JSON.stringify(entityNos)) as { entityNo: number; memories: string }[];
  return rows.map(({ entityNo, memories }) => ({ entityNo, memories: JSON.parse(memories) as number[] }));
}

/** Selection of the entities of a list. */
export interface EntityListing {
  /** Folded beginning of the names, or folded whole name; '' for all names. */
  readonly prefix: string;
  /** User whose entities are listed; undefined for all users. */
  readonly userId: string | undefined;
  /** Filter that a memory must pass for its mentions to count. */
  readonly filter: CompiledFilter;
}

/**
 * Lists names that begin with the prefix and are mentioned by a memory that passes the filter; with `match` 'whole',
 * the one name that equals the prefix. The order is by mentions, most first, then by name; a name of several users is
 * listed once. Pages are cut by the mentions of all memories, hidden ones included, since counting only the others
 * would read every mention. The returned counts leave hidden memories out, up to the bound on mentions read for a name.
 */
export function listEntities(
  store: Store,
  { prefix, userId, filter }: EntityListing,
  { limit, offset }: { readonly limit: number; readonly offset: number },
  match: 'prefix' | 'whole' = 'prefix',
): EntitySummary[] {
  const end = match === 'whole' ? prefix : `${prefix}${LAST_CHARACTER}`;
  const owned = userId === undefined ? '' : 'AND user_no = (SELECT user_no FROM users WHERE user_id = ?)';
  const counted = Math.min(MAX_LOOKED_AT, Math.max(MIN_COUNTED, Math.floor(MAX_COUNTED / limit)));
  const passing = `SELECT 1 FROM (
         SELECT em.memory FROM json_each(named.numbers) AS e
         CROSS JOIN entity_mentions em ON em.entity_no = CAST(e.value AS INTEGER) LIMIT ?
       ) AS em CROSS JOIN memories m ON m.seq = em.memory CROSS JOIN memory_dynamics d ON d.seq = em.memory
       WHERE ${filter.sql}`;
  const rows = store
    .prepare(
      `SELECT name, label, type, mentions - min(mentions, ?) + (SELECT count(*) FROM (${passing})) AS mentions
       FROM (
         SELECT name, min(label) AS label, min(type) AS type, sum(mentions) AS mentions,
           json_group_array(entity_no) AS numbers
         FROM (SELECT * FROM entities WHERE name BETWEEN ? AND ? ${owned} ORDER BY name LIMIT ${NAMES_READ})
         GROUP BY name ORDER BY mentions DESC, name LIMIT ${NAMES_READ}
       ) AS named
       WHERE EXISTS (${passing}) LIMIT ? OFFSET ?`,
    )
    .all(
      counted,
      counted,
      ...filter.parameters,
      prefix,
      end,
      ...(userId === undefined ? [] : [userId]),
      MAX_LOOKED_AT,
      ...filter.parameters,
      limit,
      offset,
    ) as EntitySummary[];
  return rows.sort((a, b) => b.mentions - a.mentions || (a.name < b.name ? -1 : 1));
}

const LAST_CHARACTER = '\u{10ffff}';
/**
 * Names that a list chooses from, in alphabetical order, which takes some 50 ms. To see names beyond them a longer
 * prefix or a user is needed.
 */
const NAMES_READ = 50_000;
/** Mentions that are read for the counts of one page, divided among its names. */
const MAX_COUNTED = 20_000;
/** Fewest mentions that are read for the count of each name, however many names a page has. */
const MIN_COUNTED = 20;
/** Most memories and most relations that the details of an entity show. */
const MAX_SHOWN = 100;
/** Most statements of relations that the details of an entity are read from, in each direction. */
const STATED_READ = 5_000;

/**
 * Describes a name by the memories that pass the filter; undefined if none of them mentions it.
 * @param name folded name
 * @param userId user whose memories are meant; undefined for all users
 */
export function findEntity(
  store: Store,
  name: string,
  { userId, filter }: { readonly userId: string | undefined; readonly filter: CompiledFilter },
): EntityDetails | undefined {
  const owned = userId === undefined ? '' : 'AND user_no = (SELECT user_no FROM users WHERE user_id = ?)';
  const entityNos = store
    .prepare(`SELECT entity_no FROM entities WHERE name = ? ${owned} LIMIT ${MAX_READ}`)
    .pluck()
    .all(name, ...(userId === undefined ? [] : [userId])) as number[];
  const mentioning = mentioningMemories(store, entityNos, filter, MAX_SHOWN).flatMap(({ memories }) => memories);
  const latest = mentioning.sort((a, b) => b - a).slice(0, MAX_SHOWN);
  const [summary] = listEntities(store, { prefix: name, userId, filter }, { limit: 1, offset: 0 }, 'whole');
  if (latest.length === 0 || summary === undefined) return undefined;
  const memoryIds = store
    .prepare(
      'SELECT m.id FROM json_each(?) AS wanted CROSS JOIN memories m ON m.seq = wanted.value ORDER BY wanted.key',
    )
    .pluck()
    .all(JSON.stringify(latest)) as string[];
  const numbers = JSON.stringify(entityNos);
  const relations = store
    .prepare(
      `WITH stated AS (
         SELECT * FROM (
           SELECT r.relation, 'out' AS direction, r.dst AS other, r.memory
           FROM json_each(?) AS e CROSS JOIN entity_relations r ON r.src = e.value LIMIT ${STATED_READ})
         UNION ALL
         SELECT * FROM (
           SELECT r.relation, 'in', r.src, r.memory
           FROM json_each(?) AS e CROSS JOIN entity_relations r ON r.dst = e.value LIMIT ${STATED_READ})
       )
       SELECT stated.relation AS type, stated.direction, o.name, min(o.label) AS label, count(*) AS memories
       FROM stated CROSS JOIN entities o ON o.entity_no = stated.other
         CROSS JOIN memories m ON m.seq = stated.memory CROSS JOIN memory_dynamics d ON d.seq = stated.memory
       WHERE ${filter.sql}
       GROUP BY stated.relation, stated.direction, o.name
       ORDER BY memories DESC, o.name, stated.relation, stated.direction LIMIT ${MAX_SHOWN}`,
    )
    .all(numbers, numbers, ...filter.parameters) as EntityDetails['relations'];
  return { ...summary, relations, memoryIds };
}

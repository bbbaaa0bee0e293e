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
  if (hasMentions(store, memory)) eraseEntities(store, [memory]);
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
  const numbers = new Map(rows.map(({ entityNo, name }) => [name, entityNo]));
  store
    .prepare(
      `INSERT INTO entity_mentions (entity_no, memory, label, type)
       SELECT value ->> 0, ?, value ->> 1, value ->> 2 FROM json_each(?)`,
    )
    .run(memory, JSON.stringify(entities.map(({ name, label, type }) => [numbers.get(name), label, type])));
  if (relations.length === 0) return;
  store
    .prepare(
      `INSERT INTO entity_relations (src, dst, relation, memory)
       SELECT value ->> 0, value ->> 1, value ->> 2, ? FROM json_each(?)`,
    )
    .run(memory, JSON.stringify(relations.map(({ from, to, type }) => [numbers.get(from), numbers.get(to), type])));
}

function hasMentions(store: Store, memory: number): boolean {
  return store.prepare('SELECT 1 FROM entity_mentions WHERE memory = ? LIMIT 1').get(memory) !== undefined;
}

/**
 * Removes what memories say; a name that no memory mentions any more goes with them, as it is personal data like the
 * rest. So is its spelling: what remains of a name is written as the first of the remaining memories writes it. Of many memories at
 * once, since the parts of a document share most of their names, each of which is then settled once.
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
      `UPDATE entities SET mentions = mentions - (lost.value ->> 1)
       FROM json_each(?) AS lost WHERE entity_no = lost.value ->> 0`,
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
             SELECT type FROM entity_mentions WHERE entity_no = e.entity_no ORDER BY memory LIMIT ${READ_MOST})
           WHERE type <> 'other' LIMIT 1), 'other')
       WHERE entity_no IN (SELECT value FROM json_each(?))`,
    )
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
          `SELECT e.entity_no AS entityNo, e.label
           FROM json_each(?) AS wanted CROSS JOIN json_each((
             SELECT json_group_array(entity_no) FROM (
               SELECT e.entity_no FROM entities e CROSS JOIN users u ON u.user_no = e.user_no
               WHERE e.name = wanted.value AND NOT ${IS_HUB} LIMIT ${READ_MOST}))) AS named
             CROSS JOIN entities e ON e.entity_no = named.value
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

const HUB_MENTIONS = 50;
const HUB_SHARE = 0.05;
/** An entity that a good part of its user's memories mention says nothing about any of them. Aliases: `e`, `u`. */
const IS_HUB = `(e.mentions > ${HUB_MENTIONS} AND e.mentions > ${HUB_SHARE} * u.memories)`;
/** Users whose name one is that belongs to many, relations that are followed from an entity in each direction. */
const READ_MOST = 256;
/** Mentions and relations of an entity that are looked at for those that pass a filter. */
const LOOKED_AT_MOST = 2_000;

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
         ${passingRelations('src', 'dst', filter)}
         UNION ALL
         ${passingRelations('dst', 'src', filter)}
       )
       SELECT DISTINCT e.entity_no AS entityNo, e.label, stated.relation, e.mentions, u.memories
       FROM stated CROSS JOIN entities e ON e.entity_no = stated.related CROSS JOIN users u ON u.user_no = e.user_no
       WHERE NOT ${IS_HUB} AND related NOT IN (SELECT value FROM json_each(?))
       ORDER BY entityNo, relation`,
    )
    .all(...[numbers, ...filter.parameters], ...[numbers, ...filter.parameters], numbers) as RelatedEntity[];
}

/** As JSON, since SQLite has no lateral join but to a table-valued function: each origin's are bounded alone. */
function passingRelations(from: 'src' | 'dst', to: 'src' | 'dst', filter: CompiledFilter): string {
  return `SELECT near.value ->> 0 AS related, near.value ->> 1 AS relation
         FROM json_each(?) AS origin CROSS JOIN json_each((
           SELECT json_group_array(json_array(related, relation)) FROM (
             SELECT DISTINCT r.related, r.relation FROM (
               SELECT ${to} AS related, relation, memory FROM entity_relations WHERE ${from} = origin.value
               LIMIT ${LOOKED_AT_MOST}
             ) AS r CROSS JOIN memories m ON m.seq = r.memory CROSS JOIN memory_dynamics d ON d.seq = r.memory
             WHERE ${filter.sql} LIMIT ${READ_MOST}))) AS near`;
}

/**
 * The latest memories that mention each of these entities and pass the filter, in descending order of number: that of the index, so
 * that the reading ends with the last one that is wanted.
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
             ORDER BY memory DESC LIMIT ${LOOKED_AT_MOST}) AS em
             CROSS JOIN memories m ON m.seq = em.memory CROSS JOIN memory_dynamics d ON d.seq = em.memory
           WHERE ${filter.sql} LIMIT ?)) AS memories
       FROM json_each(?) AS wanted ORDER BY wanted.key`,
    )
    .all(...filter.parameters, perEntity, JSON.stringify(entityNos)) as { entityNo: number; memories: string }[];
  return rows.map(({ entityNo, memories }) => ({ entityNo, memories: JSON.parse(memories) as number[] }));
}

export interface EntityListing {
  readonly prefix: string;
  readonly userId: string | undefined;
  /** Which memories count. */
  readonly filter: CompiledFilter;
}

/**
 * Names that begin so, or one as a whole, where a memory that passes the filter mentions them; most mentioned first, ties by name; a
 * name of several users is counted once. Pages follow the mentions of all memories, hidden ones too, as counting the others would
 * read every mention; what is returned counts without them, as far as mentions of a name are looked at.
 */
export function listEntities(
  store: Store,
  { prefix, userId, filter }: EntityListing,
  { limit, offset }: { readonly limit: number; readonly offset: number },
  match: 'prefix' | 'whole' = 'prefix',
): EntitySummary[] {
  const end = match === 'whole' ? prefix : `${prefix}${LAST_CHARACTER}`;
  const owned = userId === undefined ? '' : 'AND user_no = (SELECT user_no FROM users WHERE user_id = ?)';
  const counted = Math.min(LOOKED_AT_MOST, Math.max(COUNTED_LEAST, Math.floor(COUNTED_MOST / limit)));
  const passing = `SELECT 1 FROM (
         SELECT em.memory FROM json_each(named.numbers) AS e CROSS JOIN entity_mentions em ON em.entity_no = e.value LIMIT ?
       ) AS em CROSS JOIN memories m ON m.seq = em.memory CROSS JOIN memory_dynamics d ON d.seq = em.memory
       WHERE ${filter.sql}`;
  const rows = store
    .prepare(
      `SELECT name, label, type, mentions - min(mentions, ?) + (SELECT count(*) FROM (${passing})) AS mentions
       FROM (
         SELECT name, min(label) AS label, min(type) AS type, sum(mentions) AS mentions, json_group_array(entity_no) AS numbers
         FROM (SELECT * FROM entities WHERE name BETWEEN ? AND ? ${owned} ORDER BY name LIMIT ${NAMES_READ})
         GROUP BY name ORDER BY mentions DESC, name LIMIT ${NAMES_READ}
       ) AS named
       WHERE EXISTS (${passing}) LIMIT ? OFFSET ?`,
    )
    .all(
      counted,
      ...[counted, ...filter.parameters],
      ...[prefix, end, ...(userId === undefined ? [] : [userId])],
      ...[LOOKED_AT_MOST, ...filter.parameters],
      limit,
      offset,
    ) as EntitySummary[];
  return rows.sort((a, b) => b.mentions - a.mentions || (a.name < b.name ? -1 : 1));
}

const LAST_CHARACTER = '\u{10ffff}';
/** Names that a list chooses from, in their own order: beyond them a longer prefix or a user is needed. Some 50 ms. */
const NAMES_READ = 50_000;
/** Mentions that are looked at for the counts of a page, and at least for each of its names. */
const COUNTED_MOST = 20_000;
const COUNTED_LEAST = 20;
const SHOWN_MOST = 100;
/** Statements of relations that are looked at in each direction. */
const STATED_READ = 5_000;

/** One name with what memories that pass the filter say about it; undefined if none mentions it. */
export function findEntity(
  store: Store,
  name: string,
  { userId, filter }: { readonly userId: string | undefined; readonly filter: CompiledFilter },
): EntityDetails | undefined {
  const owned = userId === undefined ? '' : 'AND user_no = (SELECT user_no FROM users WHERE user_id = ?)';
  const entityNos = store
    .prepare(`SELECT entity_no FROM entities WHERE name = ? ${owned} LIMIT ${READ_MOST}`)
    .pluck()
    .all(name, ...(userId === undefined ? [] : [userId])) as number[];
  const mentioning = mentioningMemories(store, entityNos, filter, SHOWN_MOST).flatMap(({ memories }) => memories);
  const latest = mentioning.sort((a, b) => b - a).slice(0, SHOWN_MOST);
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
       ORDER BY memories DESC, o.name, stated.relation, stated.direction LIMIT ${SHOWN_MOST}`,
    )
    .all(numbers, numbers, ...filter.parameters) as EntityDetails['relations'];
  return { ...summary, relations, memoryIds };
}

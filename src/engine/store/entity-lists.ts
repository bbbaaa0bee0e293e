/**
 * Lists entities (names that memories mention), and describes one of them. Each memory is judged by the filter once,
 * however many names it mentions, since a filter may parse its tags.
 */

import type { EntityDetails, EntityList, EntitySummary } from '../types.ts';
import { MAX_LOOKED_AT, MAX_READ, mentioningMemories } from './entities.ts';
import { describeWithinTags, type EntityListing, LAST_CHARACTER, listWithinTags } from './entities-within-tags.ts';
import type { CompiledFilter } from './filter.ts';
import type { Store } from './open-store.ts';
import { createJudge, type Judge } from './passing-memories.ts';
import { hasWorkEnded, ROW_BYTES, spendWork } from './work-budget.ts';

/** A name of a list; `entityNos` are its entities, one for each user who has the name. */
interface ListedName extends EntitySummary {
  readonly entityNos: readonly number[];
  /** Numbers of mentions of each entity, in the order of `entityNos`. */
  readonly mentionsEach: readonly number[];
}

/** A name that at least one memory which passes the filter mentions, with the number of such memories found so far. */
interface SeenName extends ListedName {
  readonly seen: number;
}

/**
 * Greatest number of entities from which a list is chosen, the first in alphabetical order; more would take over 50 ms.
 * To list further names, a caller must give a longer prefix or a user.
 */
const NAMES_READ = 50_000;
/**
 * Factor by which the number of names that are read grows from one read to the next, since each read sorts all names
 * again.
 */
const NAMES_GROWTH = 8;
/** Greatest number of names whose first mentions are looked at together. */
const NAMES_AT_ONCE = 500;
/**
 * About the greatest number of mentions that are read to count the memories of all names on a page, divided among the
 * names. Names are also looked at in groups until they have this number of mentions together.
 */
const MAX_COUNTED = 20_000;
/**
 * Least number of mentions that are read to count the memories of one name, however many names a page has. To find out
 * whether a name has any memory that passes, so many mentions are read first.
 */
const MIN_COUNTED = 20;
/** Greatest number of memories, and of relations, in the details of an entity. */
const MAX_SHOWN = 100;
/** Greatest number of stated relations, in each direction, from which the details of an entity are made. */
const STATED_READ = 5_000;

/**
 * Lists the names that begin with the prefix and that at least one memory mentions which passes the filter. Names with
 * the most mentions come first; ties are sorted by name. A name of several users is listed once. The order and the
 * pages depend on the mentions by all memories, whether they pass or not. The returned counts leave out memories that
 * do not pass, as far as they are examined: at most 2,000 mentions of each name and about 20,000 on a page. Only the
 * first 50,000 entities in alphabetical order that begin with the prefix are considered. If the work budget is used up,
 * names may be missing and counts too low, and `isCut` is true. Call inside a read.
 *
 * With a filter that has tags, nothing depends on memories that do not pass, unless the work budget is used up: order,
 * pages, spellings, types and counts are those of the memories that pass, and all names and mentions are considered.
 */
export function listEntities(
  store: Store,
  { filter, ...listing }: EntityListing & { readonly filter: CompiledFilter },
  { limit, offset }: { readonly limit: number; readonly offset: number },
): EntityList {
  const judge = createJudge(store, filter);
  if (isBoundToTags(filter)) {
    const items = listWithinTags(store, listing, { limit, offset, judge });
    return { items, isCut: hasWorkEnded() };
  }
  const seen: SeenName[] = [];
  const wanted = offset + limit;
  for (let at = 0, count = wanted; seen.length < wanted && !hasWorkEnded(); count *= NAMES_GROWTH) {
    const names = readNames(store, listing, { limit: count, offset: at });
    for (let from = 0; from < names.length && seen.length < wanted; from += NAMES_AT_ONCE)
      seen.push(...seenAmong(store, names.slice(from, from + NAMES_AT_ONCE), judge));
    if (names.length < count) break;
    at += names.length;
  }
  const most = Math.min(MAX_LOOKED_AT, Math.max(MIN_COUNTED, Math.floor(MAX_COUNTED / limit)));
  const items = summaries(store, seen.slice(offset, wanted), { most, judge });
  return { items: items.sort((a, b) => b.mentions - a.mentions || (a.name < b.name ? -1 : 1)), isCut: hasWorkEnded() };
}

/**
 * Returns the names with the number of memories that mention each. Of its first `most` mentions only those that pass
 * are counted, of the others all.
 */
function summaries(
  store: Store,
  names: readonly SeenName[],
  { most, judge }: { readonly most: number; readonly judge: Judge },
): EntitySummary[] {
  const passing = countPassing(store, names, { most, judge });
  return names.map(({ name, label, type, mentions, seen }) => {
    const examined = Math.max(seen, passing.get(name) ?? 0);
    return { name, label, type, mentions: mentions - Math.min(mentions, most) + examined };
  });
}

function isBoundToTags({ conditions }: CompiledFilter): boolean {
  return conditions.some(({ name }) => name === 'filters.tags' || name === 'bounds');
}

/** Reads names in the order of the list, whether a memory that passes mentions them or not. */
function readNames(
  store: Store,
  { prefix, match = 'prefix', userId }: EntityListing,
  { limit, offset }: { readonly limit: number; readonly offset: number },
): ListedName[] {
  const end = match === 'whole' ? prefix : `${prefix}${LAST_CHARACTER}`;
  const owned = userId === undefined ? '' : 'AND user_no = (SELECT user_no FROM users WHERE user_id = ?)';
  const rows = store
    .prepare(
      `SELECT name, min(label) AS label, min(type) AS type, sum(mentions) AS mentions,
         json_group_array(entity_no) AS entityNos, json_group_array(mentions) AS mentionsEach
       FROM (SELECT * FROM entities WHERE name BETWEEN ? AND ? ${owned} ORDER BY name, user_no LIMIT ${NAMES_READ})
       GROUP BY name ORDER BY mentions DESC, name LIMIT ? OFFSET ?`,
    )
    .all(prefix, end, ...(userId === undefined ? [] : [userId]), limit, offset) as (EntitySummary & {
    readonly entityNos: string;
    readonly mentionsEach: string;
  })[];
  spendWork(ROW_BYTES * rows.length);
  return rows.map(({ entityNos, mentionsEach, ...row }) => ({
    ...row,
    entityNos: JSON.parse(entityNos) as number[],
    mentionsEach: JSON.parse(mentionsEach) as number[],
  }));
}

/**
 * Returns those of the names, in their order, that a memory mentions which passes: among the first 20 mentions of each
 * name, or else among its first 2,000.
 */
function seenAmong(store: Store, names: readonly ListedName[], judge: Judge): SeenName[] {
  const atFirst = countPassing(store, names, { most: MIN_COUNTED, judge });
  const unseen = names.filter(({ name, mentions }) => !atFirst.get(name) && mentions > MIN_COUNTED);
  const further = countPassing(store, unseen, { most: MAX_LOOKED_AT, judge });
  return names.flatMap((name) => {
    const seen = atFirst.get(name.name) || further.get(name.name);
    return seen ? [{ ...name, seen }] : [];
  });
}

/**
 * Counts the memories that pass among the first `most` mentions of each name. Names are missing if the work budget is
 * used up.
 */
function countPassing(
  store: Store,
  names: readonly ListedName[],
  { most, judge }: { readonly most: number; readonly judge: Judge },
): Map<string, number> {
  const found = new Map<string, number>();
  let group: (readonly [name: string, entityNos: readonly number[]])[] = [];
  let planned = 0;
  const count = () => {
    const mentions = readMentions(
      store,
      group.flatMap(([, entityNos]) => entityNos),
      most,
    );
    const ofNames = group.map(([name, entityNos]): [string, number[]] => [
      name,
      entityNos.flatMap((entityNo) => mentions.get(entityNo) ?? []).slice(0, most),
    ]);
    const passing = judge(ofNames.flatMap(([, memoryNos]) => memoryNos));
    for (const [name, memoryNos] of ofNames)
      found.set(name, memoryNos.filter((memoryNo) => passing.has(memoryNo)).length);
    [group, planned] = [[], 0];
  };
  for (const { name, entityNos, mentionsEach, mentions } of names) {
    if (hasWorkEnded()) return found;
    let first = 0;
    for (let sum = 0; first < entityNos.length && sum < most; first += 1) sum += mentionsEach[first]!;
    group.push([name, entityNos.slice(0, first)]);
    planned += Math.min(mentions, most);
    if (planned >= MAX_COUNTED) count();
  }
  if (group.length > 0) count();
  return found;
}

/** Reads the numbers of the first `most` memories that mention each of these entities: a list by entity. */
function readMentions(store: Store, entityNos: readonly number[], most: number): Map<number, readonly number[]> {
  const rows = store
    .prepare(
      `SELECT wanted.value AS entityNo, (
         SELECT json_group_array(memory) FROM (
           SELECT memory FROM entity_mentions WHERE entity_no = wanted.value ORDER BY memory LIMIT ?)) AS memories
       FROM json_each(?) AS wanted ORDER BY wanted.key`,
    )
    .all(most, JSON.stringify(entityNos)) as { entityNo: number; memories: string }[];
  const mentions = new Map(rows.map(({ entityNo, memories }) => [entityNo, JSON.parse(memories) as number[]]));
  spendWork(ROW_BYTES * [...mentions.values()].reduce((sum, { length }) => sum + length, 0));
  return mentions;
}

/**
 * Describes a name by the memories that pass the filter: its latest 100 mentions, and its 100 most often stated
 * relations among 5,000 statements in each direction; undefined if no such memory mentions it. If the work budget is
 * used up, some of this may be missing, and `isCut` is true. With a filter that has tags, spellings, type and count are
 * those of all memories that pass, and the relations those that the latest 5,000 of them state. Call inside a read.
 * @param name name in folded form
 * @param userId user whose memories count; undefined for those of all users
 */
export function findEntity(
  store: Store,
  name: string,
  { userId, filter }: { readonly userId: string | undefined; readonly filter: CompiledFilter },
): EntityDetails | undefined {
  if (isBoundToTags(filter)) {
    const judge = createJudge(store, filter);
    const described = describeWithinTags(store, { name, userId }, { limit: MAX_SHOWN, judge });
    if (described === undefined) return undefined;
    const { latest, ...details } = described;
    return { ...details, memoryIds: idsOf(store, latest), isCut: hasWorkEnded() };
  }
  const owned = userId === undefined ? '' : 'AND user_no = (SELECT user_no FROM users WHERE user_id = ?)';
  const entityNos = store
    .prepare(`SELECT entity_no FROM entities WHERE name = ? ${owned} ORDER BY user_no LIMIT ${MAX_READ}`)
    .pluck()
    .all(name, ...(userId === undefined ? [] : [userId])) as number[];
  const mentioning = mentioningMemories(store, entityNos, filter, MAX_SHOWN).flatMap(({ memories }) => memories);
  const latest = mentioning.sort((a, b) => b - a).slice(0, MAX_SHOWN);
  const [named] = readNames(store, { prefix: name, match: 'whole', userId }, { limit: 1, offset: 0 });
  if (latest.length === 0 || named === undefined) return undefined;
  const judge = createJudge(store, filter, latest);
  const [summary] = summaries(store, [{ ...named, seen: latest.length }], { most: MAX_LOOKED_AT, judge });
  const relations = relationsOf(store, entityNos, judge);
  return { ...summary!, relations, memoryIds: idsOf(store, latest), isCut: hasWorkEnded() };
}

function idsOf(store: Store, memoryNos: readonly number[]): string[] {
  return store
    .prepare(
      'SELECT m.id FROM json_each(?) AS wanted CROSS JOIN memories m ON m.seq = wanted.value ORDER BY wanted.key',
    )
    .pluck()
    .all(JSON.stringify(memoryNos)) as string[];
}

/** Reads the relations of entities that memories state which pass, those that most of them state first. */
function relationsOf(store: Store, entityNos: readonly number[], judge: Judge): EntityDetails['relations'] {
  const numbers = JSON.stringify(entityNos);
  const stated = `WITH stated AS (
         SELECT * FROM (
           SELECT r.relation, 'out' AS direction, r.dst AS other, r.memory
           FROM json_each(?) AS e CROSS JOIN entity_relations r ON r.src = e.value LIMIT ${STATED_READ})
         UNION ALL
         SELECT * FROM (
           SELECT r.relation, 'in', r.src, r.memory
           FROM json_each(?) AS e CROSS JOIN entity_relations r ON r.dst = e.value LIMIT ${STATED_READ})
       )`;
  const stating = store
    .prepare(`${stated} SELECT DISTINCT stated.memory FROM stated`)
    .pluck()
    .all(numbers, numbers) as number[];
  const passing = judge(stating);
  return store
    .prepare(
      `${stated}
       SELECT stated.relation AS type, stated.direction, o.name, min(coalesce(em.label, o.name)) AS label,
         count(*) AS memories
       FROM stated CROSS JOIN entities o ON o.entity_no = stated.other
         LEFT JOIN entity_mentions em ON em.entity_no = stated.other AND em.memory = stated.memory
       WHERE stated.memory IN (SELECT value FROM json_each(?))
       GROUP BY stated.relation, stated.direction, o.name
       ORDER BY memories DESC, o.name, stated.relation, stated.direction LIMIT ${MAX_SHOWN}`,
    )
    .all(
      numbers,
      numbers,
      JSON.stringify(stating.filter((memoryNo) => passing.has(memoryNo))),
    ) as EntityDetails['relations'];
}

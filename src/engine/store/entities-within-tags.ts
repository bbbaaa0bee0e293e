/**
 * Lists and describes names for a filter with tags, by nothing but the memories that pass. All mentions are read until
 * the work budget is used up: a limit on the mentions or names that are read would tell how many others there are.
 */

import type { EntityDetails, EntitySummary } from '../types.ts';
import type { Store } from './open-store.ts';
import type { Judge } from './passing-memories.ts';
import { hasWorkEnded, ROW_BYTES, spendWork } from './work-budget.ts';

/** Selects the entities of a list. */
export interface EntityListing {
  /** Folded text with which the names must begin, or the folded whole name; '' for all names. */
  readonly prefix: string;
  /** With `whole`, only the name that equals the prefix is listed; `prefix` by default. */
  readonly match?: 'prefix' | 'whole';
  /** User whose entities are listed; undefined for those of all users. */
  readonly userId: string | undefined;
}

/** The memories that pass among the mentions of a name: their number, and the first 20 of their numbers. */
interface Passing {
  readonly count: number;
  readonly first: readonly number[];
}

/** A name as one user has it. */
interface UsersName {
  readonly entityNo: number;
  readonly name: string;
  readonly userNo: number;
  readonly mentions: number;
}

/** Mentions of a name: the numbers of the memories that mention it. */
interface Mentions {
  readonly name: string;
  readonly memoryNos: readonly number[];
}

/** Number of names that are read at once. */
const NAMES_AT_ONCE = 500;
/** Greatest number of mentions that are read and judged together. */
const MENTIONS_AT_ONCE = 2_000;
/** Greatest number of passing memories from which the spelling and the type of a name are taken. */
const SPELLED_BY = 20;
/** Greatest number of passing memories, the latest ones, whose relations are counted. */
const MAX_STATING = 5_000;

/**
 * Lists the names of a page: those that a memory mentions which passes, the most mentioned first; ties are sorted by
 * name. If the work budget is used up, names may be missing and counts too low. Call inside a read.
 */
export function listWithinTags(
  store: Store,
  listing: EntityListing,
  { limit, offset, judge }: { readonly limit: number; readonly offset: number; readonly judge: Judge },
): EntitySummary[] {
  const found = new Map<string, Passing>();
  for (const { name, memoryNos } of passingMentions(store, listing, { order: 'ASC', judge })) {
    const { count, first } = found.get(name) ?? { count: 0, first: [] };
    found.set(name, { count: count + memoryNos.length, first: [...first, ...memoryNos].slice(0, SPELLED_BY) });
  }
  const page = [...found].sort(([a, x], [b, y]) => y.count - x.count || (a < b ? -1 : 1)).slice(offset, offset + limit);
  return summariesOf(store, new Map(page));
}

/**
 * Describes a name by the memories that pass, with their numbers, the latest first, at most `limit`, and with the
 * `limit` most often stated relations of the latest 5,000 of them; undefined if none is found. If the work budget is
 * used up, some of this may be missing. Call inside a read.
 */
export function describeWithinTags(
  store: Store,
  { name, userId }: { readonly name: string; readonly userId: string | undefined },
  { limit, judge }: { readonly limit: number; readonly judge: Judge },
): (EntitySummary & Pick<EntityDetails, 'relations'> & { readonly latest: readonly number[] }) | undefined {
  const own: number[] = [];
  const listing = { prefix: name, match: 'whole', userId } as const;
  for (const { memoryNos } of passingMentions(store, listing, { order: 'DESC', judge }))
    for (const memoryNo of memoryNos) own.push(memoryNo);
  if (own.length === 0) return undefined;
  own.sort((a, b) => b - a);
  const first = own.slice(-SPELLED_BY).reverse();
  const [summary] = summariesOf(store, new Map([[name, { count: own.length, first }]]));
  const relations = relationsStatedBy(store, { name, memoryNos: own.slice(0, MAX_STATING) }, limit);
  return { ...summary!, relations, latest: own.slice(0, limit) };
}

/**
 * Reads the mentions of names by memories that pass, by name and user, and of each by ascending or descending number.
 * One name may come several times. It stops when the work budget is used up.
 */
function* passingMentions(
  store: Store,
  listing: EntityListing,
  { order, judge }: { readonly order: 'ASC' | 'DESC'; readonly judge: Judge },
): Generator<Mentions> {
  for (const mentions of mentionsOf(store, listing, order)) {
    const passing = judge(mentions.flatMap(({ memoryNos }) => memoryNos));
    for (const { name, memoryNos } of mentions) {
      const own = memoryNos.filter((memoryNo) => passing.has(memoryNo));
      if (own.length > 0) yield { name, memoryNos: own };
    }
    if (hasWorkEnded()) return;
  }
}

/** Reads all mentions of names, some 2,000 at a time. */
function* mentionsOf(store: Store, listing: EntityListing, order: 'ASC' | 'DESC'): Generator<Mentions[]> {
  let group: UsersName[] = [];
  let planned = 0;
  for (const named of namesOf(store, listing)) {
    if (planned + named.mentions > MENTIONS_AT_ONCE && group.length > 0) {
      yield readMentions(store, group, { order });
      [group, planned] = [[], 0];
    }
    if (named.mentions <= MENTIONS_AT_ONCE) {
      group.push(named);
      planned += named.mentions;
      continue;
    }
    for (let after: number | undefined; ;) {
      const mentions = readMentions(store, [named], { order, after });
      yield mentions;
      const [{ memoryNos }] = mentions as [Mentions];
      if (memoryNos.length < MENTIONS_AT_ONCE) break;
      after = memoryNos.at(-1);
    }
  }
  if (group.length > 0) yield readMentions(store, group, { order });
}

/** Reads the names of a list by name and user, until the work budget is used up. */
function* namesOf(store: Store, { prefix, match = 'prefix', userId }: EntityListing): Generator<UsersName> {
  const end = match === 'whole' ? prefix : `${prefix}${LAST_CHARACTER}`;
  const owned = userId === undefined ? '' : 'AND user_no = (SELECT user_no FROM users WHERE user_id = ?)';
  const statement = store.prepare(
    `SELECT entity_no AS entityNo, name, user_no AS userNo, mentions FROM entities
     WHERE (name, user_no) > (?, ?) AND name <= ? ${owned} ORDER BY name, user_no LIMIT ${NAMES_AT_ONCE}`,
  );
  for (let [name, userNo] = [prefix, -1]; !hasWorkEnded();) {
    const names = statement.all(name, userNo, end, ...(userId === undefined ? [] : [userId])) as UsersName[];
    spendWork(ROW_BYTES * names.length);
    yield* names;
    if (names.length < NAMES_AT_ONCE) return;
    ({ name, userNo } = names.at(-1)!);
  }
}

/** The last character of Unicode: behind every name that begins with a prefix. */
export const LAST_CHARACTER = '\u{10ffff}';

/** Reads the first 2,000 mentions of each of the names, or those after the memory `after`. */
function readMentions(
  store: Store,
  names: readonly UsersName[],
  { order, after }: { readonly order: 'ASC' | 'DESC'; readonly after?: number | undefined },
): Mentions[] {
  const beyond = after === undefined ? '' : `AND memory ${order === 'ASC' ? '>' : '<'} ?`;
  const rows = store
    .prepare(
      `SELECT (
         SELECT json_group_array(memory) FROM (
           SELECT memory FROM entity_mentions WHERE entity_no = wanted.value ${beyond}
           ORDER BY memory ${order} LIMIT ${MENTIONS_AT_ONCE})) AS memories
       FROM json_each(?) AS wanted ORDER BY wanted.key`,
    )
    .pluck()
    .all(...(after === undefined ? [] : [after]), JSON.stringify(names.map(({ entityNo }) => entityNo))) as string[];
  const mentions = rows.map((memories, at) => ({
    name: names[at]!.name,
    memoryNos: JSON.parse(memories) as number[],
  }));
  spendWork(ROW_BYTES * mentions.reduce((sum, { memoryNos }) => sum + memoryNos.length, 0));
  return mentions;
}

/** Describes names by nothing but memories that pass. Type `other` counts only if no mention has another type. */
function summariesOf(store: Store, names: ReadonlyMap<string, Passing>): EntitySummary[] {
  const mentions = [...names].flatMap(([name, { first }]) => first.map((memoryNo) => [name, memoryNo]));
  const rows = store
    .prepare(
      `SELECT e.name, em.label, em.type
       FROM json_each(?) AS wanted
         CROSS JOIN entity_mentions em ON em.memory = CAST(wanted.value ->> 1 AS INTEGER)
         CROSS JOIN entities e ON e.entity_no = em.entity_no AND e.name = wanted.value ->> 0
       ORDER BY wanted.key`,
    )
    .all(JSON.stringify(mentions)) as Omit<EntitySummary, 'mentions'>[];
  const byName = Map.groupBy(rows, ({ name }) => name);
  return [...names].map(([name, { count }]) => {
    const spelled = byName.get(name)!;
    const type = spelled.find(({ type }) => type !== 'other')?.type ?? 'other';
    return { name, label: spelled[0]!.label, type, mentions: count };
  });
}

/** Reads the relations of a name that these memories state, which all mention it; those that most state first. */
function relationsStatedBy(store: Store, { name, memoryNos }: Mentions, limit: number): EntityDetails['relations'] {
  const numbers = JSON.stringify(memoryNos);
  const stated = (direction: 'out' | 'in', [own, other]: readonly ['src' | 'dst', 'src' | 'dst']) =>
    `SELECT r.relation, '${direction}' AS direction, r.${other} AS other, r.memory
     FROM json_each(?) AS wanted CROSS JOIN entity_relations r ON r.memory = wanted.value
       CROSS JOIN entities e ON e.entity_no = r.${own} WHERE e.name = ?`;
  return store
    .prepare(
      `WITH stated AS (${stated('out', ['src', 'dst'])} UNION ALL ${stated('in', ['dst', 'src'])})
       SELECT stated.relation AS type, stated.direction, o.name, min(coalesce(em.label, o.name)) AS label,
         count(*) AS memories
       FROM stated CROSS JOIN entities o ON o.entity_no = stated.other
         LEFT JOIN entity_mentions em ON em.entity_no = stated.other AND em.memory = stated.memory
       GROUP BY stated.relation, stated.direction, o.name
       ORDER BY memories DESC, o.name, stated.relation, stated.direction LIMIT ?`,
    )
    .all(numbers, name, numbers, name, limit) as EntityDetails['relations'];
}

/**
 * Groups queued statements that differ only in their values, so that the server binds and runs only one statement for
 * each group. `merge-forms.ts` says what that statement is, and `join-statements.ts` how groups that write different
 * tables share one.
 */

import type { Parameter, QueryResult, SentStatement, SqlValue } from './statements.ts';
import { fits, joinWrites, mayBeJoined, resultInJoined, type Write } from './join-statements.ts';
import type { MergeForm } from './merge-forms.ts';

/** Greatest number of statements of the kind `change` that are merged: each row looks its values up in a list. */
const MAX_CHANGES = 256;

/** A queued statement, with the way in which it may be merged. */
export interface Mergeable {
  readonly statement: SentStatement;
  /** How the statement is merged; null for one that is sent by itself. */
  readonly merge: MergeForm | null;
}

/** Statements that are sent as one merged statement. */
export interface StatementGroup<One extends Mergeable> {
  readonly members: readonly One[];
  readonly statement: SentStatement;
  /**
   * Splits the result of the merged statement into one result for each member; null for a member whose own result
   * cannot be determined.
   */
  readonly resultsOf: (result: QueryResult) => readonly (QueryResult | null)[];
}

/**
 * Groups queued statements, given in the order in which they are to run, into merged statements. A statement joins an
 * earlier group with the same text if it may run before all groups in between.
 */
export function mergeStatements<One extends Mergeable>(waiting: readonly One[]): StatementGroup<One>[] {
  const groups: One[][] = [];
  for (const one of waiting) {
    const group = groupFor(one, groups);
    if (group === undefined) groups.push([one]);
    else group.push(one);
  }
  return join(groups);
}

/** Joins groups that follow each other where that is possible; the others become a statement each. */
function join<One extends Mergeable>(groups: readonly One[][]): StatementGroup<One>[] {
  const joined: { readonly groups: One[][]; readonly writes: Write[] }[] = [];
  for (const members of groups) {
    const form = members[0]!.merge;
    const write = mayBeJoined(form) ? { form, statement: mergedOf(members) } : undefined;
    const last = joined.at(-1);
    if (write !== undefined && last !== undefined && last.writes.length > 0 && fits(write, last.writes)) {
      last.groups.push(members);
      last.writes.push(write);
    } else joined.push({ groups: [members], writes: write === undefined ? [] : [write] });
  }
  return joined.map((one) => (one.groups.length === 1 ? groupOf(one.groups[0]!) : joinedOf(one.groups, one.writes)));
}

function joinedOf<One extends Mergeable>(groups: readonly One[][], writes: readonly Write[]): StatementGroup<One> {
  const members = groups.flat();
  return {
    members,
    statement: joinWrites(writes),
    resultsOf: () => members.map(({ merge }) => resultInJoined(merge!)),
  };
}

function groupFor<One extends Mergeable>(one: One, groups: readonly One[][]): One[] | undefined {
  const { merge } = one;
  if (merge === null) return undefined;
  for (let place = groups.length - 1; place >= 0; place -= 1) {
    const group = groups[place]!;
    const [first] = group;
    if (first!.merge?.name === merge.name) return mayJoin(one, group) ? group : undefined;
    if (!mayPass(one, group)) return undefined;
  }
  return undefined;
}

/**
 * Tells whether a statement may be merged with a group of the same text. It may not if one of the group may change the
 * same row, if the group has 256 changes (`MAX_CHANGES`), or if it is of the kind `once`.
 */
function mayJoin<One extends Mergeable>(one: One, group: readonly One[]): boolean {
  const { kind, key } = one.merge!;
  if (kind === 'once') return false;
  if (key.length === 0) return true;
  return (kind !== 'change' || group.length < MAX_CHANGES) && !group.some((member) => hasSameKey(one, member));
}

function hasSameKey({ statement, merge }: Mergeable, other: Mergeable): boolean {
  return merge!.key.every(
    (number, place) => statement.values[number - 1] === other.statement.values[other.merge!.key[place]! - 1],
  );
}

/** Tells whether a statement may run before the statements of a group, which were queued earlier. */
function mayPass<One extends Mergeable>(one: One, group: readonly One[]): boolean {
  const merge = one.merge!;
  const other = group[0]!.merge;
  if (other === null || merge.isFixed || other.isFixed || (merge.kind === 'query') !== (other.kind === 'query'))
    return false;
  if (merge.kind === 'query') return true;
  if (merge.reads.includes(other.table) || other.reads.includes(merge.table)) return false;
  if (merge.table !== other.table) return !merge.parents.includes(other.table);
  if (merge.kind === 'change' && other.kind === 'change') {
    return merge.keyColumn === other.keyColumn && !group.some((member) => hasSameKey(one, member));
  }
  return merge.kind === 'insert' && other.kind === 'insert' && !merge.isNumbered && !other.isNumbered;
}

function groupOf<One extends Mergeable>(members: readonly One[]): StatementGroup<One> {
  const [{ statement, merge }] = members as readonly [One];
  if (members.length === 1 || merge === null) return { members, statement, resultsOf: (result) => [result] };
  return {
    members,
    statement: mergedOf(members),
    resultsOf: (result) => RESULTS[merge.kind](result, members.length),
  };
}

/** Returns the merged statement of a group. */
function mergedOf(members: readonly Mergeable[]): SentStatement {
  const { statement, merge } = members[0]!;
  const { kind, name, text, shared } = merge!;
  if (kind === 'once') return statement;
  const columns = statement.values
    .slice(shared)
    .map((_, column): Parameter => members.map((member) => member.statement.values[shared + column] as SqlValue));
  return { name, text, values: [...statement.values.slice(0, shared), ...columns] };
}

const RESULTS: Readonly<Record<MergeForm['kind'], (result: QueryResult, count: number) => (QueryResult | null)[]>> = {
  query({ columns, rows, command }, count) {
    const answers = Array.from({ length: count }, () => ({
      ...{ columns: columns.slice(1), command, changes: 0 },
      rows: [] as unknown[][],
    }));
    for (const [place, ...row] of rows) answers[(place as number) - 1]!.rows.push(row);
    return answers;
  },
  insert: ({ columns, rows, command }, count) =>
    Array.from({ length: count }, (_, place) => ({
      ...{ columns, command, changes: 1 },
      rows: rows[place] === undefined ? [] : [rows[place]],
    })),
  'insert unless there': unknownResults,
  'insert or update': unknownResults,
  'insert found': unknownResults,
  count: unknownResults,
  once: unknownResults,
  change({ rows, command }, count) {
    const changes = new Array<number>(count).fill(0);
    for (const [place] of rows) changes[(place as number) - 1]! += 1;
    return changes.map((changed) => ({ columns: [], rows: [], command, changes: changed }));
  },
};

function unknownResults(_result: QueryResult, count: number): null[] {
  return Array.from({ length: count }, () => null);
}

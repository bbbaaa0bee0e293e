/** The user, memory and vector number of each row of a matrix, and the kinds of search that exclude the row. */

import { assert } from '../../errors.ts';
import type { VectorRole } from '../../ports.ts';
import type { VectorCode } from '../../store/vector-codes.ts';
import type { Question } from '../following-index/following-index.ts';

/** The part of a question that says which rows it may find. */
export type Scope = Pick<Question, 'userNo' | 'purpose' | 'upTo'>;

/**
 * Flags of a row, each a bit that excludes the row from searches for ranking (`rank`) or for links (`link`); a removed
 * row has both. They are the lowest bits of the row's label; the higher bits are the label of its user.
 */
export const FLAGS = { rank: 1, link: 2, removed: 3 } as const;
const FLAGS_OF = { whole: 0, window: FLAGS.link, mean: FLAGS.rank } as const satisfies Record<VectorRole, number>;
/** Unit of user labels, which leaves the lower bits to the flags. */
const OWNER_UNIT = 4;

interface User {
  /** Part of the label of each of the user's rows, a multiple of `OWNER_UNIT`. */
  readonly label: number;
  /** The user's last row, removed or not. */
  last: number;
  /** Rows of the user that were not removed. */
  count: number;
}

/**
 * A table of rows, numbered from 0 in the order of their vectors' numbers. Each row's label, which holds its user and
 * whether it is ranked, linked or removed, is stored with the codes.
 */
export interface Rows {
  /** Number of rows, the removed ones included. Only the first `size` entries of the arrays below are valid. */
  size: number;
  /** Number of rows that were removed. */
  removed: number;
  /** Number of the vector of each row, ascending. */
  vectorNos: Float64Array;
  /** Number of the memory of each row. */
  memories: Float64Array;
  /** Highest number of a memory that a row belongs to, removed rows included; 0 without rows. */
  highestMemory: number;
  /** For each row, the last earlier row of the same user; -1 for the user's first row. */
  previous: Int32Array;
  /** Users by number. Their labels ascend in the order in which they were added. */
  readonly users: Map<number, User>;
  /** Users by their label divided by `OWNER_UNIT`. */
  readonly usersByLabel: User[];
}

/** Bytes of a row in this table. */
const ROW_BYTES = 8 + 8 + 4;

export function createRows(): Rows {
  const capacity = 1_024;
  return {
    size: 0,
    removed: 0,
    highestMemory: 0,
    users: new Map(),
    usersByLabel: [],
    vectorNos: new Float64Array(capacity),
    memories: new Float64Array(capacity),
    previous: new Int32Array(capacity),
  };
}

/** Returns the bytes that the table takes in memory. */
export function bytesOfRows(rows: Rows): number {
  return rows.vectorNos.length * ROW_BYTES;
}

/**
 * Adds a row at the end. Its vector's number must be above those of all rows.
 * @returns the row, and the label to store with its code
 */
export function addRow(rows: Rows, { vectorNo, userNo, memory, role }: VectorCode): { row: number; label: number } {
  const row = rows.size;
  assert(row === 0 || vectorNo > rows.vectorNos[row - 1]!, 'vectors come in the order of their numbers');
  if (row === rows.vectorNos.length) growRows(rows);
  let user = rows.users.get(userNo);
  if (user === undefined) {
    rows.users.set(userNo, (user = { label: OWNER_UNIT * rows.users.size, last: -1, count: 0 }));
    rows.usersByLabel.push(user);
  }
  rows.vectorNos[row] = vectorNo;
  rows.memories[row] = memory;
  rows.highestMemory = Math.max(rows.highestMemory, memory);
  rows.previous[row] = user.last;
  user.last = row;
  user.count += 1;
  rows.size += 1;
  return { row, label: user.label + FLAGS_OF[role] };
}

function growRows(rows: Rows): void {
  const capacity = 2 * rows.vectorNos.length;
  const copy = <T extends Float64Array | Int32Array>(from: T, to: T): T => {
    to.set(from);
    return to;
  };
  rows.vectorNos = copy(rows.vectorNos, new Float64Array(capacity));
  rows.memories = copy(rows.memories, new Float64Array(capacity));
  rows.previous = copy(rows.previous, new Int32Array(capacity));
}

/**
 * Counts a row as removed. Call it once for a row; the caller sets `FLAGS.removed` in the row's label.
 * @param label the label of the row
 */
export function countRemoval(rows: Rows, label: number): void {
  rows.removed += 1;
  rows.usersByLabel[Math.floor(label / OWNER_UNIT)]!.count -= 1;
}

/** Finds the row of a vector, removed or not, by binary search; undefined if there is none. */
export function findRow({ size, vectorNos }: Rows, vectorNo: number): number | undefined {
  let [low, high] = [0, size];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (vectorNos[middle]! < vectorNo) low = middle + 1;
    else high = middle;
  }
  return low < size && vectorNos[low] === vectorNo ? low : undefined;
}

/**
 * Counts the rows of a user, or of all users if `userNo` is undefined. Removed rows do not count, so that they have no
 * effect on any answer.
 */
export function countRows({ size, removed, users }: Rows, userNo: number | undefined): number {
  return userNo === undefined ? size - removed : (users.get(userNo)?.count ?? 0);
}

/** True if there may be rows of memories that are too new for a question: above its `upTo`. */
export function isCutOff({ highestMemory }: Rows, { upTo }: Scope): boolean {
  return upTo < highestMemory;
}

/**
 * Returns what the labels of the rows in a scope have in common: in the bits of `mask` each equals `label`. It does not
 * regard `upTo`. The scope's user must have had a row.
 */
export function labelOfScope(
  { users }: Rows,
  { userNo, purpose }: Scope,
): { readonly mask: number; readonly label: number } {
  if (userNo === undefined) return { mask: FLAGS[purpose], label: 0 };
  return { mask: -OWNER_UNIT | FLAGS[purpose], label: users.get(userNo)!.label };
}

/**
 * Lists the rows in a scope that were not removed, in ascending order; none for an unknown user.
 * @param labelAt returns the label of a row
 */
export function listRows(rows: Rows, scope: Scope, labelAt: (row: number) => number): Uint32Array {
  const { userNo, upTo, purpose } = scope;
  const user = userNo === undefined ? undefined : rows.users.get(userNo);
  if (userNo !== undefined && user === undefined) return new Uint32Array();
  const list = new Uint32Array(user?.count ?? rows.size);
  const cutOff = isCutOff(rows, scope);
  const flag = FLAGS[purpose];
  let place = list.length;
  for (let row = user?.last ?? rows.size - 1; row >= 0; row = user === undefined ? row - 1 : rows.previous[row]!) {
    if (cutOff && rows.memories[row]! > upTo) continue;
    if ((labelAt(row) & flag) === 0) list[--place] = row;
  }
  return list.subarray(place);
}

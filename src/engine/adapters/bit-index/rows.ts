import { assert } from '../../errors.ts';
import type { VectorRole } from '../../ports.ts';
import type { VectorCode } from '../../store/vector-codes.ts';
import type { Question } from '../following-index/following-index.ts';

/** What belongs to the rows of a matrix besides their codes: whose they are, of which memories, and what they are left out of. */

/** What says which rows a question is about. */
export type Scope = Pick<Question, 'userNo' | 'purpose' | 'upTo'>;

/** Flags of a row: what it is left out of. They are the lowest bits of its label, and which user it belongs to is above them. */
export const FLAGS = { rank: 1, link: 2, removed: 3 } as const;
const FLAGS_OF = { whole: 0, window: FLAGS.link, mean: FLAGS.rank } as const satisfies Record<VectorRole, number>;
const OWNER_UNIT = 4;

interface User {
  readonly label: number;
  /** The user's last row. */
  last: number;
  count: number;
}

/** Rows by number, from 0, in the order of their vectors. Labels lie with the codes. */
export interface Rows {
  size: number;
  removed: number;
  vectorNos: Float64Array;
  memories: Float64Array;
  /** No memory of a row is above it. */
  highestMemory: number;
  /** The row before of the same user, or -1. */
  previous: Int32Array;
  /** Users have labels in the order in which they came. */
  readonly users: Map<number, User>;
  readonly usersByLabel: User[];
}

/** Bytes that a row takes here. */
const ROW_BYTES = 8 + 8 + 4;

/** Makes an empty table of rows. */
export function createRows(): Rows {
  const capacity = 1_024;
  return {
    ...{ size: 0, removed: 0, highestMemory: 0, users: new Map(), usersByLabel: [] },
    vectorNos: new Float64Array(capacity),
    memories: new Float64Array(capacity),
    previous: new Int32Array(capacity),
  };
}

/** The bytes that the table takes. */
export function bytesOfRows(rows: Rows): number {
  return rows.vectorNos.length * ROW_BYTES;
}

/** Adds a row behind all that are there. @returns its number and its label */
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

/** Counts a row as removed. @param label that of the row */
export function countRemoval(rows: Rows, label: number): void {
  rows.removed += 1;
  rows.usersByLabel[Math.floor(label / OWNER_UNIT)]!.count -= 1;
}

/** The row of a vector, by halves. */
export function findRow({ size, vectorNos }: Rows, vectorNo: number): number | undefined {
  let [low, high] = [0, size];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (vectorNos[middle]! < vectorNo) low = middle + 1;
    else high = middle;
  }
  return low < size && vectorNos[low] === vectorNo ? low : undefined;
}

/** How many rows a user has, or all users, without those that were removed: what went leaves no trace in an answer. */
export function countRows({ size, removed, users }: Rows, userNo: number | undefined): number {
  return userNo === undefined ? size - removed : (users.get(userNo)?.count ?? 0);
}

/** Whether there are rows that come too late for a question. */
export function isCutOff({ highestMemory }: Rows, { upTo }: Scope): boolean {
  return upTo < highestMemory;
}

/** What the labels of rows that a question is about have in common: `label`, where `mask` has a bit. The user has rows. */
export function labelOfScope(
  { users }: Rows,
  { userNo, purpose }: Scope,
): { readonly mask: number; readonly label: number } {
  if (userNo === undefined) return { mask: FLAGS[purpose], label: 0 };
  return { mask: -OWNER_UNIT | FLAGS[purpose], label: users.get(userNo)!.label };
}

/**
 * Rows that a question is about, in ascending order.
 * @param labelAt the label of a row
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

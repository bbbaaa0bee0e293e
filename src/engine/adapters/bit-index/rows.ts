/**
 * The table of rows of the bit index: the vector, user and memory of each row, and the searches that may not find the
 * row.
 */

import type { VectorRole } from '../../ports.ts';
import type { VectorCode } from '../../store/vector-codes.ts';
import type { Question } from '../following-index/followed-vectors.ts';
import { type Codes, numberReader, segmentOf, wordAt, wordReader } from './codes.ts';
import { SEGMENT_ROWS } from './kernels.ts';
import type { Users } from './users.ts';

/** The part of a question that determines which rows it may find. */
export type Scope = Pick<Question, 'userNo' | 'purpose' | 'upTo'>;

/**
 * Flags of a row. Each bit excludes the row from searches for ranking (`rank`) or for links between memories (`link`);
 * a removed row has both. They are the lowest bits of the row's label; the higher bits are the number of its user.
 */
const FLAGS = { rank: 1, link: 2, removed: 3 } as const;
const FLAGS_OF = { whole: 0, window: FLAGS.link, mean: FLAGS.rank } as const satisfies Record<VectorRole, number>;
/** Factor on the user number in a row's label, so that the lower bits are free for the flags. */
const OWNER_UNIT = 4;

/** The fields of all rows, one row for each vector. Rows are numbered from 0 in the order of their vectors' numbers. */
export interface RowTable {
  readonly codes: Codes;
  readonly users: Users;
}

/** The rows of a table at one snapshot. */
export interface Rows extends RowTable {
  /** Number of rows, including removed ones. */
  readonly size: number;
  /** Number of rows that were removed. */
  readonly removed: number;
  /** Returns the highest `memoryNo` of any row, removed rows included; 0 without rows. */
  highestMemory(): number;
}

/**
 * Writes a row after all others, which does not affect threads that read earlier rows.
 * @param row number of the row; memory for it must be reserved
 */
export function writeRow({ codes, users }: RowTable, row: number, vector: VectorCode): void {
  const { layout } = codes;
  const { bytes, words, doubles } = codes.views();
  const { vectorNo, userNo, memory, role, code } = vector;
  const previous = users.lastRow(userNo);
  const segment = segmentOf(layout, row);
  const place = row % SEGMENT_ROWS;
  bytes.set(code, segment + place * layout.codeBytes);
  doubles[(segment + layout.vectorNos) / 8 + place] = vectorNo;
  doubles[(segment + layout.memories) / 8 + place] = memory;
  words[(segment + layout.labels) / 4 + place] = OWNER_UNIT * userNo + FLAGS_OF[role];
  words[(segment + layout.previous) / 4 + place] = previous;
  words[(segment + layout.ordinals) / 4 + place] = previous < 0 ? 1 : words[wordAt(layout, 'ordinals', previous)]! + 1;
  users.setLastRow(userNo, row);
}

/**
 * Marks a row as removed.
 * @returns false if it was already marked
 */
export function markRemoved({ codes, users }: RowTable, row: number): boolean {
  const { words } = codes.views();
  const at = wordAt(codes.layout, 'labels', row);
  const label = words[at]!;
  if (isRemoved(label)) return false;
  words[at] = label | FLAGS.removed;
  users.countRemoval(Math.floor(label / OWNER_UNIT));
  return true;
}

export function isRemoved(label: number): boolean {
  return (label & FLAGS.removed) === FLAGS.removed;
}

/**
 * Finds, by binary search, the first of `size` rows whose vector number is at least `vectorNo`. Returns `size` if no
 * row has such a number.
 */
export function firstRowFrom(codes: Codes, size: number, vectorNo: number): number {
  const vectorNoOf = numberReader(codes, 'vectorNos');
  let [low, high] = [0, size];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (vectorNoOf(middle) < vectorNo) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * Counts the rows of a user, or of all users if `userNo` is undefined. Removed rows are not counted, so that they do
 * not affect any answer.
 */
export function countRows(rows: Rows, userNo: number | undefined): number {
  return userNo === undefined ? rows.size - rows.removed : rowsOfUser(rows, userNo).count;
}

/**
 * Returns a user's last row, removed or not (-1 if the user has none), and the number of the user's rows that are not
 * removed.
 */
function rowsOfUser({ codes, users, size }: Rows, userNo: number): { readonly last: number; readonly count: number } {
  const previousOf = wordReader(codes, 'previous');
  const labelOf = wordReader(codes, 'labels');
  let last = users.lastRow(userNo);
  let removed = users.removedRows(userNo);
  // Rows after the end of the snapshot belong to later commits. `removed` counts them, too.
  for (; last >= size; last = previousOf(last) | 0) if (isRemoved(labelOf(last))) removed -= 1;
  const count = last < 0 ? 0 : wordReader(codes, 'ordinals')(last) - removed;
  // If another thread counts a removal at this moment, the difference may be negative. The answer is then discarded,
  // but computing it must not fail.
  return { last, count: Math.max(0, count) };
}

/** Tells whether there may be rows of memories that are too new for a question: with a `memoryNo` above its `upTo`. */
export function isCutOff({ highestMemory }: Rows, { upTo }: Scope): boolean {
  return upTo !== Infinity && upTo < highestMemory();
}

/**
 * Returns a mask and a label that select the rows in a scope: a row belongs to it if its label equals `label` in the
 * bits of `mask`. `upTo` is ignored.
 */
export function labelOfScope({ userNo, purpose }: Scope): { readonly mask: number; readonly label: number } {
  if (userNo === undefined) return { mask: FLAGS[purpose], label: 0 };
  return { mask: -OWNER_UNIT | FLAGS[purpose], label: OWNER_UNIT * userNo };
}

/** Lists the rows in a scope that are not removed, in ascending order; none for an unknown user. */
export function listRows(rows: Rows, scope: Scope): Uint32Array {
  const { codes, size } = rows;
  const { userNo, upTo, purpose } = scope;
  const user = userNo === undefined ? undefined : rowsOfUser(rows, userNo);
  const labelOf = wordReader(codes, 'labels');
  const previousOf = wordReader(codes, 'previous');
  const memoryOf = numberReader(codes, 'memories');
  const list = new Uint32Array(user?.count ?? size);
  const cutOff = isCutOff(rows, scope);
  const flag = FLAGS[purpose];
  let place = list.length;
  for (let row = user?.last ?? size - 1; row >= 0; row = user === undefined ? row - 1 : previousOf(row) | 0) {
    if (cutOff && memoryOf(row) > upTo) continue;
    if ((labelOf(row) & flag) === 0 && place > 0) list[--place] = row;
  }
  return list.subarray(place);
}

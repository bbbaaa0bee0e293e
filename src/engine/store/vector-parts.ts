/**
 * Stores the bytes of providers' vectors in parts of such a size that they fill the pages of the file. Whole rows of
 * 1.6, 3 or 6 KB would leave a quarter to a third of their pages empty. The parts of one vector have successive
 * numbers, so they are read together.
 */

import { assert } from '../errors.ts';
import type { Store } from './open-store.ts';

/**
 * Number of part numbers that are reserved for each vector. Its parts are numbered from this times the vector's number
 * on.
 */
const PART_NUMBERS = 32;
/** Number of bytes of a page of 4,096 that are available for rows. */
const PAGE_ROOM = 4_088;
/**
 * Number of bytes that a row takes in addition to its part: the entry in the page's index, the lengths, and the number.
 */
const ROW_OVERHEAD = 12;
/** Least number of bytes that a further part must save, since reading it takes a quarter of a microsecond. */
const WORTH_A_PART = 20;

/**
 * SQL for the bytes of the vector in a row `v` of `vectors`. SQLite reads the parts in their order in any case;
 * PostgreSQL may read them in the order in which they lie in the table if it is not told to sort them.
 */
export const STORED_BYTES = `CASE v.precision WHEN 0 THEN v.embedding ELSE (
  SELECT CAST(group_concat(parts.bytes, '') AS BLOB) FROM (
    SELECT p.bytes FROM vector_parts p
    WHERE p.part_no >= ${PART_NUMBERS} * v.vector_no AND p.part_no < ${PART_NUMBERS} * (v.vector_no + 1)
    ORDER BY p.part_no) AS parts) END`;

/** Stores the bytes of a vector in parts; a trigger deletes them with the row in `vectors`. Call inside a write. */
export function insertParts(store: Store, vectorNo: number, bytes: Buffer): void {
  const count = countParts(bytes.length);
  const size = Math.ceil(bytes.length / count);
  const insert = store.prepare('INSERT INTO vector_parts (part_no, bytes) VALUES (?, ?)');
  for (let part = 0; part < count; part += 1) {
    insert.run(PART_NUMBERS * vectorNo + part, bytes.subarray(part * size, (part + 1) * size));
  }
}

const counts = new Map<number, number>();

/** Returns the number of parts into which `length` bytes are cut so that they take the least space in pages. */
function countParts(length: number): number {
  const known = counts.get(length);
  if (known !== undefined) return known;
  let best = { count: 0, bytes: Infinity };
  for (let count = 1; count <= PART_NUMBERS; count += 1) {
    const inPage = Math.floor(PAGE_ROOM / (Math.ceil(length / count) + ROW_OVERHEAD));
    const bytes = count * (PAGE_ROOM / inPage + WORTH_A_PART);
    if (bytes < best.bytes) best = { count, bytes };
  }
  assert(best.count > 0, `a vector of ${length} bytes`);
  counts.set(length, best.count);
  return best.count;
}

/** Measures texts, values and metadata of memories before they are read, so that no list of them grows too large. */

import type { Store } from './open-store.ts';

/**
 * Bytes that each list, object and comma of a JSON text counts for beside its own. A text of empty lists has three
 * bytes for each of them, and as values they take twenty times as much memory, and time on their way between threads.
 */
const PART_BYTES = 16;
/** Greatest number of bytes that one byte of a JSON text counts for. */
const MOST = 1 + PART_BYTES;

/** Returns SQL for the bytes that the JSON text of a column counts for. It reads the text. */
export function jsonWeight(column: string): string {
  const parts = [',', '[', '{'].map((part) => `length(replace(${column}, '${part}', ''))`);
  return `(octet_length(${column}) + ${PART_BYTES} * (3 * length(${column}) - ${parts.join(' - ')}))`;
}

/** Reads the size of each memory's text and value in UTF-8 bytes, by number. SQLite tells it without the text. */
export function contentBytes(store: Store, memoryNos: readonly number[]): Map<number, number> {
  return new Map(sizesOf(store, memoryNos).map(({ memoryNo, text, value }) => [memoryNo, text + value]));
}

/**
 * Returns the first of these numbers whose texts, values and metadata together count for at most `bytes` bytes; the
 * first one in any case.
 */
export function withinBytes(store: Store, memoryNos: readonly number[], bytes: number): number[] {
  const sizes = new Map(sizesOf(store, memoryNos).map((size) => [size.memoryNo, size]));
  // Values are looked into only if there are few enough of them, or they are small enough, to be taken at all.
  const most = firstWithin(memoryNos, bytes, (memoryNo) => sizes.get(memoryNo)?.bytes);
  const greatest = (memoryNo: number) => {
    const size = sizes.get(memoryNo);
    return size && size.text + MOST * (size.value + size.metadata);
  };
  if (firstWithin(most, bytes, greatest).length === most.length) return most;
  const weights = textWeights(store, most);
  return firstWithin(most, bytes, (memoryNo) => weights.get(memoryNo));
}

/** Reads the bytes that the text, the value and the metadata of each memory count for together, by number. */
export function textWeights(store: Store, memoryNos: readonly number[]): Map<number, number> {
  if (memoryNos.length === 0) return new Map();
  const rows = store
    .prepare(
      `SELECT seq AS memoryNo,
         octet_length(content) + coalesce(${jsonWeight('value')}, 0) + ${jsonWeight('metadata')} AS weight
       FROM memories WHERE seq IN (SELECT value FROM json_each(?))`,
    )
    .all(JSON.stringify(memoryNos)) as { memoryNo: number; weight: number }[];
  return new Map(rows.map(({ memoryNo, weight }) => [memoryNo, weight]));
}

interface Size {
  readonly memoryNo: number;
  readonly text: number;
  readonly value: number;
  readonly metadata: number;
  /** All three together. */
  readonly bytes: number;
}

function sizesOf(store: Store, memoryNos: readonly number[]): Size[] {
  if (memoryNos.length === 0) return [];
  const rows = store
    .prepare(
      `SELECT seq AS memoryNo, octet_length(content) AS text, coalesce(octet_length(memories.value), 0) AS value,
         octet_length(metadata) AS metadata
       FROM memories WHERE seq IN (SELECT value FROM json_each(?))`,
    )
    .all(JSON.stringify(memoryNos)) as Omit<Size, 'bytes'>[];
  return rows.map((size) => ({ ...size, bytes: size.text + size.value + size.metadata }));
}

function firstWithin(
  memoryNos: readonly number[],
  bytes: number,
  bytesOf: (memoryNo: number) => number | undefined,
): number[] {
  let left = bytes;
  const beyond = memoryNos.findIndex((memoryNo, place) => {
    left -= bytesOf(memoryNo) ?? 0;
    return place > 0 && left < 0;
  });
  return memoryNos.slice(0, beyond === -1 ? memoryNos.length : beyond);
}

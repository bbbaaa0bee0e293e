/**
 * Measures the sizes of texts, values and metadata of memories before they are read, so that no list of memories grows
 * too large.
 */

import type { Store } from './open-store.ts';

/**
 * Number of bytes that each list, object and comma of a JSON text counts for in addition to its own byte. Many small
 * lists take few bytes as text (`[],`), but as parsed values twenty times as much memory, and time to pass them between
 * threads.
 */
export const PART_BYTES = 16;
/** Greatest weight that one byte of a JSON text can have. */
export const MOST = 1 + PART_BYTES;

/**
 * Returns SQL for the weight of the JSON text in a column: its bytes, plus `PART_BYTES` for each list, object and
 * comma. The signs `[`, `{` and `,` inside of strings count, too. It has to read the text.
 */
export function jsonWeight(column: string): string {
  const parts = [',', '[', '{'].map((part) => `length(replace(${column}, '${part}', ''))`);
  return `(octet_length(${column}) + ${PART_BYTES} * (3 * length(${column}) - ${parts.join(' - ')}))`;
}

/**
 * Number of bytes of ASCII text for which each byte of a text counts for the word index that is not ASCII. It is
 * normalised, and divided into words character by character; Chinese gives two terms a character. A byte takes 0.5 to
 * 1 µs, one of ASCII 0.25.
 */
export const NON_ASCII_FACTOR = 4;

/**
 * Reads how much work the text of each memory makes for the word index, by memory number: its bytes, `NON_ASCII_FACTOR`
 * times as many for a text that is not ASCII.
 */
export function indexingWork(store: Store, memoryNos: readonly number[]): Map<number, number> {
  if (memoryNos.length === 0) return new Map();
  const rows = store
    .prepare(
      `SELECT seq AS memoryNo, octet_length(content) AS bytes, length(content) AS characters
       FROM memories WHERE seq IN (SELECT value FROM json_each(?))`,
    )
    .all(JSON.stringify(memoryNos)) as { memoryNo: number; bytes: number; characters: number }[];
  return new Map(
    rows.map(({ memoryNo, bytes, characters }) => [memoryNo, bytes === characters ? bytes : NON_ASCII_FACTOR * bytes]),
  );
}

/**
 * Reads the size of each memory's texts and value together, in UTF-8 bytes, by memory number. SQLite knows it without
 * reading them.
 */
export function contentBytes(store: Store, memoryNos: readonly number[]): Map<number, number> {
  return new Map(sizesOf(store, memoryNos).map(({ memoryNo, text, value }) => [memoryNo, text + value]));
}

/**
 * Returns as many of the first numbers as have texts, values and metadata of at most `bytes` together; at least the
 * first one. Values and metadata count by their weight (`jsonWeight`).
 * @param further bytes that memories take beside what is stored of them now, by memory number
 */
export function withinBytes(
  store: Store,
  memoryNos: readonly number[],
  bytes: number,
  further: ReadonlyMap<number, number> = new Map(),
): number[] {
  const sizes = new Map(sizesOf(store, memoryNos).map((size) => [size.memoryNo, size]));
  // Values are looked into only if there are few enough of them, or they are small enough, to be taken at all.
  const withFurther = (sizeOf: (memoryNo: number) => number | undefined) => (memoryNo: number) =>
    (sizeOf(memoryNo) ?? 0) + (further.get(memoryNo) ?? 0);
  const most = firstWithin(
    memoryNos,
    bytes,
    withFurther((memoryNo) => sizes.get(memoryNo)?.bytes),
  );
  const greatest = withFurther((memoryNo) => {
    const size = sizes.get(memoryNo);
    return size && size.text + MOST * (size.value + size.metadata);
  });
  if (firstWithin(most, bytes, greatest).length === most.length) return most;
  const weights = textWeights(store, most);
  return firstWithin(
    most,
    bytes,
    withFurther((memoryNo) => weights.get(memoryNo)),
  );
}

/**
 * SQL for the bytes of a memory's texts: its content, title and gist, and its labels, which are tags, files and
 * entities. Labels are lists of few strings, so that their bytes say enough.
 */
const TEXT_BYTES = `(octet_length(content) + octet_length(title) + octet_length(gist) + octet_length(tags)
  + octet_length(files) + octet_length(entities))`;

/**
 * Reads the weight of each memory by its number: the bytes of its texts, and `jsonWeight` of its value and its
 * metadata. Of a memory that was read, `weightOf` computes it.
 */
export function textWeights(store: Store, memoryNos: readonly number[]): Map<number, number> {
  if (memoryNos.length === 0) return new Map();
  const rows = store
    .prepare(
      `SELECT seq AS memoryNo,
         ${TEXT_BYTES} + coalesce(${jsonWeight('value')}, 0) + ${jsonWeight('metadata')} AS weight
       FROM memories WHERE seq IN (SELECT value FROM json_each(?))`,
    )
    .all(JSON.stringify(memoryNos)) as { memoryNo: number; weight: number }[];
  return new Map(rows.map(({ memoryNo, weight }) => [memoryNo, weight]));
}

interface Size {
  readonly memoryNo: number;
  /** Bytes of the memory's texts, as `TEXT_BYTES` counts them. */
  readonly text: number;
  readonly value: number;
  readonly metadata: number;
  /** Sum of `text`, `value` and `metadata`. */
  readonly bytes: number;
}

function sizesOf(store: Store, memoryNos: readonly number[]): Size[] {
  if (memoryNos.length === 0) return [];
  const rows = store
    .prepare(
      `SELECT seq AS memoryNo, ${TEXT_BYTES} AS text, coalesce(octet_length(memories.value), 0) AS value,
         octet_length(metadata) AS metadata
       FROM memories WHERE seq IN (SELECT value FROM json_each(?))`,
    )
    .all(JSON.stringify(memoryNos)) as Omit<Size, 'bytes'>[];
  return rows.map((size) => ({ ...size, bytes: size.text + size.value + size.metadata }));
}

function firstWithin(memoryNos: readonly number[], bytes: number, bytesOf: (memoryNo: number) => number): number[] {
  let left = bytes;
  const beyond = memoryNos.findIndex((memoryNo, place) => {
    left -= bytesOf(memoryNo);
    return place > 0 && left < 0;
  });
  return memoryNos.slice(0, beyond === -1 ? memoryNos.length : beyond);
}

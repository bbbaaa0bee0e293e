/**
 * Short lists of rows that were read last, kept in memory. A list of fifty bytes costs as much to read from the file as
 * the page of 4 KB on which it stands, and most lists are short, since each small segment has one for every common
 * word. Lists of all files of a thread share one ring of bytes, in which new lists overwrite the oldest.
 */

/** Bytes of the ring: the short lists of some hundred long questions. */
const RING_BYTES = 2 ** 21;
/** Longest list that is kept, bytes: a quarter of the page that reading it would cost. */
const MAX_KEPT = 1_024;

/** Name of a list that was never kept. */
export const NEVER_KEPT = -1;

let ring: Buffer | undefined;
/** Number of bytes that were ever written to the ring. */
let written = 0;

/**
 * Keeps a list if it is short.
 * @param from offset in `bytes` at which the list begins
 * @param end offset in `bytes` at which the list ends
 * @returns a name by which `findKept` finds the list; NEVER_KEPT if it is not kept
 */
export function keepList(bytes: Buffer, from: number, end: number): number {
  const size = end - from;
  if (size > MAX_KEPT) return NEVER_KEPT;
  ring ??= Buffer.alloc(RING_BYTES);
  // A list does not go beyond the end of the ring.
  if ((written % RING_BYTES) + size > RING_BYTES) written = Math.ceil(written / RING_BYTES) * RING_BYTES;
  const name = written;
  bytes.copy(ring, name % RING_BYTES, from, end);
  written += size;
  return name;
}

/** Tells whether a list is still in the ring. */
export function isKept(name: number): boolean {
  return name !== NEVER_KEPT && name >= written - RING_BYTES;
}

/**
 * Tells whether a list is among the older half of the ring. If such a list is kept again when it is used, lists that
 * are in use are not overwritten.
 */
export function isKeptLong(name: number): boolean {
  return name < written - RING_BYTES / 2;
}

/** Copies a list of `size` bytes from the ring to `target`, at the offset `at`. Call only while `isKept`. */
export function copyKept(name: number, size: number, target: Buffer, at: number): void {
  const from = name % RING_BYTES;
  ring!.copy(target, at, from, from + size);
}

/**
 * Cache of short doclists that were read last. Reading a list of fifty bytes costs as much as reading the whole page of
 * 4 KB that contains it, and most lists are short, since each small segment has one for every common word. The lists of
 * all files that a thread has open share one ring buffer, in which new lists overwrite the oldest.
 */

/** Size of the ring buffer, in bytes: enough for the short lists of some hundred long queries. */
const RING_BYTES = 2 ** 21;
/** Size of the longest list that is cached, in bytes: a quarter of the page that must otherwise be read. */
const MAX_KEPT = 1_024;

/** Name of a list that was never cached. */
export const NEVER_KEPT = -1;

let ring: Buffer | undefined;
/** Number of bytes that were written to the ring buffer since it was made. */
let written = 0;

/**
 * Caches a list if it has at most 1,024 bytes.
 * @param from offset in `bytes` at which the list begins
 * @param end offset in `bytes` at which the list ends
 * @returns the name of the list for `isKept` and `copyKept`; NEVER_KEPT (-1) if it is not cached
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

/** Tells whether a list is still in the ring buffer. */
export function isKept(name: number): boolean {
  return name !== NEVER_KEPT && name >= written - RING_BYTES;
}

/**
 * Tells whether a list is in the older half of the ring buffer, or overwritten already. If such a list is used, it
 * should be cached again, so that lists in use are not overwritten.
 */
export function isKeptLong(name: number): boolean {
  return name < written - RING_BYTES / 2;
}

/**
 * Copies a list of `size` bytes from the ring buffer to `target`, at the offset `at`. Call only if `isKept` is true.
 */
export function copyKept(name: number, size: number, target: Buffer, at: number): void {
  const from = name % RING_BYTES;
  ring!.copy(target, at, from, from + size);
}

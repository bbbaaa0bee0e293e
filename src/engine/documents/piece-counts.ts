/** A cache of the token counts of short ASCII pieces of text (mostly words). */
export interface PieceCounts {
  /** Returns the cached count of the characters from `start` to `end` (exclusive); undefined if there is none. */
  find(text: string, start: number, end: number): number | undefined;
  /**
   * Caches the token count of the piece from `start` to `end` (exclusive). The count must be at most 255, and the piece
   * at most 255 characters of ASCII. The count may be dropped later, or not be cached at all.
   */
  keep(text: string, start: number, end: number, count: number): void;
}

/**
 * Creates the cache as a hash table over the characters themselves, since most words of a text occur several times.
 * With strings as the keys of a Map, two million characters of English took 57 to 107 ms to count, and with this table
 * 40 ms.
 */
export function createPieceCounts(): PieceCounts {
  /**
   * Hash table with open addressing: the number of the entry in each slot, from 1; 0 marks a free slot. An entry takes
   * the first free slot from its hash on.
   */
  const slots = new Uint16Array(SLOTS);
  const starts = new Uint32Array(MAX_ENTRIES + 1);
  const lengths = new Uint8Array(MAX_ENTRIES + 1);
  const counts = new Uint8Array(MAX_ENTRIES + 1);
  const characters = new Uint8Array(MAX_CHARACTERS);
  let entries = 0;
  let used = 0;

  /**
   * Returns the slot of the piece from `start` to `end`, else the free slot for it; undefined if other pieces have
   * taken all slots that it may use.
   */
  const slotOf = (text: string, start: number, end: number) => {
    const first = hashOf(text, start, end);
    for (let probe = 0; probe < MAX_PROBES; probe++) {
      const slot = (first + probe) & (SLOTS - 1);
      const entry = slots[slot]!;
      if (entry === 0 || (lengths[entry] === end - start && isAt(starts[entry]!, text, start, end))) return slot;
    }
    return undefined;
  };
  const isAt = (kept: number, text: string, start: number, end: number) => {
    for (let at = start; at < end; at++) if (characters[kept + at - start] !== text.charCodeAt(at)) return false;
    return true;
  };

  return {
    find(text, start, end) {
      const slot = slotOf(text, start, end);
      return slot === undefined || slots[slot] === 0 ? undefined : counts[slots[slot]!];
    },
    keep(text, start, end, count) {
      if (entries === MAX_ENTRIES || used + end - start > MAX_CHARACTERS) {
        slots.fill(0);
        entries = used = 0;
      }
      const slot = slotOf(text, start, end);
      if (slot === undefined || slots[slot] !== 0) return;
      entries += 1;
      slots[slot] = entries;
      starts[entries] = used;
      lengths[entries] = end - start;
      counts[entries] = count;
      for (let at = start; at < end; at++) characters[used++] = text.charCodeAt(at);
    },
  };
}

/**
 * Greatest number of pieces in the cache: more than most books have different words. When it is full, all pieces are
 * dropped.
 */
const MAX_ENTRIES = 32_768;
/** Number of slots of the table, a power of two; at most a quarter of them is in use. */
const SLOTS = 4 * MAX_ENTRIES;
/**
 * Greatest number of characters of all pieces in the cache together. When it would be exceeded, all pieces are dropped.
 */
const MAX_CHARACTERS = 12 * MAX_ENTRIES;
/**
 * Greatest number of slots that are tried for a piece, from its hash on. A hostile text may consist of words with equal
 * hashes: a piece without a free slot is not cached and is counted each time.
 */
const MAX_PROBES = 16;

/** Hashes a piece by FNV-1a, and mixes the high bits into the low ones. */
function hashOf(text: string, start: number, end: number): number {
  let hash = 0x811c9dc5;
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash ^ (hash >>> 15);
}

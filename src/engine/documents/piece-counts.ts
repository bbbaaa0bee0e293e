/** What is known of short pieces of text in ASCII, looked up by their place in a text. */
export interface PieceCounts {
  /** @returns what was kept for the same characters, undefined for nothing */
  find(text: string, start: number, end: number): number | undefined;
  /** Keeps a number up to 255 for at most 255 characters, all of them ASCII. It may be forgotten, or not be kept at all. */
  keep(text: string, start: number, end: number, count: number): void;
}

/**
 * A hash table over the characters themselves: a text is mostly words that came before, and with a string of each, for a Map to
 * hash, two million characters of English took 57 to 107 ms to count, and so 40.
 */
export function createPieceCounts(): PieceCounts {
  /** An entry's number, from 1 on, in the first free slot from its hash on; 0 for none. */
  const slots = new Uint16Array(SLOTS);
  const starts = new Uint32Array(ENTRIES_MOST + 1);
  const lengths = new Uint8Array(ENTRIES_MOST + 1);
  const counts = new Uint8Array(ENTRIES_MOST + 1);
  const characters = new Uint8Array(CHARACTERS_MOST);
  let entries = 0;
  let used = 0;

  /** The slot that holds the piece, else the free one in which it belongs; undefined where others have taken all that it may have. */
  const slotOf = (text: string, start: number, end: number) => {
    const first = hashOf(text, start, end);
    for (let probe = 0; probe < PROBES_MOST; probe++) {
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
      if (entries === ENTRIES_MOST || used + end - start > CHARACTERS_MOST) {
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

/** More words than most books have: what is rare is seldom worth its place. */
const ENTRIES_MOST = 32_768;
const SLOTS = 4 * ENTRIES_MOST;
const CHARACTERS_MOST = 12 * ENTRIES_MOST;
/** A text may be made of words with one hash: those that find no place cost what they would without a table, and the others no more. */
const PROBES_MOST = 16;

/** FNV-1a, whose low bits are turned over once more. */
function hashOf(text: string, start: number, end: number): number {
  let hash = 0x811c9dc5;
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash ^ (hash >>> 15);
}

import type { Store } from './open-store.ts';

/** A memory that was drawn at random. */
export interface SampledMemory {
  readonly memoryNo: number;
  readonly userNo: number;
  readonly userId: string;
  readonly sessionId: string;
  /** Beginning of the memory's text. */
  readonly content: string;
}

/**
 * Draws a memory at random `count` times. A memory that was drawn several times is returned once, so the result may
 * have fewer than `count`; it is empty for an empty file. A memory whose preceding numbers were erased is drawn more
 * often than others.
 * @param characters number of Unicode code points that are read of each text
 * @param random returns a number from 0 to below 1 at each call
 */
export function sampleMemories(
  store: Store,
  { count, characters, random }: { readonly count: number; readonly characters: number; readonly random: () => number },
): SampledMemory[] {
  const { first, last } = store.prepare('SELECT min(seq) AS first, max(seq) AS last FROM memories').get() as {
    first: number | null;
    last: number | null;
  };
  if (first === null || last === null) return [];
  const next = store.prepare(
    `SELECT m.seq AS memoryNo, m.user_no AS userNo, u.user_id AS userId, m.session_id AS sessionId,
       substr(m.content, 1, ?) AS content
     FROM memories m CROSS JOIN users u ON u.user_no = m.user_no WHERE m.seq >= ? ORDER BY m.seq LIMIT 1`,
  );
  const drawn = new Map<number, SampledMemory>();
  for (let draw = 0; draw < count; draw += 1) {
    const memory = next.get(characters, first + Math.floor(random() * (last - first + 1))) as SampledMemory;
    drawn.set(memory.memoryNo, memory);
  }
  return [...drawn.values()];
}

import { estimateTokens } from '../text/tokens.ts';
import type { Memory } from '../types.ts';
import type { Scored } from './score.ts';

export interface PackLimits {
  readonly k: number;
  readonly minScore: number;
  /** Estimated tokens of all contents together; undefined for no limit. */
  readonly tokenBudget: number | undefined;
}

export interface Packed {
  readonly scored: Scored;
  readonly memory: Memory;
}

/**
 * The best `k` that reach the least score and fit the budget. One that does not fit is skipped, not the end: a shorter one
 * behind it may.
 * @param ranked best first
 * @param read memories by number; asked for `k` at a time, so that long texts are read only where they are wanted
 */
export function pack(
  ranked: readonly Scored[],
  { k, minScore, tokenBudget }: PackLimits,
  read: (seqs: readonly number[]) => ReadonlyMap<number, Memory>,
): Packed[] {
  const eligible = ranked.filter(({ score }) => score >= minScore);
  const packed: Packed[] = [];
  let tokensLeft = tokenBudget ?? Infinity;
  for (let first = 0; first < eligible.length && packed.length < k && tokensLeft > 0; first += k) {
    const slice = eligible.slice(first, first + k);
    const memories = read(slice.map(({ row }) => row.seq));
    for (const scored of slice) {
      const memory = memories.get(scored.row.seq);
      if (memory === undefined || packed.length === k) continue;
      const tokens = tokenBudget === undefined ? 0 : estimateTokens(memory.content);
      if (tokens > tokensLeft) continue;
      tokensLeft -= tokens;
      packed.push({ scored, memory });
    }
  }
  return packed;
}

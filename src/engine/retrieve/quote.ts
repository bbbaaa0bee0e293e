/**
 * Recalled text outside of the answer to a query, quoted as the format `prompt` quotes it. Whatever shows stored text
 * to a language model uses one of these functions.
 */
import { estimateTokens } from '../text/tokens.ts';
import type { Memory } from '../types.ts';
import { bullet, inline, NOTICE, safeLines } from './prompt.ts';

/** Memories as one quoted text. */
export interface QuotedMemories {
  /** The text, which begins with the notice that it is data; '' without memories. */
  readonly text: string;
  /** Number of memories in the text. */
  readonly shown: number;
}

/**
 * Quotes memories in their order, each with its id and its day.
 * @param tokenBudget most estimated tokens of the text. The first memory is always in it; from the first that does not
 *   fit on, memories are left out
 */
export function quoteMemories(memories: readonly Memory[], tokenBudget = Infinity): QuotedMemories {
  const lines = [NOTICE, ''];
  let tokens = estimateTokens(NOTICE);
  let shown = 0;
  for (const memory of memories) {
    const quoted = bullet(memory);
    tokens += estimateTokens(quoted.join('\n'));
    if (shown > 0 && tokens > tokenBudget) break;
    lines.push(...quoted);
    shown += 1;
  }
  return { text: shown === 0 ? '' : lines.join('\n'), shown };
}

/** Quotes a text of several lines, such as that of a document, under the notice that it is data. */
export function quoteText(text: string): string {
  return [NOTICE, '', ...safeLines(text).map((line) => `> ${line}`.trimEnd())].join('\n');
}

/** Quotes a name or another short text on one line of at most `maxCharacters` characters. */
export function quoteLine(text: string, maxCharacters: number): string {
  return JSON.stringify(inline(text, maxCharacters));
}

/**
 * Quotes recalled text that is not part of the answer to a query, as the format `prompt` quotes it. Whatever shows
 * stored text to a language model uses one of these functions.
 */

import { estimateTokens } from '../text/tokens.ts';
import type { Memory } from '../types.ts';
import { bullet, inline, NOTICE, safeLines } from './prompt.ts';

/** Memories as a single quoted text. */
export interface QuotedMemories {
  /** The text. It begins with `NOTICE`, which says that it is data; '' for no memories. */
  readonly text: string;
  /** Number of memories that are in the text. */
  readonly shown: number;
}

/**
 * Quotes memories in their order, each with its id and its day. The first memory is always in the text. From the first
 * further memory on that exceeds the budget, all are left out.
 * @param tokenBudget greatest estimated number of tokens of the text
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

/** Quotes a text of several lines, such as that of a document, under the notice that it is data (`NOTICE`). */
export function quoteText(text: string): string {
  return [NOTICE, '', ...safeLines(text).map((line) => `> ${line}`.trimEnd())].join('\n');
}

/**
 * Quotes a name or another short text as a JSON string on one line. More than `maxCharacters` characters are cut off.
 */
export function quoteLine(text: string, maxCharacters: number): string {
  return JSON.stringify(inline(text, maxCharacters));
}

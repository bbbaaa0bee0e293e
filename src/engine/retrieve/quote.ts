/**
 * Quotes recalled text outside of answers to queries, in the way of the format `prompt`. All code that shows stored
 * text to a language model uses one of these functions.
 */

import { estimateTokens } from '../text/tokens.ts';
import type { Memory } from '../types.ts';
import { bullet, inline, NOTICE, safeLines } from './prompt.ts';

/** Memories as a single quoted text for a language model. */
export interface QuotedMemories {
  /**
   * The text. It begins with `NOTICE`, which says that what follows is data and not instructions; '' for no memories.
   */
  readonly text: string;
  /** Number of memories that are in the text. */
  readonly shown: number;
}

/**
 * Quotes memories in their order, each with its id and its day. The first memory is always in the text. The first
 * further memory that exceeds the budget is left out, and so are all after it.
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

/**
 * Quotes a text of several lines, such as that of a document, after the sentence that it is data and not instructions
 * (`NOTICE`).
 */
export function quoteText(text: string): string {
  return [NOTICE, '', ...safeLines(text).map((line) => `> ${line}`.trimEnd())].join('\n');
}

/**
 * Quotes a name or another short text as a JSON string on one line. The text is cut after `maxCharacters` characters.
 */
export function quoteLine(text: string, maxCharacters: number): string {
  return JSON.stringify(inline(text, maxCharacters));
}

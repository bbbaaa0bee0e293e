/**
 * Quotes stored text for the model of a client, outside of answers to queries, as the format `prompt` does. Prompts for
 * the language model of the engine quote by `text/fence.ts` instead.
 */

import type { Memory } from '../types.ts';
import { bullet, costOf, inline, NOTICE, safeLines } from './prompt.ts';

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
 * Quotes memories in their order, each with its id and its day. The first memory is in the text even if it exceeds the
 * token budget. From the first further memory on that exceeds the budget, all are left out.
 * @param tokenBudget greatest estimated number of tokens of the text
 */
export function quoteMemories(memories: readonly Memory[], tokenBudget = Infinity): QuotedMemories {
  const lines = [NOTICE, ''];
  let cost = costOf(lines);
  let shown = 0;
  for (const memory of memories) {
    const quoted = bullet(memory);
    cost += costOf(quoted);
    if (shown > 0 && cost > tokenBudget * 100) break;
    lines.push(...quoted);
    shown += 1;
  }
  return { text: shown === 0 ? '' : lines.join('\n'), shown };
}

/**
 * Quotes a text of several lines, such as the text of a document, after a sentence which says that the text is data and
 * not instructions (`NOTICE`).
 */
export function quoteText(text: string): string {
  return [NOTICE, '', ...safeLines(text).map((line) => `> ${line}`.trimEnd())].join('\n');
}

/**
 * Quotes a name or another short text as a JSON string on one line, after cutting it to at most `maxCharacters`
 * characters.
 */
export function quoteLine(text: string, maxCharacters: number): string {
  return JSON.stringify(inline(text, maxCharacters));
}

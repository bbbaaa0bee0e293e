/**
 * Writes what changed between two times as a text for a language model. Memories are quoted as in an answer to a query.
 */

import { estimateTokens } from '../text/tokens.ts';
import type { DiffLists, Memory, MemoryDiff } from '../types.ts';
import { bullet, costOf, excerpt, MAX_RENDERED_CHARACTERS, NOTICE, type Rendered } from './prompt.ts';

const NOTHING_CHANGED = 'Nothing changed.';
const NOTHING_FITS = 'There are changes, but none of their lists fits into the budget.';

/** The heading of each list of changes, in the order of the lists in the text. */
const HEADINGS: Readonly<Record<keyof DiffLists, string>> = {
  added: 'Added',
  changed: 'Changed',
  superseded: 'Superseded',
  contradicted: 'Contradicted',
  ended: 'No longer valid',
  restored: 'Restored',
  archived: 'Archived',
  faded: 'Faded',
};

/**
 * Renders the changes between two times as Markdown. An entry that does not fit into what is left of the token budget
 * or of `MAX_RENDERED_CHARACTERS` is left out; the heading of each list still gives the number of all its entries. A
 * list whose heading does not fit is left out whole.
 * @param tokenBudget greatest estimated number of tokens of the text; no bound if left out. The first lines, and a
 *   sentence in place of lists that are all missing, are written even if they exceed it
 */
export function renderDigest(diff: MemoryDiff, tokenBudget = Infinity): Rendered {
  const formatTime = (time: number) => new Date(time).toISOString().replace(/\.000Z$/, 'Z');
  const head = [NOTICE, '', `## Changes from ${formatTime(diff.from)} to ${formatTime(diff.to)}`];
  const lines = [...head];
  let left = tokenBudget * 100 - costOf(head);
  let characters = 0;
  const afford = (more: readonly string[]): boolean => {
    const cost = costOf(more);
    const length = more.join('\n').length;
    if (cost > left || characters + length > MAX_RENDERED_CHARACTERS) return false;
    left -= cost;
    characters += length;
    lines.push(...more);
    return true;
  };
  for (const [list, heading] of Object.entries(HEADINGS) as [keyof DiffLists, string][]) {
    if (diff.counts[list] === 0 || !afford(['', `### ${heading} (${diff.counts[list]})`])) continue;
    for (const entry of entriesOf(diff, list)) afford(entry);
  }
  const { deleted, expired } = diff.erased ?? { deleted: 0, expired: 0 };
  if (deleted + expired > 0)
    afford(['', `${deleted} ${deleted === 1 ? 'memory was' : 'memories were'} deleted and ${expired} expired.`]);
  if (lines.length === head.length) {
    const isSame = deleted + expired === 0 && Object.values(diff.counts).every((count) => count === 0);
    lines.push('', isSame ? NOTHING_CHANGED : NOTHING_FITS);
  }
  const text = lines.join('\n');
  return { text, tokens: estimateTokens(text) };
}

/** Returns the lines of each entry of a list: one array for each entry. */
function entriesOf(diff: MemoryDiff, list: keyof DiffLists): string[][] {
  switch (list) {
    case 'changed':
      return diff.changed.map(({ memory, before }) => withNote(memory, 'before', before));
    case 'superseded':
      return diff.superseded.map(({ memory, by }) => withNote(memory, 'now', by));
    case 'contradicted':
      return diff.contradicted.map(({ a, b }) => withNote(a, 'against', b));
    default:
      return diff[list].map(({ memory }) => bullet(memory));
  }
}

function withNote(memory: Memory, word: string, other: Memory | null): string[] {
  return [...bullet(memory), ...(other === null ? [] : [`  - ${word}: ${excerpt(other)}`])];
}

import { ftsString } from '../../text/index-text.ts';
import { TEXT_COLUMNS, type TextColumn } from '../../types.ts';
import type { Store } from '../open-store.ts';
import { markOf, markTokens } from './tokens.ts';

/** What a memory itself says. */
export const OWN_COLUMNS = TEXT_COLUMNS.filter((column) => column !== 'context');

/**
 * Which of these memories have a word or phrase.
 * @param columns where; in all by default
 */
export function matchingText(
  store: Store,
  text: string,
  seqs: readonly number[],
  columns: readonly TextColumn[] = TEXT_COLUMNS,
): number[] {
  const select = store
    .prepare('SELECT rowid FROM memory_text WHERE memory_text MATCH ? AND rowid IN (SELECT value FROM json_each(?))')
    .pluck();
  const where = columns.length === TEXT_COLUMNS.length ? '' : `{${columns.join(' ')}} : `;
  return [...Map.groupBy(seqs, markOf)].flatMap(
    ([mark, some]) => select.all(where + ftsString(markTokens(text, mark)), JSON.stringify(some)) as number[],
  );
}

import { TEXT_COLUMNS, type TextColumn } from '../../types.ts';
import type { Store } from '../open-store.ts';
import { matchString, markOf } from './tokens.ts';

/**
 * Which of these memories have a word or phrase. FTS5 itself is asked, whatever reader searches the index: it is quick where few memories
 * are asked about.
 * @param columns where it may stand; in all columns by default
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
    ([mark, some]) => select.all(where + matchString(text, mark), JSON.stringify(some)) as number[],
  );
}

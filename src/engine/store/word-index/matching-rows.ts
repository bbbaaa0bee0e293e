import { TEXT_COLUMNS, type TextColumn } from '../../types.ts';
import type { Store } from '../open-store.ts';
import { openTableSearch } from './open-word-search.ts';
import { matchString, markOf } from './terms.ts';

/**
 * Finds which of these memories contain a word or phrase, in no certain order. It uses FTS5's own MATCH, whichever
 * reader searches the index, since MATCH is fast for few memories.
 * @param text word or phrase, as `queryTerms` returns it
 * @param columns columns that may contain it; all if left out
 */
export function matchingText(
  store: Store,
  text: string,
  memoryNos: readonly number[],
  columns: readonly TextColumn[] = TEXT_COLUMNS,
): number[] {
  const table = openTableSearch(store);
  if (table !== undefined) {
    return table.matching(text, memoryNos, new Set(columns.map((column) => TEXT_COLUMNS.indexOf(column))));
  }
  const select = store
    .prepare('SELECT rowid FROM memory_text WHERE memory_text MATCH ? AND rowid IN (SELECT value FROM json_each(?))')
    .pluck();
  const where = columns.length === TEXT_COLUMNS.length ? '' : `{${columns.join(' ')}} : `;
  return [...Map.groupBy(memoryNos, markOf)].flatMap(
    ([mark, ofPartition]) => select.all(where + matchString(text, mark), JSON.stringify(ofPartition)) as number[],
  );
}

import { TEXT_COLUMNS, type TextColumn } from '../../types.ts';
import type { Store } from '../open-store.ts';
import { openTableSearch, openWordSearch } from './open-word-search.ts';
import { matchString, markOf } from './terms.ts';

/**
 * Finds which of these memories contain a word or phrase, in no certain order. A word is looked up with FTS5's own
 * MATCH, whichever reader searches the index, since MATCH is fast for few memories. For a phrase it is not: for each
 * memory without it, FTS5 goes on to the next row with the phrase, up to the end of the index. So the index is searched
 * for a phrase once. Matches may be missing once too little of the work budget is left. Call inside `store.read`.
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
  if (text.includes(' ')) {
    const weights = TEXT_COLUMNS.map((column) => (columns.includes(column) ? 1 : 0));
    const rows = openWordSearch(store).bestOf([text], weights, memoryNos, memoryNos.length);
    return rows.filter(({ bm25 }) => bm25 > 0).map(({ memoryNo }) => memoryNo);
  }
  const select = store
    .prepare('SELECT rowid FROM memory_text WHERE memory_text MATCH ? AND rowid IN (SELECT value FROM json_each(?))')
    .pluck();
  const where = columns.length === TEXT_COLUMNS.length ? '' : `{${columns.join(' ')}} : `;
  return [...Map.groupBy(memoryNos, markOf)].flatMap(
    ([mark, ofPartition]) => select.all(where + matchString(text, mark), JSON.stringify(ofPartition)) as number[],
  );
}

/** Longest query that Cairn takes, in UTF-16 code units. */
const MAX_QUERY = 8_192;

/**
 * Makes a query of a message: the whole text, or its first 8,192 UTF-16 code units without half a surrogate pair at the
 * end.
 */
export function queryText(said: string): string {
  const isHalf = said.length > MAX_QUERY && /[\uD800-\uDBFF]/.test(said[MAX_QUERY - 1]!);
  return said.slice(0, isHalf ? MAX_QUERY - 1 : MAX_QUERY);
}

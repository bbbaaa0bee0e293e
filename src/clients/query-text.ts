/** Longest query that Cairn takes, in UTF-16 code units. */
const MAX_QUERY = 8_192;

/**
 * Makes the text of a query from a message: the whole message, or its first 8,192 UTF-16 code units. A surrogate pair
 * is not split at the end.
 */
export function queryText(said: string): string {
  const isHalf = said.length > MAX_QUERY && /[\uD800-\uDBFF]/.test(said[MAX_QUERY - 1]!);
  return said.slice(0, isHalf ? MAX_QUERY - 1 : MAX_QUERY);
}

/** Longest query that Cairn takes, in UTF-16 code units. */
const MAX_QUERY = 8_192;

/** Makes a query of what somebody said: its beginning, if it is too long, without half a character at the end. */
export function queryText(said: string): string {
  const isHalf = said.length > MAX_QUERY && /[\uD800-\uDBFF]/.test(said[MAX_QUERY - 1]!);
  return said.slice(0, isHalf ? MAX_QUERY - 1 : MAX_QUERY);
}

/**
 * Returns a text of the number `no` and `bytes` control characters. As JSON the text is about six times as long, more
 * than any other text of its size.
 */
export function controlText(no: number, bytes = 174_000): string {
  return `${no} ${'\u0001'.repeat(bytes)}`;
}

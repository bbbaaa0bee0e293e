/** A text of control characters: as JSON it is six times as long, the most that any text of its size can be. */
export function controlText(no: number, bytes = 174_000): string {
  return `${no} ${'\u0001'.repeat(bytes)}`;
}

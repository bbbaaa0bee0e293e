/** Prints a figure as one JSON line, with its numbers rounded to four digits, so that a program can compare runs. */
export function report(figure: string, value: number, more: Readonly<Record<string, number | string>> = {}): void {
  const round = (number: number) => Number(number.toPrecision(4));
  const rest = Object.entries(more).map(([name, detail]) => [
    name,
    typeof detail === 'number' ? round(detail) : detail,
  ]);
  console.log(JSON.stringify({ figure, value: round(value), ...Object.fromEntries(rest) }));
}

/** Returns a percentile of values; `share` is in 0..1, so 0.95 is the p95. NaN if there are no values. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}

/**
 * Number of rows that a statement changed, and number of the row that it inserted last, which means nothing for a
 * statement that inserted none.
 */
export interface RunResult {
  readonly changes: number;
  readonly lastInsertRowid: number | bigint;
}

/**
 * A prepared statement of SQLite or PostgreSQL. Parameters are given in the order of their `?`, or as one object by the
 * names of `:name`. A row is an object by column. `pluck` returns a statement whose rows are the values of the first
 * column, and `raw` one whose rows are arrays; neither changes this statement. Values are numbers, texts, null, and a
 * Buffer for bytes.
 */
export interface Statement<Parameters extends unknown[] = unknown[], Row = unknown> {
  run(...parameters: Parameters): RunResult;
  get(...parameters: Parameters): Row | undefined;
  all(...parameters: Parameters): Row[];
  iterate(...parameters: Parameters): IterableIterator<Row>;
  pluck(): Statement<Parameters, Row>;
  raw(): Statement<Parameters, Row>;
}

/**
 * Runs a statement for each of these values, and returns the number of rows that were changed. No result is read before
 * the last statement was run, so that in PostgreSQL all of them share a round trip.
 */
export function changesOfEach<T>(
  statement: Statement,
  values: readonly T[],
  parametersOf: (value: T) => readonly unknown[],
): number {
  const results = values.map((value) => statement.run(...parametersOf(value)));
  return results.reduce((sum, { changes }) => sum + changes, 0);
}

/** Reads the rows of a query portion by portion, so that a long answer is never in memory as a whole. */

import type { Portion, QueryResult } from './statements.ts';

/** Greatest number of rows of the first portion. A query with fewer rows takes one round trip, as without portions. */
const FIRST_ROWS = 1_000;
/** Greatest number of rows of a later portion. */
const MOST_ROWS = 10_000;
/**
 * Size that a later portion should have, in bytes. The number of its rows follows from the size of the rows of the
 * portion before.
 */
const PORTION_BYTES = 1_048_576;

/** Number of queries that this thread has read in portions so far; it makes the names of their portals different. */
let queries = 0;

/**
 * Yields the answer to a query, or the parts of it. Each part is asked for when the one before has been used.
 * @param ask asks the query for a portion; it may return the whole answer if that is known
 * @param close says that no more of a portal is read, also when the consumer stops early
 */
export function* inPortions(
  ask: (portion: Portion) => QueryResult,
  close: (portal: string) => void,
): Generator<QueryResult> {
  const portal = `portion ${(queries += 1)}`;
  try {
    let result = ask({ portal, rows: FIRST_ROWS });
    for (;;) {
      yield result;
      const { rows, rest } = result;
      if (rest === undefined) return;
      const fitting = Math.floor((rows.length * PORTION_BYTES) / rest.bytes);
      result = ask({ portal, rows: Math.max(1, Math.min(MOST_ROWS, fitting)), rest });
    }
  } finally {
    close(portal);
  }
}

import type { Store } from './open-store.ts';
import { ROW_BYTES } from './work-budget.ts';

/**
 * Returns SQL for a WHERE that counts each row that the statement examines against the work budget of the request, and
 * then checks a condition. It stands before all other conditions. A file counts each row of the first table of the
 * FROM. PostgreSQL counts each row for which it checks the condition; it may check others before. When the budget is
 * used up, no further row passes, and a file leaves the statement (`readUntilWorkEnds`).
 */
export function countingRows(store: Store, condition: string): string {
  const counts = `may_work(${ROW_BYTES})`;
  // SQLite checks conditions in their order, and PostgreSQL begins with what is cheapest.
  return store.ahead === null ? `${counts} AND (${condition})` : `CASE WHEN ${counts} THEN ${condition} ELSE FALSE END`;
}

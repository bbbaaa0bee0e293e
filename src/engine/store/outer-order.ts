import type { Store } from './open-store.ts';

/**
 * Returns SQL that sorts the rows of a join by what the subquery that it begins with is sorted by, such as ` ORDER BY
 * near.seq DESC`; '' for a file. SQLite joins in the order of the text, so these rows come in the order of the
 * subquery, and reading ends with the last row that is wanted; a sort would read all of them. PostgreSQL may begin with
 * any table, and then a LIMIT takes any rows.
 * @param order names of columns of the subquery, as in ORDER BY
 */
export function outerOrder(store: Store, order: string): string {
  return store.ahead === null ? '' : ` ORDER BY ${order}`;
}

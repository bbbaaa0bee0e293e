/** Deletes standing queries and webhooks of users or of API keys, with everything that belongs to them. */

import type { ErasedStanding, StandingOwner } from '../types.ts';
import type { Store } from './open-store.ts';
import { isByOneOf } from './writers.ts';

/**
 * Names what is about to be deleted: a webhook by its id; a standing query by its id, with its webhook; or all webhooks
 * and standing queries of an owner.
 */
export type StandingPart = { readonly webhook: string } | { readonly query: string } | StandingOwner;

/** A condition in SQL, with the values of its parameters. */
type Condition = readonly [sql: string, values: readonly string[]];

/**
 * Deletes at most `limit` answers and at most `limit` deliveries that belong to the webhooks or standing queries which
 * are about to be deleted. For users it also removes their names from at most `limit` deliveries. There may be very
 * many rows, so several writes delete them. Call inside a write.
 * @returns the number of rows that were deleted or changed; 0 if none is left
 */
export function deleteStandingRows(store: Store, part: StandingPart, limit: number): number {
  const [hooks, queries] = rowsOf(part);
  const { changes: deliveries } = store
    .prepare(
      `DELETE FROM deliveries WHERE delivery_no IN (
         SELECT delivery_no FROM deliveries WHERE hook_no IN (SELECT hook_no FROM webhooks WHERE ${hooks[0]}) LIMIT ?)`,
    )
    .run(...hooks[1], limit);
  if (queries === null) return deliveries;
  const { changes: answers } = store
    .prepare(
      `DELETE FROM standing_answers WHERE (query_no, memory) IN (
         SELECT query_no, memory FROM standing_answers
         WHERE query_no IN (SELECT query_no FROM standing_queries WHERE ${queries[0]}) LIMIT ?)`,
    )
    .run(...queries[1], limit);
  return deliveries + answers + ('userIds' in part ? removeNames(store, part, limit) : 0);
}

/**
 * Returns the conditions on the table of webhooks and on that of standing queries which select what is deleted; null in
 * place of the second one if no standing query is.
 */
function rowsOf(part: StandingPart): readonly [hooks: Condition, queries: Condition | null] {
  if ('webhook' in part) return [['id = ?', [part.webhook]], null];
  if ('query' in part)
    return [
      ['query_no = (SELECT query_no FROM standing_queries WHERE id = ?)', [part.query]],
      ['id = ?', [part.query]],
    ];
  const owned = ownedBy(part);
  return [owned, owned];
}

/**
 * Deletes at most `limit` webhooks and `limit` standing queries of an owner, and removes the names of users that are
 * the owner from at most `limit` deliveries. Call inside a write, repeatedly until `isDone` is true.
 */
export function eraseStanding(
  store: Store,
  owner: StandingOwner,
  limit: number,
): ErasedStanding & { readonly names: number; readonly isDone: boolean } {
  const [condition, values] = ownedBy(owner);
  const erase = (table: string, key: string) =>
    store
      .prepare(`DELETE FROM ${table} WHERE ${key} IN (SELECT ${key} FROM ${table} WHERE ${condition} LIMIT ?)`)
      .run(...values, limit).changes;
  const webhooks = erase('webhooks', 'hook_no');
  // A query takes its webhook along, which would then not be counted.
  const standingQueries = webhooks === limit ? 0 : erase('standing_queries', 'query_no');
  const names = removeNames(store, owner, limit);
  return { standingQueries, webhooks, names, isDone: Math.max(standingQueries, webhooks, names) < limit };
}

/**
 * Removes the names of users from at most `limit` deliveries, those of webhooks that stay, too. An owner that is a key
 * has no name in deliveries.
 * @returns the number of deliveries
 */
function removeNames(store: Store, { userIds, writtenBy }: StandingOwner, limit: number): number {
  if (userIds === undefined || writtenBy !== undefined) return 0;
  return store
    .prepare(
      `UPDATE deliveries SET user_id = NULL WHERE delivery_no IN (
         SELECT delivery_no FROM deliveries WHERE user_id IN (SELECT value FROM json_each(?)) LIMIT ?)`,
    )
    .run(JSON.stringify(userIds), limit).changes;
}

function ownedBy({ userIds, writtenBy }: StandingOwner): Condition {
  const ofUsers = userIds === undefined ? [] : ['user_id IN (SELECT value FROM json_each(?))'];
  // The first part lets SQLite use the index, which has only rows with a writer.
  const ofWriters = writtenBy === undefined ? [] : [`writer_no > 0 AND ${isByOneOf('writer_no')}`];
  const values = [userIds, writtenBy].flatMap((names) => (names === undefined ? [] : JSON.stringify(names)));
  return [[...ofUsers, ...ofWriters].join(' AND '), values];
}

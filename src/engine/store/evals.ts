/** Stores evaluation sets, their items and their runs. */

import { EngineError } from '../errors.ts';
import { EVAL_LIMITS, type EvalItem, type EvalRun, type EvalSummary, type Json, type NewEvalSet } from '../types.ts';
import type { Store } from './open-store.ts';
import { parseStored } from './stored-json.ts';

interface SetRow {
  readonly setNo: number;
  readonly name: string;
  readonly guard: number;
  readonly items: number;
  readonly updatedAt: number;
}

const SETS = `SELECT set_no AS setNo, name, guard, updated_at AS updatedAt,
  (SELECT count(*) FROM eval_items WHERE eval_items.set_no = eval_sets.set_no) AS items FROM eval_sets`;

/**
 * Stores an evaluation set, in place of one with the same name, whose runs are kept. Call inside a write.
 * @returns the number of items that it replaced
 * @throws EngineError `conflict` for more than 100 sets, for sets of more than 64 MiB together (unless this put makes
 *   them smaller), or for more than 1,000 items together in sets that guard changes of the model
 */
export function putEval(store: Store, { name, guard, items }: NewEvalSet, now: number): number {
  const before = countBytes(store);
  store
    .prepare(
      `INSERT INTO eval_sets (name, guard, created_at, updated_at) VALUES (:name, :guard, :now, :now)
       ON CONFLICT (name) DO UPDATE SET guard = :guard, updated_at = :now`,
    )
    .run({ name, guard: Number(guard), now });
  const { setNo } = getSet(store, name);
  const { changes: replaced } = store.prepare('DELETE FROM eval_items WHERE set_no = ?').run(setNo);
  const insert = store.prepare('INSERT INTO eval_items (set_no, place, user_id, item) VALUES (?, ?, ?, ?)');
  items.forEach(({ userId, ...item }, place) => insert.run(setNo, place, userId ?? null, JSON.stringify(item)));
  requireWithinLimits(store, before);
  return replaced;
}

/** Counts the bytes of the items of all evaluation sets. */
function countBytes(store: Store): number {
  return store.prepare('SELECT coalesce(sum(octet_length(item)), 0) FROM eval_items').pluck().get() as number;
}

function requireWithinLimits(store: Store, bytesBefore: number): void {
  const sets = store.prepare(SETS).all() as SetRow[];
  const guarded = sets.filter(({ guard }) => guard === 1).reduce((sum, set) => sum + set.items, 0);
  if (sets.length > EVAL_LIMITS.sets)
    throw new EngineError('conflict', `a tenant has at most ${EVAL_LIMITS.sets} sets: delete one first`);
  const bytes = countBytes(store);
  // A tenant that has more from earlier may put smaller sets in place of larger ones.
  if (bytes > EVAL_LIMITS.bytes && bytes >= bytesBefore)
    throw new EngineError(
      'conflict',
      `the evaluation sets of a tenant have at most ${EVAL_LIMITS.bytes} bytes together: delete one first`,
    );
  if (guarded > EVAL_LIMITS.guardedItems)
    throw new EngineError(
      'conflict',
      `guarded sets have at most ${EVAL_LIMITS.guardedItems} items together, as a change of settings asks them all`,
    );
}

/** Lists all sets, sorted by name, each with its latest run (null if there is none). */
export function listEvals(store: Store): EvalSummary[] {
  const sets = store.prepare(`${SETS} ORDER BY name`).all() as SetRow[];
  return sets.map(({ setNo, name, guard, items, updatedAt }) => ({
    name,
    guard: guard === 1,
    items,
    updatedAt,
    lastRun: runsOf(store, setNo, 1)[0] ?? null,
  }));
}

/** An item of a set as it is stored: its user, and the JSON of its other fields. */
export interface EvalItemText {
  readonly userId: string | null;
  readonly text: string;
}

/** Returns the set with this name, its items as they are stored. @throws EngineError `not_found` */
export function readEvalTexts(
  store: Store,
  name: string,
): Omit<NewEvalSet, 'items'> & { readonly items: readonly EvalItemText[] } {
  const { setNo, guard } = getSet(store, name);
  const items = store
    .prepare('SELECT user_id AS userId, item AS text FROM eval_items WHERE set_no = ? ORDER BY place')
    .all(setNo) as EvalItemText[];
  return { name, guard: guard === 1, items };
}

/** Tells whether a file has an evaluation set. */
export function hasEvals(store: Store): boolean {
  return store.prepare('SELECT 1 FROM eval_sets LIMIT 1').get() !== undefined;
}

/** Parses a stored item of an evaluation set. */
export function parseEvalItem({ userId, text }: EvalItemText): EvalItem {
  return { ...(parseStored(text) as EvalItem), ...(userId === null ? {} : { userId }) };
}

/** Returns the set with this name. @throws EngineError `not_found` */
export function getEval(store: Store, name: string): NewEvalSet {
  const { items, ...set } = readEvalTexts(store, name);
  return { ...set, items: items.map(parseEvalItem) };
}

/** Deletes a set, its items and its runs. Call inside a write. @throws EngineError `not_found` */
export function deleteEval(store: Store, name: string): void {
  const { setNo } = getSet(store, name);
  for (const table of ['eval_runs', 'eval_items', 'eval_sets'])
    store.prepare(`DELETE FROM ${table} WHERE set_no = ?`).run(setNo);
}

/** An item of a stored set, with its index in the set. */
interface PlacedEvalItem {
  readonly setNo: number;
  /** Name of the set. */
  readonly name: string;
  readonly place: number;
  readonly item: Omit<EvalItem, 'userId'>;
}

/** Lists the items of all sets, in the order of the sets; with `userId` only those about this user. */
export function listEvalItems(store: Store, userId: string | null = null): PlacedEvalItem[] {
  const rows = store
    .prepare(
      `SELECT s.set_no AS setNo, s.name, i.place, i.item FROM eval_sets s JOIN eval_items i ON i.set_no = s.set_no
       WHERE :userId IS NULL OR i.user_id = :userId ORDER BY s.set_no, i.place`,
    )
    .all({ userId }) as (Omit<PlacedEvalItem, 'item'> & { readonly item: string })[];
  return rows.map((row) => ({ ...row, item: parseStored(row.item) as PlacedEvalItem['item'] }));
}

/** Replaces the item at an index of a set. Call inside a write. */
export function putEvalItem(
  store: Store,
  { setNo, place, item }: Pick<PlacedEvalItem, 'setNo' | 'place'> & { readonly item: Json },
): void {
  store
    .prepare('UPDATE eval_items SET item = ? WHERE set_no = ? AND place = ?')
    .run(JSON.stringify(item), setNo, place);
}

/** Greatest number of items that one commit erases. */
const ERASED_AT_ONCE = 1_000;
/**
 * Number of bytes of items after which a commit erases no more: their bytes are overwritten, and the evaluation sets of
 * a tenant may have 64 MiB.
 */
const ERASED_BYTES = 1024 * 1024;

/** What one commit erased. */
export interface ErasedEvalItems {
  readonly items: number;
  /** Whether no item about the users is left. */
  readonly isDone: boolean;
}

/**
 * Deletes the next items about these users from all evaluation sets, some 1 MiB and 1,000 items at most. Call inside a
 * write, repeatedly until `isDone` is true.
 */
export function eraseEvalItems(store: Store, userIds: readonly string[]): ErasedEvalItems {
  const found = store
    .prepare(
      `SELECT i.set_no AS setNo, i.place, octet_length(i.item) AS bytes
       FROM json_each(?) AS wanted CROSS JOIN eval_items i ON i.user_id = wanted.value LIMIT ${ERASED_AT_ONCE}`,
    )
    .all(JSON.stringify(userIds)) as { setNo: number; place: number; bytes: number }[];
  const erase = store.prepare('DELETE FROM eval_items WHERE set_no = ? AND place = ?');
  let [items, bytes] = [0, 0];
  for (const item of found) {
    if (bytes >= ERASED_BYTES) return { items, isDone: false };
    erase.run(item.setNo, item.place);
    items += 1;
    bytes += item.bytes;
  }
  return { items, isDone: found.length < ERASED_AT_ONCE };
}

/**
 * Adds a run to a set, and deletes the runs beyond the newest 200. Call inside a write.
 * @throws EngineError `not_found`
 */
export function appendRun(store: Store, name: string, run: EvalRun): void {
  const { setNo } = getSet(store, name);
  store.prepare('INSERT INTO eval_runs (set_no, run) VALUES (?, ?)').run(setNo, JSON.stringify(run));
  store
    .prepare(
      `DELETE FROM eval_runs WHERE set_no = :setNo AND run_no <= (
         SELECT run_no FROM eval_runs WHERE set_no = :setNo ORDER BY run_no DESC LIMIT 1 OFFSET :kept)`,
    )
    .run({ setNo, kept: EVAL_LIMITS.runs });
}

/** Lists the newest runs of a set, at most `limit`, newest first. @throws EngineError `not_found` */
export function listRuns(store: Store, name: string, limit: number): EvalRun[] {
  return runsOf(store, getSet(store, name).setNo, limit);
}

/** Lists the latest run of each set that was ever run; empty in a file of an older schema without such a table. */
export function listLastEvalRuns(store: Store): EvalRun[] {
  if (store.prepare(`SELECT 1 FROM sqlite_schema WHERE name = 'eval_runs'`).get() === undefined) return [];
  return listEvals(store).flatMap(({ lastRun }) => lastRun ?? []);
}

function runsOf(store: Store, setNo: number, limit: number): EvalRun[] {
  const runs = store
    .prepare('SELECT run FROM eval_runs WHERE set_no = ? ORDER BY run_no DESC LIMIT ?')
    .pluck()
    .all(setNo, limit) as string[];
  return runs.map((run) => parseStored(run) as EvalRun);
}

function getSet(store: Store, name: string): SetRow {
  const set = store.prepare(`${SETS} WHERE name = ?`).get(name) as SetRow | undefined;
  if (set === undefined) throw new EngineError('not_found', 'no evaluation set has this name');
  return set;
}

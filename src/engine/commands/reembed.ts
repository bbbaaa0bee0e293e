import { EngineError } from '../errors.ts';
import { retryJob } from '../store/job-control.ts';
import { areSameModels, type SectorModelNumbers } from '../store/live-model.ts';
import type { Store } from '../store/open-store.ts';
import {
  countUpTo,
  deleteReembed,
  findReembedController,
  findReembed,
  insertReembedController,
  isUnderWay,
  putReembed,
  putTending,
  withdrawReembedController,
  withdrawReembedJobs,
  type ReembedRecord,
} from '../store/reembed.ts';
import { type DeadJobPlace, deleteJobs, deleteRefusals, listRefusedAdds } from '../store/refused-memories.ts';
import type { WriteContext } from './write-context.ts';

/** The model to which a change is begun or continued, and which obstacles it ignores. */
interface ReembedStart {
  readonly target: SectorModelNumbers;
  /**
   * Whether the model goes live however many memories it refuses. If it failed because of them, they are not tried
   * again.
   */
  readonly withoutRefused?: boolean;
  /** Whether the model goes live even if a guarded evaluation set gets worse results by it. */
  readonly force?: boolean;
}

/** Greatest number of refusals that one commit deletes, and of dead jobs it looks at; each takes some 25 µs. */
const MAX_REFUSED = 500;

/** How far `clearRefusals` has come: the next call is given `after`, unless `isDone`. */
export interface ClearedRefusals {
  readonly isDone: boolean;
  readonly after: DeadJobPlace | null;
}

/**
 * Does a part of what precedes the start of a change of the model, in one commit: deletes at most 500 refusals of
 * earlier models, and looks at 500 dead jobs to try the refused adds among them again, of each memory the newest; those
 * before it are deleted. A running change to another model is paused before, since without its refusals it would go
 * live. If `startReembed` would only continue a change, or refuse, it does nothing.
 * @param asked.since Unix ms; adds that were refused later are not tried again, so that repeated calls come to an end
 * @param asked.after as the call before returned it; null for the first
 * @returns whether nothing is left to do; until it is, the caller calls again, and `startReembed` afterwards
 */
export function clearRefusals(
  { store, now }: Pick<WriteContext, 'store' | 'now'>,
  { since, after, ...start }: ReembedStart & { readonly since: number; readonly after: DeadJobPlace | null },
): ClearedRefusals {
  const earlier = findReembed(store);
  if (!isBeginning(store, start, earlier)) return { isDone: true, after: null };
  if (earlier !== undefined && isUnderWay(store)) takeBack(store, earlier);
  const deleted = deleteRefusals(store, MAX_REFUSED);
  const refused = listRefusedAdds(store, { after, diedBy: since, within: MAX_REFUSED });
  if (refused.stale.length > 0) deleteJobs(store, refused.stale);
  for (const id of refused.ids) retryJob(store, id, now);
  // Once all dead jobs were looked at, only those that died since then are looked at again.
  return { isDone: deleted < MAX_REFUSED && refused.next === null, after: refused.next ?? after };
}

/** Whether a start begins the change of the model anew, rather than continue one that was paused or failed. */
function isBeginning(
  store: Store,
  { target, withoutRefused = false, force = false }: ReembedStart,
  earlier: ReembedRecord | undefined,
): boolean {
  if (earlier === undefined) return true;
  if (earlier.phase !== 'embed') return false;
  if (!areSameModels(earlier.target, target)) return true;
  return !withoutRefused && !force && !isUnderWay(store) && findReembedController(store)?.state === 'dead';
}

/**
 * Begins a change of the model, or continues one that was paused or failed. A running change to the same model is left
 * alone, unless `withoutRefused` or `force` is set before it goes live. A change to another model that has not gone
 * live is cancelled.
 * Call `clearRefusals` before, until it is done: it tries refused memories again, unless the change only continues
 * after a pause. If the configured model is live already, gaps in its vectors are filled, and vectors of other models
 * are removed.
 * @throws EngineError `conflict` while another model has gone live and its change is not finished
 */
export function startReembed(
  { store, now, newId }: Pick<WriteContext, 'store' | 'now' | 'newId'>,
  start: ReembedStart,
): void {
  const { target, withoutRefused = false, force = false } = start;
  const earlier = findReembed(store);
  const beginsAnew = isBeginning(store, start, earlier);
  if (earlier !== undefined && !areSameModels(earlier.target, target)) {
    if (earlier.phase !== 'embed') {
      throw new EngineError('conflict', 'the change of the model before this one is not finished: let it go on first');
    }
    cancelReembed({ store });
  } else if (isUnderWay(store)) {
    if (!(withoutRefused || force) || earlier?.phase !== 'embed') return;
    takeBack(store, earlier); // Else the job that directs it would overwrite the record with what it read earlier.
  }
  const current = findReembed(store);
  const record =
    current === undefined || beginsAnew
      ? ({ target, phase: 'embed', cursor: 0, owed: 0, pass: 1, wentLiveAt: null } as const)
      : current;
  putReembed(store, {
    ...record,
    ...(withoutRefused ? { withoutRefused } : {}),
    ...(force ? { unguarded: true } : {}),
    since: { at: now, done: countUpTo(store, record.cursor) },
  });
  withdrawReembedController(store);
  insertReembedController(store, { id: newId(), now });
  putTending(store, { target, at: now });
}

/**
 * Pauses a change of the model; `startReembed` continues it.
 * @throws EngineError `conflict` if none is running
 */
export function pauseReembed({ store }: Pick<WriteContext, 'store'>): void {
  const record = findReembed(store);
  if (record === undefined || !isUnderWay(store)) throw new EngineError('conflict', 'no re-embedding is under way');
  takeBack(store, record);
}

/**
 * Cancels a change of the model that has not gone live. The vectors that it made stay, so that a later start skips
 * their memories. The list of memories that the model refused is deleted. Call `stopReembed` before, until it returns
 * true: the list may be long.
 * @throws EngineError `conflict` as `stopReembed`
 */
export function cancelReembed({ store }: Pick<WriteContext, 'store'>): void {
  takeBack(store, requireCancellable(store));
  deleteRefusals(store, Number.MAX_SAFE_INTEGER);
  deleteReembed(store);
}

/**
 * Does a part of what precedes the cancellation of a change of the model, in one commit: pauses it, and deletes at most
 * 500 entries of the list of memories that the model refused.
 * @returns whether none is left; until it is true, the caller calls again, and `cancelReembed` afterwards
 * @throws EngineError `conflict` if no change of the model is under way, or if the new model is live already
 */
export function stopReembed({ store }: Pick<WriteContext, 'store'>): boolean {
  takeBack(store, requireCancellable(store));
  return deleteRefusals(store, MAX_REFUSED) < MAX_REFUSED;
}

function requireCancellable(store: Store): ReembedRecord {
  const record = findReembed(store);
  if (record === undefined) throw new EngineError('conflict', 'no re-embedding is under way');
  if (record.phase !== 'embed') {
    throw new EngineError('conflict', 'the new model is live already: change the settings back and re-embed instead');
  }
  return record;
}

/**
 * Deletes the jobs of a change of the model: the one that plans the work, also if it is dead, and the unfinished ones
 * of memories that wait to be embedded again. While the new model is not live, it moves the cursor of `record` back to
 * before the first of these memories, so that a later start makes their jobs again. Call it inside a write.
 */
function takeBack(store: Store, record: ReembedRecord): void {
  withdrawReembedController(store);
  takeBackMemories(store, record);
}

/**
 * Deletes the jobs of memories that wait to be embedded again. While the new model is not live (phase `embed`), it also
 * stores `record` with the cursor before the first of these memories. Call it inside a write.
 */
export function takeBackMemories(store: Store, record: ReembedRecord): void {
  const first = withdrawReembedJobs(store);
  if (record.phase === 'embed' && first !== undefined) {
    putReembed(store, { ...record, cursor: Math.min(record.cursor, first - 1) });
  }
}

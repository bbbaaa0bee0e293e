import { EngineError } from '../errors.ts';
import { putInfo } from '../store/store-info.ts';
import { createErasedCheck, noteErasedQuestions } from '../store/erased-questions.ts';
import {
  appendRecall,
  eraseRecalls as erase,
  erasesRecalls,
  findRecall,
  putFeedback,
  trimRecalls,
} from '../store/recalls.ts';
import type { ErasedRecalls, RecallToKeep } from '../store/recalls.ts';
import type { ErasureFilter, FeedbackVerdict, RecallFeedback } from '../types.ts';
import { ERASE_PENDING } from './erase.ts';
import { type Quota, refuseOverQuota } from './quota.ts';
import type { WriteContext } from './write-context.ts';

const MB = 1024 * 1024;
/**
 * Bounds on what one commit deletes from a log over `OM_RECALL_MB`: this number of bytes more than it appends, and this
 * number of recalls. The log may be far too large after the setting was lowered, or its recalls far smaller than those
 * that are appended.
 */
const [TRIMMED_BYTES, MAX_TRIMMED] = [262_144, 1_000];

/**
 * Appends recalls (answered queries) to the recall log, and deletes some of the oldest ones beyond `OM_RECALL_MB`; if
 * there are more, later calls and the upkeep delete them. A recall is left out if a delete of its users or sessions, in
 * the last hour, began after it was asked: it waited in another process, or was answered during the delete.
 */
export function logRecalls(
  { store, config, now }: WriteContext,
  { recalls }: { readonly recalls: readonly RecallToKeep[] },
): void {
  const isErased = createErasedCheck(store, now);
  let most = TRIMMED_BYTES;
  for (const recall of recalls) if (!isErased(recall)) most += appendRecall(store, recall);
  trimRecalls(store, { maxBytes: config.OM_RECALL_MB * MB, limit: MAX_TRIMMED, most });
}

/**
 * Erases some of the recalls (answered queries) in the recall log whose queries named users or sessions of a filter. A
 * filter by tags, files or writers erases none. The first call notes the users and sessions, so that what was asked
 * about them before it is not logged later either. The caller repeats the call until `next` is null.
 * @param after number in the recall log after which the call begins: 0, then `next` of the call before
 */
export function eraseRecalls(
  { store, now }: WriteContext,
  { filter, after }: { readonly filter: ErasureFilter; readonly after: number },
): ErasedRecalls {
  if (after === 0 && erasesRecalls(filter)) noteErasedQuestions(store, filter, now);
  const erased = erase(store, filter, after);
  if (erased.recalls > 0) putInfo(store, ERASE_PENDING, String(now));
  return erased;
}

/**
 * Stores feedback on hits of a recall (answered query): whether they helped.
 * @returns all feedback on the recall
 * @throws EngineError `not_found` for the recall, or for a memory that is no hit of it; `storage_full` over the quota
 *   of disk
 */
export function giveFeedback(
  context: WriteContext,
  {
    id,
    verdict,
    memoryIds,
    quota = null,
  }: {
    readonly id: string;
    readonly verdict: FeedbackVerdict;
    readonly memoryIds: readonly string[];
    readonly quota?: Quota | null;
  },
): readonly RecallFeedback[] {
  const { store, now } = context;
  refuseOverQuota(context, quota, 0); // Its audit record is freed by no delete.
  const recall = findRecall(store, id);
  if (recall === undefined) throw new EngineError('not_found', 'no recall with this id is kept');
  const hits = new Map(
    recall.candidates.filter(({ hit }) => hit !== undefined).map(({ id: hitId, memoryNo }) => [hitId, memoryNo]),
  );
  const memoryNos = memoryIds.map((memoryId) => {
    const memoryNo = hits.get(memoryId);
    if (memoryNo === undefined) throw new EngineError('not_found', `memory ${memoryId} is no hit of this recall`);
    return memoryNo;
  });
  putFeedback(store, id, { memoryNos, verdict, now });
  return findRecall(store, id)!.feedback;
}

/**
 * Ends the validity of superseded memories anew when the memory that supersedes them begins at another time. The row of
 * each is rewritten with its texts, so that one commit ends some of them, and later ones the others: the writes of all
 * tenants wait for a commit. Until then these keep their former ends.
 */

import { listSuperseded } from '../store/edges.ts';
import { hasManyTrips } from '../store/foresight.ts';
import { readMemoryRows } from '../store/memories.ts';
import type { Store } from '../store/open-store.ts';
import { deleteInfo, findInfo, putInfo } from '../store/store-info.ts';
import { parseStored } from '../store/stored-json.ts';
import { withinBytes } from '../store/text-sizes.ts';
import { settleStatus, startOf } from './settle-status.ts';
import type { WriteContext } from './write-context.ts';

type EndsContext = Pick<WriteContext, 'store' | 'now'>;

/**
 * Name of the entry in `store_info` that has the numbers of the memories whose superseded ones wait for their ends, as
 * JSON. Each has the number of the last superseded one that has its new end.
 */
export const WAITING_ENDS = 'ends_waiting';

/** Greatest number of memories that one commit ends; each takes some 100 µs in a file. */
const ENDED_AT_ONCE = 200;
/**
 * Greatest size of the texts, values and metadata (bytes) of the memories that one commit ends, unless a single one has
 * more; it takes some 30 ms.
 */
const ENDED_BYTES = 2 * 1024 * 1024;

/**
 * Ends the memories that a memory supersedes at its present start, as many of them as one commit should; `settleEnds`
 * ends the others. Call it inside a write.
 * @returns whether some wait, these or others
 */
export function endSuperseded(context: EndsContext, newer: number): boolean {
  const waiting = readWaiting(context.store);
  endSome(context, newer, 0, waiting);
  return waiting.size > 0;
}

/**
 * Ends superseded memories that wait for it, as many as one commit should. Call it inside a write.
 * @returns whether others still wait
 */
export function settleEnds(context: EndsContext, _: Record<never, never>): boolean {
  const waiting = readWaiting(context.store);
  const [first] = waiting;
  if (first !== undefined) endSome(context, ...first, waiting);
  return waiting.size > 0;
}

/**
 * Ends some of the memories that `newer` supersedes, those with numbers above `after`; at least one. In PostgreSQL it
 * ends no further one once the write took 150 round trips.
 * @param waiting what waits before; it is changed and stored
 */
function endSome(context: EndsContext, newer: number, after: number, waiting: Map<number, number>): void {
  const { store } = context;
  const [row] = readMemoryRows(store, [newer]);
  const olders = row === undefined ? [] : listSuperseded(store, newer, { after, limit: ENDED_AT_ONCE + 1 });
  const taken = withinBytes(store, olders.slice(0, ENDED_AT_ONCE), ENDED_BYTES);
  let last = after;
  for (const older of taken) {
    settleStatus(context, older, { endsAt: startOf(row!) });
    last = older;
    if (hasManyTrips(store)) break;
  }
  const wasWaiting = waiting.delete(newer);
  if (last !== (olders.at(-1) ?? after)) waiting.set(newer, last);
  if (waiting.size > 0) putInfo(store, WAITING_ENDS, JSON.stringify([...waiting]));
  else if (wasWaiting) deleteInfo(store, WAITING_ENDS);
}

function readWaiting(store: Store): Map<number, number> {
  return new Map(parseStored(findInfo(store, WAITING_ENDS) ?? '[]') as [number, number][]);
}

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
 * Name of the entry in `store_info` with the memories whose superseded ones wait for a new end of their validity: JSON
 * pairs of the successor's number and the number of the last superseded memory that has its new end.
 */
export const WAITING_ENDS = 'ends_waiting';

/** Greatest number of memories whose validity one commit ends anew; each takes some 100 µs in a file. */
const ENDED_AT_ONCE = 200;
/**
 * Greatest size of the texts, values and metadata (bytes) of the memories whose validity one commit ends anew, unless a
 * single one has more; it takes some 30 ms.
 */
const ENDED_BYTES = 2 * 1024 * 1024;

/**
 * Ends the validity of the memories that the memory `newer` supersedes at its present start: of as many as one commit
 * should; the others wait for `settleEnds`. Call it inside a write.
 * @returns whether any memories wait, of this call or of earlier ones
 */
export function endSuperseded(context: EndsContext, newer: number): boolean {
  const waiting = readWaiting(context.store);
  endSome(context, newer, 0, waiting);
  return waiting.size > 0;
}

/**
 * Ends the validity of superseded memories that wait for it: those of one successor, and no more than one commit
 * should. Call it inside a write.
 * @returns whether any memories still wait
 */
export function settleEnds(context: EndsContext, _: Record<never, never>): boolean {
  const waiting = readWaiting(context.store);
  const [first] = waiting;
  if (first !== undefined) endSome(context, ...first, waiting);
  return waiting.size > 0;
}

/**
 * Ends the validity of some of the memories that `newer` supersedes, of those with numbers above `after`; of at least
 * one. If `newer` is gone, of none. In PostgreSQL it ends no further one once the write took 150 round trips.
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

import type { MemoryStatus } from '../types.ts';
import type { Store } from './open-store.ts';

/**
 * The properties of a memory by which it is ranked, whatever the query. `salience` and `strength` are the values at
 * `salienceAt` and `strengthAt`, before their decay. Times are Unix ms; `decayLambda` is the salience's decay per day.
 */
export interface RankingRow {
  readonly memoryNo: number;
  readonly id: string;
  readonly userNo: number;
  readonly sessionId: string;
  readonly eventTime: number;
  readonly status: MemoryStatus;
  readonly confidence: number;
  readonly salience: number;
  readonly salienceAt: number;
  readonly decayLambda: number;
  readonly strength: number;
  readonly strengthAt: number;
  readonly lastSeenAt: number;
}

/** Reads ranking rows in ascending order of memory number. Unknown numbers are left out. */
export function readRankingRows(store: Store, memoryNos: readonly number[]): RankingRow[] {
  if (memoryNos.length === 0) return [];
  return store
    .prepare(
      `SELECT d.seq AS memoryNo, m.id, m.user_no AS userNo, m.session_id AS sessionId, m.event_time AS eventTime,
         m.confidence, d.status, d.salience, d.salience_at AS salienceAt, d.decay_lambda AS decayLambda, d.strength,
         d.strength_at AS strengthAt,
         d.last_seen_at AS lastSeenAt
       FROM memory_dynamics d JOIN memories m ON m.seq = d.seq
       WHERE d.seq IN (SELECT value FROM json_each(?)) ORDER BY d.seq`,
    )
    .all(JSON.stringify(memoryNos)) as RankingRow[];
}

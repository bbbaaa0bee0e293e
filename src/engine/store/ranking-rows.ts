import type { MemoryStatus } from '../types.ts';
import type { CompiledFilter } from './filter.ts';
import { foundByTheWay } from './found-by-the-way.ts';
import type { Store } from './open-store.ts';
import { hasWorkEnded } from './work-budget.ts';

/**
 * The properties of a memory that influence its score in every query. `salience` and `strength` are the values at
 * `salienceAt` and `strengthAt`; their present values must be computed by the decay. Times are Unix ms; `decayLambda`
 * is the decay rate of the salience, per day.
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
  /** Number of the writer (key) of the memory; null if it is not known. */
  readonly writerNo: number | null;
  /** Number of the generation (parsed version) of the document of which the memory is a part; null for none. */
  readonly generationNo: number | null;
}

const COLUMNS = `m.seq AS memoryNo, m.id, m.user_no AS userNo, m.session_id AS sessionId, m.event_time AS eventTime,
  m.confidence, d.status, d.salience, d.salience_at AS salienceAt, d.decay_lambda AS decayLambda, d.strength,
  d.strength_at AS strengthAt, d.last_seen_at AS lastSeenAt,
  d.writer_no AS writerNo, d.generation_no AS generationNo`;

/** Reads ranking rows by ascending memory number; unknown numbers are left out. */
export function readRankingRows(store: Store, memoryNos: readonly number[]): RankingRow[] {
  if (memoryNos.length === 0) return [];
  const rows = store
    .prepare(
      `SELECT ${COLUMNS} FROM memory_dynamics d JOIN memories m ON m.seq = d.seq
       WHERE d.seq IN (SELECT value FROM json_each(?)) ORDER BY d.seq`,
    )
    .all(JSON.stringify(memoryNos)) as RankingRow[];
  return noteSingle(store, rows);
}

/** Notes which of the memories are no part of a document. Returns the rows. */
function noteSingle(store: Store, rows: RankingRow[]): RankingRow[] {
  const { inNoDocument } = foundByTheWay(store);
  for (const { memoryNo, generationNo } of rows) if (generationNo === null) inNoDocument.add(memoryNo);
  return rows;
}

/**
 * Reads ranking rows and caches them, so that the stages of a query read each row only once. A statement that applies a
 * filter to a memory already looks up the data of its ranking row, so it also reads the row.
 */
export interface RowReader {
  /** Returns the rows of distinct memories, in the order of `memoryNos`. Unknown numbers are left out. */
  read(memoryNos: readonly number[]): RankingRow[];
  /** Returns the row of a memory if it was read already; undefined otherwise. */
  known(memoryNo: number): RankingRow | undefined;
  /**
   * Lists those of the given memories that pass the filter, in no certain order. When the work budget is used up,
   * memories may be missing.
   */
  listPassingOf(filter: CompiledFilter, memoryNos: readonly number[]): number[];
  /**
   * Returns the first `limit` items of a list whose memories pass the filter, in the order of the list. It stops when
   * the work budget is used up.
   */
  firstPassing<T extends { readonly memoryNo: number }>(
    filter: CompiledFilter,
    inOrder: readonly T[],
    limit: number,
  ): T[];
}

/**
 * Factor on the size of each batch after the first, whose size is estimated from the share of memories that passed so
 * far. Without it, about every second batch would again be too small.
 */
const SPARE = 1.5;

/** Makes a row reader. It keeps rows for one snapshot, and reads them again on another one. */
export function createRowReader(store: Store): RowReader {
  const rows = new Map<number, RankingRow>();
  /** Whether a memory passes a filter, by its number, for each filter that was applied. */
  let decided = new WeakMap<CompiledFilter, Map<number, boolean>>();
  let { transactionNo } = store;
  const keptRows = () => {
    if (store.transactionNo !== transactionNo) {
      rows.clear();
      decided = new WeakMap();
    }
    ({ transactionNo } = store);
    return rows;
  };
  return {
    listPassingOf,
    known: (memoryNo) => keptRows().get(memoryNo),
    read(memoryNos) {
      const kept = keptRows();
      const missing = memoryNos.filter((memoryNo) => !kept.has(memoryNo));
      for (const row of readRankingRows(store, missing)) kept.set(row.memoryNo, row);
      return memoryNos.map((memoryNo) => kept.get(memoryNo)).filter((row) => row !== undefined);
    },
    firstPassing(filter, inOrder, limit) {
      const passed: (typeof inOrder)[number][] = [];
      // As a rule all pass, so no more are looked up than are wanted. Later batches go by the share that has passed.
      for (let at = 0, count = limit; at < inOrder.length && passed.length < limit && !hasWorkEnded();) {
        const batch = inOrder.slice(at, (at += count));
        const passing = new Set(
          listPassingOf(
            filter,
            batch.map(({ memoryNo }) => memoryNo),
          ),
        );
        passed.push(...batch.filter(({ memoryNo }) => passing.has(memoryNo)));
        count = Math.ceil((SPARE * (limit - passed.length) * at) / Math.max(1, passed.length));
      }
      return passed.slice(0, limit);
    },
  };

  function listPassingOf(filter: CompiledFilter, memoryNos: readonly number[]): number[] {
    if (memoryNos.length === 0) return [];
    const kept = keptRows();
    let passes = decided.get(filter);
    if (passes === undefined) decided.set(filter, (passes = new Map<number, boolean>()));
    const open = memoryNos.filter((memoryNo) => !passes.has(memoryNo));
    const passing = open.length === 0 ? [] : readPassingRows(store, filter, open);
    for (const memoryNo of open) passes.set(memoryNo, false);
    for (const row of passing) {
      kept.set(row.memoryNo, row);
      passes.set(row.memoryNo, true);
    }
    return memoryNos.filter((memoryNo) => passes.get(memoryNo));
  }
}

/**
 * Makes a reader by which every memory passes every filter, and which reads no rows, to guess what a search finds. As a
 * rule all that a search finds pass.
 */
export function createHopefulReader(): RowReader {
  return {
    read: () => [],
    known: () => undefined,
    listPassingOf: (_filter, memoryNos) => [...memoryNos],
    firstPassing: (_filter, inOrder, limit) => inOrder.slice(0, limit),
  };
}

function readPassingRows(store: Store, filter: CompiledFilter, memoryNos: readonly number[]): RankingRow[] {
  const rows = store
    .prepare(
      `SELECT ${COLUMNS} FROM json_each(?) AS wanted CROSS JOIN memories m ON m.seq = wanted.value
         CROSS JOIN memory_dynamics d ON d.seq = m.seq WHERE ${filter.sql}`,
    )
    .all(JSON.stringify(memoryNos), ...filter.parameters) as RankingRow[];
  return noteSingle(store, rows);
}

import { MAX_RELABELLED } from '../store/chains.ts';
import { listStatedBy } from '../store/edges.ts';
import { keptHash } from '../store/duplicates.ts';
import { readMemoryRows, type MemoryRow } from '../store/memories.ts';
import { listChangedBy, valuesBefore } from '../store/undo-revisions.ts';
import { findWriter } from '../store/writers.ts';
import { contentHash } from '../text/content-hash.ts';
import { changeMemory, endsTooMany, prepareChange } from './patch.ts';
import { removeLink } from './relate.ts';
import type { WriteContext } from './write-context.ts';

/** Result of one slice of `undoLinks`. */
export interface UndoneLinks {
  /** Number of links that were removed. */
  readonly edges: number;
  /** True if no link of the writer is left. */
  readonly isDone: boolean;
}

/** Result of one slice of `undoChanges`. */
export interface UndoneChanges {
  /** Number of memories that have their former values again. */
  readonly restored: number;
  /**
   * Number of memories that keep their values: somebody else has changed them since, or they supersede over 200 others,
   * which would end anew.
   */
  readonly unrestored: number;
  /**
   * `memoryNo` of the last memory of the slice, after which the next slice begins. It is the given `after` if only a
   * part of the changes for the first memory was written; null if no memory is left.
   */
  readonly last: number | null;
}

/**
 * Removes at most `limit` links that an API key stated, fewer if long chains are split, and restores the status of
 * memories that these links had changed.
 */
export function undoLinks(
  context: WriteContext,
  { writtenBy, limit }: { readonly writtenBy: string; readonly limit: number },
): UndoneLinks {
  const writerNo = findWriter(context.store, writtenBy);
  const links = writerNo === undefined ? [] : listStatedBy(context.store, writerNo, limit);
  let edges = 0;
  let moved = 0;
  for (const link of links) {
    moved += removeLink(context, link);
    edges += 1;
    if (moved >= MAX_RELABELLED) break;
  }
  return { edges, isDone: edges === links.length && links.length < limit };
}

/**
 * Restores the former values of memories that an API key changed, in one slice of at most `limit` memories with a
 * `memoryNo` above `after`. Restoring is a change like any other, and leaves a revision. A memory that somebody else
 * has changed since keeps its values, and so does one whose start of validity would move although it supersedes more
 * than 200 others.
 */
export function undoChanges(
  context: WriteContext,
  { writtenBy, after, limit }: { readonly writtenBy: string; readonly after: number; readonly limit: number },
): UndoneChanges {
  const { store } = context;
  const writerNo = findWriter(store, writtenBy);
  if (writerNo === undefined) return { restored: 0, unrestored: 0, last: null };
  const memoryNos = listChangedBy(store, writerNo, { after, limit });
  let restored = 0;
  for (const [place, memoryNo] of memoryNos.entries()) {
    const outcome = restore(context, readMemoryRows(store, [memoryNo])[0], writerNo);
    if (outcome === 'begun') return { restored, unrestored: place - restored, last: memoryNos[place - 1] ?? after };
    if (outcome === 'restored') restored += 1;
  }
  return { restored, unrestored: memoryNos.length - restored, last: memoryNos.at(-1) ?? null };
}

/**
 * Restores the values that a memory had before the writer's changes at the end of its history.
 * @returns `unrestored` if the memory is gone or keeps its values; `begun` if only a part of the necessary changes was
 *   written, because one commit would be too large
 */
function restore(
  context: WriteContext,
  row: MemoryRow | undefined,
  writerNo: number,
): 'restored' | 'unrestored' | 'begun' {
  const former = row && valuesBefore(context.store, row, writerNo);
  if (row === undefined || former === undefined) return 'unrestored';
  const { content } = former.columns;
  if (endsTooMany(context.store, row, former.columns)) return 'unrestored';
  const hash = content === undefined ? {} : { content_hash: keptHash(contentHash(content)) };
  const columns = { ...former.columns, ...hash };
  if (!prepareChange(context, row, columns)) return 'begun';
  changeMemory(context, row, { columns, status: former.status });
  return 'restored';
}

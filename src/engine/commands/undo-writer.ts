import { listStatedBy } from '../store/edges.ts';
import { keptHash } from '../store/duplicates.ts';
import { readMemoryRows, type MemoryRow } from '../store/memories.ts';
import { listChangedBy, valuesBefore } from '../store/undo-revisions.ts';
import { findWriter } from '../store/writers.ts';
import { contentHash } from '../text/content-hash.ts';
import { changeMemory } from './patch.ts';
import { unlinkMemories } from './relate.ts';
import type { WriteContext } from './write-context.ts';

/** Result of one slice of `undoLinks`. */
export interface UndoneLinks {
  /** Number of links that were removed. */
  readonly edges: number;
}

/** Result of one slice of `undoChanges`. */
export interface UndoneChanges {
  /** Number of memories that have their former values again. */
  readonly restored: number;
  /** Number of memories that somebody else has changed since: they keep their values. */
  readonly unrestored: number;
  /** Number of the last memory of the slice, for the next slice; null if there is none left. */
  readonly last: number | null;
}

/** Removes at most `limit` links that a key stated, and takes back what they did to the status of memories. */
export function undoLinks(
  context: WriteContext,
  { writtenBy, limit }: { readonly writtenBy: string; readonly limit: number },
): UndoneLinks {
  const writerNo = findWriter(context.store, writtenBy);
  const links = writerNo === undefined ? [] : listStatedBy(context.store, writerNo, limit);
  for (const link of links) unlinkMemories(context, link);
  return { edges: links.length };
}

/**
 * Gives the memories that a key changed their former values again, in one slice of at most `limit` memories above the
 * number `after`. The restoring is a change as any other, and leaves a revision. A memory that somebody else has
 * changed since keeps its values.
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
  for (const row of readMemoryRows(store, memoryNos)) if (restore(context, row, writerNo)) restored += 1;
  return { restored, unrestored: memoryNos.length - restored, last: memoryNos.at(-1) ?? null };
}

function restore(context: WriteContext, row: MemoryRow, writerNo: number): boolean {
  const former = valuesBefore(context.store, row, writerNo);
  if (former === undefined) return false;
  const { content } = former.columns;
  const hash = content === undefined ? {} : { content_hash: keptHash(contentHash(content)) };
  changeMemory(context, row, { columns: { ...former.columns, ...hash }, status: former.status });
  return true;
}

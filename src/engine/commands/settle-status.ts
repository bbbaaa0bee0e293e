import { hasLostContradiction, listSuccessors } from '../store/edges.ts';
import { type MemoryRow, readMemoryRows } from '../store/memories.ts';
import type { Store } from '../store/open-store.ts';
import { readOwnEnd, readOwnStatus, replaceMemory } from '../store/revisions.ts';
import type { MemoryStatus } from '../types.ts';
import type { WriteContext } from './write-context.ts';

/**
 * Gives a memory the status that its links determine: superseded while a memory supersedes it, contradicted while a
 * contradiction is decided against it, else its status from before these links. Call it inside a write, when such a
 * link was added or removed, or when the start of a successor changes. A supersession also ends the memory's validity
 * at `endsAt` (Unix ms); without it, a superseded memory keeps its present end. When the last supersession is removed,
 * the memory gets its former end back, unless another one was set meanwhile. A change is kept as a revision; if nothing
 * changes, or the memory does not exist, nothing is written.
 */
export function settleStatus(
  { store, now }: Pick<WriteContext, 'store' | 'now'>,
  memoryNo: number,
  { endsAt }: { readonly endsAt?: number } = {},
): void {
  const before = readMemoryRows(store, [memoryNo])[0];
  if (before === undefined) return;
  const isGivingWay = listSuccessors(store, memoryNo).length > 0;
  const hasLost = !isGivingWay && hasLostContradiction(store, memoryNo);
  const status = isGivingWay ? 'superseded' : hasLost ? 'contradicted' : ownStatus(store, before);
  const ownEnd = ownEndOf(store, before);
  const newEnd = !isGivingWay ? ownEnd : endsAt === undefined ? before.valid_to : closedAt(before, ownEnd, endsAt);
  const isNew = newEnd !== before.valid_to && startsBefore(before, newEnd);
  replaceMemory(store, before, {
    columns: isNew ? { valid_to: newEnd } : {},
    status: status === before.status ? undefined : status,
    byLink: true,
    now,
  });
}

/** Number of bytes of a rewritten row that take as long as a byte of text that is indexed; rather too few. */
const REWRITTEN_A_BYTE = 8;

/**
 * Returns the number of bytes to index that take as long as settling a memory, whose row is rewritten with its text and
 * value.
 */
export function settlingBytes({ content, value }: Pick<MemoryRow, 'content' | 'value'>): number {
  return (Buffer.byteLength(content) + Buffer.byteLength(value ?? '')) / REWRITTEN_A_BYTE;
}

/**
 * Returns the time at which a memory begins to be valid (Unix ms). The validity of a memory that it supersedes ends
 * then.
 */
export function startOf({ valid_from, event_time }: Pick<MemoryRow, 'valid_from' | 'event_time'>): number {
  return valid_from ?? event_time;
}

/**
 * Returns the end of a superseded memory's validity: its own end or `endsAt`, whichever is earlier. If `endsAt` is not
 * after its start, the memory keeps its own end, as it would otherwise never have been valid. Null means no end.
 */
function closedAt({ valid_from }: MemoryRow, ownEnd: number | null, endsAt: number): number | null {
  if (ownEnd !== null && ownEnd <= endsAt) return ownEnd;
  return valid_from !== null && endsAt <= valid_from ? ownEnd : endsAt;
}

/** Returns the end of validity that a memory would have if nothing superseded it; null means no end. */
export function ownEndOf(store: Store, { memoryNo, status, valid_to }: MemoryRow): number | null {
  if (status !== 'superseded') return valid_to;
  const ownEnd = readOwnEnd(store, memoryNo);
  return ownEnd === undefined ? valid_to : ownEnd;
}

/** Whether a memory starts before its new end. A PATCH may have moved the start meanwhile. */
function startsBefore({ valid_from }: MemoryRow, validTo: number | null): boolean {
  return valid_from === null || validTo === null || valid_from < validTo;
}

/**
 * Returns the latest status of a memory that no link determined; `active` if none is known. Only links can change a
 * status that a link gave, so this earlier status still applies without them.
 */
function ownStatus(store: Store, { memoryNo, status }: MemoryRow): MemoryStatus {
  return status === 'active' || status === 'archived' ? status : (readOwnStatus(store, memoryNo) ?? 'active');
}

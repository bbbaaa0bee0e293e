import { hasLostContradiction, listSuccessors } from '../store/edges.ts';
import { type MemoryRow, readMemoryRows } from '../store/memories.ts';
import { listStandings, replaceMemory, type Standing } from '../store/revisions.ts';
import type { MemoryStatus } from '../types.ts';
import type { WriteContext } from './write-context.ts';

/**
 * Gives a memory the status that its links say: superseded while something supersedes it, contradicted while a contradiction is
 * decided against it, else the one it had before. Call it when such a link came or went, or when a successor begins at another time.
 * A supersession also ends the memory's validity at `endsAt`, and the last that goes takes this back, unless someone set another end
 * since. What changes is kept as a revision; where nothing changes, nothing is written.
 */
export function settleStatus(
  { store, now }: Pick<WriteContext, 'store' | 'now'>,
  memory: number,
  { endsAt }: { readonly endsAt?: number } = {},
): void {
  const before = readMemoryRows(store, [memory])[0];
  if (before === undefined) return;
  const isGivingWay = listSuccessors(store, memory).length > 0;
  const hasLost = !isGivingWay && hasLostContradiction(store, memory);
  const isAnew = before.status !== 'superseded' && before.status !== 'contradicted';
  const past = isAnew ? [] : listStandings(store, memory);
  const status = isGivingWay ? 'superseded' : hasLost ? 'contradicted' : ownStatus(before, past);
  const ownEnd = before.status === 'superseded' ? endBefore(before, past) : before.valid_to;
  const newEnd = !isGivingWay ? ownEnd : endsAt === undefined ? before.valid_to : closedAt(before, ownEnd, endsAt);
  const isNew = newEnd !== before.valid_to && startsBefore(before, newEnd);
  replaceMemory(store, before, {
    columns: isNew ? { valid_to: newEnd } : {},
    status: status === before.status ? undefined : status,
    byLink: true,
    now,
  });
}

/** When a memory begins to hold, and what it supersedes ends. */
export function startOf({ valid_from, event_time }: Pick<MemoryRow, 'valid_from' | 'event_time'>): number {
  return valid_from ?? event_time;
}

/** The memory's own end or that one, whichever is sooner; its own where that would come before its start, and it never have held. */
function closedAt({ valid_from }: MemoryRow, ownEnd: number | null, endsAt: number): number | null {
  if (ownEnd !== null && ownEnd <= endsAt) return ownEnd;
  return valid_from !== null && endsAt <= valid_from ? ownEnd : endsAt;
}

/** The end from before the supersession; the present one if a PATCH set it since. */
function endBefore(now: MemoryRow, past: readonly Standing[]): number | null {
  let later: number | null = now.valid_to;
  for (const { status, validTo, byLink } of past) {
    if (status !== 'superseded') return validTo;
    if (validTo !== later && !byLink) return now.valid_to;
    later = validTo;
  }
  return now.valid_to;
}

/** A PATCH may have moved the start meanwhile. */
function startsBefore({ valid_from }: MemoryRow, validTo: number | null): boolean {
  return valid_from === null || validTo === null || valid_from < validTo;
}

/** The last status that was not given by a link. Nothing but links can change the others, so it still holds. */
function ownStatus({ status }: MemoryRow, past: readonly Standing[]): MemoryStatus {
  const isOwn = (value: MemoryStatus) => value === 'active' || value === 'archived';
  return isOwn(status) ? status : (past.find((standing) => isOwn(standing.status))?.status ?? 'active');
}

import { setStatus } from '../store/dynamics.ts';
import { hasLostContradiction, listSuccessors } from '../store/edges.ts';
import { type MemoryColumns, type MemoryRow, readMemoryRows, updateMemory } from '../store/memories.ts';
import { insertRevision, listRevisions, replacedFields } from '../store/revisions.ts';
import type { MemoryStatus, Revision } from '../types.ts';
import type { WriteContext } from '../writer/write-context.ts';

/**
 * Gives a memory the status that its links say: superseded while something supersedes it, contradicted while a contradiction is
 * decided against it, else the one it had before. Call it when such a link came or went. A supersession that comes also ends the
 * memory's validity at `endsAt`, and the last that goes takes this back, unless someone set another end since. What changes is
 * kept as a revision; where nothing changes, nothing is written.
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
  const hadGivenWay = before.status === 'superseded';
  const revisions =
    isGivingWay || (!hadGivenWay && before.status !== 'contradicted') ? [] : listRevisions(store, memory);
  const status = isGivingWay ? 'superseded' : hasLost ? 'contradicted' : ownStatus(before, revisions);
  const columns: MemoryColumns = isGivingWay
    ? closedAt(before, endsAt)
    : hadGivenWay
      ? reopened(before, revisions)
      : {};
  const newStatus = status === before.status ? undefined : status;
  if (newStatus === undefined && Object.keys(columns).length === 0) return;
  insertRevision(store, memory, {
    version: before.version,
    replacedAt: now,
    replaced: replacedFields(before, columns, newStatus),
  });
  updateMemory(store, memory, columns, now);
  if (newStatus !== undefined) setStatus(store, memory, newStatus);
}

/** An end that is earlier than the memory's own; none where it would come before its start, and the memory never have held. */
function closedAt(
  { valid_from, valid_to }: Pick<MemoryRow, 'valid_from' | 'valid_to'>,
  endsAt: number | undefined,
): MemoryColumns {
  if (endsAt === undefined || (valid_to !== null && valid_to <= endsAt)) return {};
  return valid_from !== null && endsAt <= valid_from ? {} : { valid_to: endsAt };
}

/** The end from before the supersession, which is the last revision that names a status, if no later one names an end. */
function reopened(before: MemoryRow, revisions: readonly Revision[]): MemoryColumns {
  for (const { replaced } of revisions) {
    if (replaced['status'] === undefined && replaced['validTo'] === undefined) continue;
    const validTo = replaced['validTo'] as number | null | undefined;
    const wasClosed = replaced['status'] !== undefined && validTo !== undefined && validTo !== before.valid_to;
    return wasClosed && startsBefore(before, validTo) ? { valid_to: validTo } : {};
  }
  return {};
}

/** A PATCH may have moved the start meanwhile. */
function startsBefore({ valid_from }: MemoryRow, validTo: number | null): boolean {
  return valid_from === null || validTo === null || valid_from < validTo;
}

/** The last status that was not given by a link. Nothing but links can change the others, so it still holds. */
function ownStatus({ status }: MemoryRow, revisions: readonly Revision[]): MemoryStatus {
  const isOwn = (value: unknown) => value === 'active' || value === 'archived';
  if (isOwn(status)) return status;
  const last = revisions.find(({ replaced }) => isOwn(replaced['status']));
  return (last?.replaced['status'] as MemoryStatus | undefined) ?? 'active';
}

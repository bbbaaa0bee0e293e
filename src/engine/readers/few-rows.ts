import { findItemRow } from '../commands/items.ts';
import { hasReachedMb, type Quota } from '../commands/quota.ts';
import { noItem } from '../errors.ts';
import { compileFilter } from '../store/filter.ts';
import { getDocumentRow, listUnderWay } from '../store/documents.ts';
import { getErasure } from '../store/erasures.ts';
import { listRuns } from '../store/evals.ts';
import { hasEventsToHand } from '../store/hand-events.ts';
import { listDueRenewals } from '../store/items.ts';
import { countActive, countJobs, getJob } from '../store/job-views.ts';
import { getLearned, listLearned } from '../store/learned.ts';
import { findMemoryNos, getMemoryRow, readMemories, toMemory } from '../store/memories.ts';
import { readProvenance } from '../store/provenance.ts';
import { listUsage } from '../store/provider-usage.ts';
import { type Schedule, scheduleState } from '../store/schedules.ts';
import { hasDueMemories, hasStanding, nextClaimAt } from '../store/standing.ts';
import { listReflections } from '../store/reflections.ts';
import { listUploadsOf, waitingBytes } from '../store/uploads.ts';
import { findUserNo } from '../store/users.ts';
import { hasDueDeliveries, nextDeliveryAt } from '../store/webhooks.ts';
import type { ItemPlace, Provenance } from '../types.ts';
import type { ReadContext } from './read-context.ts';

/**
 * The read commands that read a few rows by their keys, some tens of microseconds in a file. `Readers.readFew` runs
 * them on the calling thread if the tenant is a file, and on a reader thread if it is in PostgreSQL.
 */
export const FEW_ROWS = {
  getMemory: ({ open, clock }: ReadContext, { id }: { readonly id: string }) => {
    const now = clock.now();
    return toMemory(getMemoryRow(open().store, id, now), now);
  },
  /** Reads a memory's document and its place there; undefined if it belongs to none, or if there is no such memory. */
  findProvenance: ({ open }: ReadContext, { id }: { readonly id: string }): Provenance | undefined => {
    const { store } = open();
    return store.read(() => {
      const memoryNo = findMemoryNos(store, [id]).get(id);
      return memoryNo === undefined ? undefined : readProvenance(store, [memoryNo]).get(memoryNo);
    });
  },
  getItem: ({ open, clock }: ReadContext, { place }: { readonly place: ItemPlace }) => {
    const now = clock.now();
    const row = findItemRow(open().store, place);
    if (row === undefined || (row.expires_at !== null && row.expires_at <= now)) throw noItem();
    return toMemory(row, now);
  },
  listDueRenewals: ({ open, clock }: ReadContext, { ids }: { readonly ids: readonly string[] }) =>
    listDueRenewals(open().store, ids, clock.now()),
  listReflections: (
    { open, clock }: ReadContext,
    { userId, limit }: { readonly userId: string; readonly limit: number },
  ) => {
    const { store } = open();
    const now = clock.now();
    return store.read(() => {
      const userNo = findUserNo(store, userId);
      if (userNo === undefined) return [];
      const memoryNos = listReflections(store, userNo, { visible: compileFilter({}, now), limit });
      const memories = readMemories(store, memoryNos, now);
      return memoryNos.flatMap((memoryNo) => memories.get(memoryNo) ?? []);
    });
  },
  documentNoOf: ({ open, clock }: ReadContext, { id }: { readonly id: string }) =>
    getDocumentRow(open().store, id, clock.now()).document_no,
  /** Lists those of these documents that a delete under way is erasing. */
  listUnderWay: ({ open, clock }: ReadContext, { documentNos }: { readonly documentNos: readonly number[] }) =>
    listUnderWay(open().store, documentNos, { except: '', now: clock.now() }),
  /** Lists the names of the uploaded files to which the generations of these documents still refer. */
  listUploads: ({ open }: ReadContext, { documentNos }: { readonly documentNos: readonly number[] }) =>
    listUploadsOf(open().store, documentNos),
  /** Counts the bytes of uploaded files that wait to be read. */
  countWaitingBytes: ({ open }: ReadContext, _: Record<never, never>) => waitingBytes(open().store),
  getJob: ({ open }: ReadContext, { id }: { readonly id: string }) => getJob(open().store, id),
  countJobs: ({ open }: ReadContext, _: Record<never, never>) => countJobs(open().store),
  countActive: ({ open }: ReadContext, _: Record<never, never>) => countActive(open().store),
  getErasure: ({ open }: ReadContext, { id }: { readonly id: string }) => getErasure(open().store, id),
  listLearned: ({ open }: ReadContext, _: Record<never, never>) => listLearned(open().store),
  getLearned: ({ open }: ReadContext, { id }: { readonly id: string }) => getLearned(open().store, id),
  listEvalRuns: ({ open }: ReadContext, { name, limit }: { readonly name: string; readonly limit: number }) =>
    listRuns(open().store, name, limit),
  /** Tells whether a scheduled run is due, and no process runs it. */
  isRunDue: (
    { open, clock }: ReadContext,
    { schedule, leaseMs }: { readonly schedule: Schedule; readonly leaseMs: number },
  ) => scheduleState(open().store, schedule, { now: clock.now(), leaseMs }).isDue,
  hasStanding: ({ open }: ReadContext, _: Record<never, never>) => hasStanding(open().store),
  /**
   * Tells whether memories wait to be compared with standing queries, and the tenant's quota of storage still has room
   * for what is found.
   */
  mayCompare: ({ open, clock, config }: ReadContext, { quota }: { readonly quota: Quota | null }) => {
    const { store } = open();
    return hasDueMemories(store, { now: clock.now(), leaseMs: config.OM_LEASE_MS }) && !hasReachedMb(store, quota);
  },
  /**
   * Tells whether events wait to be handed to webhooks, and the tenant's quota of storage still has room for the
   * deliveries.
   */
  mayHandEvents: ({ open }: ReadContext, { quota }: { readonly quota: Quota | null }) => {
    const { store } = open();
    return hasEventsToHand(store) && !hasReachedMb(store, quota);
  },
  hasReachedMb: ({ open }: ReadContext, { quota }: { readonly quota: Quota | null }) =>
    hasReachedMb(open().store, quota),
  hasDueDeliveries: ({ open, clock }: ReadContext, _: Record<never, never>) =>
    hasDueDeliveries(open().store, clock.now()),
  /**
   * Reads the time from which on standing queries or webhooks are due if nothing is written to the tenant before (Unix
   * ms): the present time if they are due now, Infinity for never.
   */
  standingDueAt: ({ open, clock, config }: ReadContext, _: Record<never, never>) => {
    const { store } = open();
    const now = clock.now();
    return store.read(() => {
      if (hasDueMemories(store, { now, leaseMs: config.OM_LEASE_MS }) || hasEventsToHand(store)) return now;
      return Math.min(nextClaimAt(store), nextDeliveryAt(store));
    });
  },
  listProviderUsage: ({ open }: ReadContext, { since }: { readonly since: number }) =>
    listUsage(open().store, { since }),
} as const;

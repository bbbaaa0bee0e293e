import { archiveReflections } from '../commands/archive-reflections.ts';
import { addDocument, cancelDocument, replaceDocument } from '../commands/accept-document.ts';
import { addMemories } from '../commands/accept.ts';
import { cancelJob, discardJob } from '../commands/end-job.ts';
import {
  deleteDocument,
  deleteMatching,
  deleteMemory,
  ERASE_PENDING,
  eraseAbandoned,
  hideMatching,
} from '../commands/erase.ts';
import { requestConsolidation, undoConsolidations } from '../commands/consolidations.ts';
import { importLines } from '../commands/import-lines.ts';
import { deleteItem, putItem, renewItems } from '../commands/items.ts';
import { noteDeletedRows } from '../commands/note-deleted-rows.ts';
import { moveNamespace } from '../commands/move-namespace.ts';
import { eraseItems } from '../commands/namespaces.ts';
import { patchMemory } from '../commands/patch.ts';
import { cancelReembed, clearRefusals, pauseReembed, startReembed, stopReembed } from '../commands/reembed.ts';
import { eraseRecalls, giveFeedback, logRecalls } from '../commands/recalls.ts';
import { applyRecalls, reinforceMemory } from '../commands/reinforce.ts';
import { contradictMemories, linkMemories, supersedeMemory, unlinkMemories } from '../commands/relate.ts';
import { closeErasure, recorded } from '../commands/recorded-erasure.ts';
import { requestReflection } from '../commands/request-reflection.ts';
import {
  abandonLogs,
  changeLog,
  clearLog,
  eraseItemsOfWriters,
  eraseLogItems,
  popLog,
} from '../commands/session-logs.ts';
import {
  claimDeliveries,
  claimDue,
  createStandingQuery,
  createWebhook,
  eraseStanding,
  handEvents,
  noteAnswers,
  storeDeliveryOutcomes,
} from '../commands/standing.ts';
import { noteBatch } from '../commands/batch-receipts.ts';
import { settleEnds } from '../commands/settle-ends.ts';
import { undoChanges, undoLinks } from '../commands/undo-writer.ts';
import type { WriteContext } from '../commands/write-context.ts';
import { forgetDispatchMarks, returnDispatchBatch, takeDispatchBatch, type WantedBatch } from '../store/dispatch.ts';
import { appendEmbedLog, type EmbedLogEntry } from '../store/embeddings.ts';
import { giveUpErasure } from '../store/erasures.ts';
import { recoverLeases } from '../store/job-leases.ts';
import { retryJob } from '../store/job-control.ts';
import { appendRun, deleteEval, eraseEvalItems, putEval } from '../store/evals.ts';
import { moveLearned, putLearned } from '../store/learned.ts';
import {
  claimSchedule,
  noteFailure,
  releaseSchedule,
  renewSchedule,
  requestRun,
  type RequestedSchedule,
  type Schedule,
} from '../store/schedules.ts';
import { deleteUploadParts, putUploadPart, type UploadPart } from '../store/upload-parts.ts';
import { deleteStandingQuery } from '../store/standing.ts';
import { putStandingVectors, type StandingVector } from '../store/standing-vectors.ts';
import { deleteStandingRows, type StandingPart } from '../store/erase-standing.ts';
import { deleteWebhook, retryDeliveries } from '../store/webhooks.ts';
import type { EvalItem, EvalRun, Learned, NewAuditRecord, PackedEvalSet } from '../types.ts';
import { ensureStoreId, putInfo } from '../store/store-info.ts';
import { reindexWaiting } from '../store/word-index/waiting-contexts.ts';

/**
 * All commands that a `Writer` runs: what clients ask for, and what a process that serves them writes by itself. A
 * command is synchronous. If it throws, nothing that it wrote is stored. Some do only a part of a large task in one
 * call; their results tell whether the caller has to call again.
 */
export const WRITE_COMMANDS = {
  addMemories,
  importLines,
  /** Writes words of waiting memories anew. @returns whether others still wait */
  reindexWaiting: ({ store }: WriteContext, _: Record<never, never>) => reindexWaiting(store),
  putItem,
  deleteItem: recorded(deleteItem),
  renewItems,
  moveNamespace,
  eraseItems: recorded(eraseItems),
  changeLog,
  popLog,
  clearLog,
  abandonLogs,
  eraseItemsOfWriters,
  eraseLogItems,
  patchMemory,
  archiveReflections,
  settleEnds,
  deleteMemory: recorded(deleteMemory),
  hideMatching: recorded(hideMatching),
  deleteMatching: recorded(deleteMatching),
  putUploadPart: ({ store, now }: WriteContext, part: UploadPart) => putUploadPart(store, part, now),
  deleteUploadParts: ({ store }: WriteContext, { name }: { readonly name: string }) => deleteUploadParts(store, name),
  addDocument,
  replaceDocument,
  cancelDocument,
  deleteDocument: recorded(deleteDocument),
  eraseAbandoned: recorded(eraseAbandoned),
  closeErasure,
  giveUpErasure: ({ store }: WriteContext, { id }: { readonly id: string }) => giveUpErasure(store, id),
  reinforceMemory,
  applyRecalls,
  logRecalls,
  eraseRecalls,
  giveFeedback,
  linkMemories,
  unlinkMemories,
  supersedeMemory,
  contradictMemories,
  requestReflection,
  requestConsolidation,
  undoConsolidations,
  undoLinks,
  undoChanges,
  /**
   * Writes nothing itself. Its input becomes an audit record, for actions such as reads that do not change this file;
   * with `OM_AUDIT=off` it does not.
   */
  recordAction: (_context: WriteContext, _record: Pick<NewAuditRecord, 'action' | 'detail'>): void => {},
  takeDispatchBatch: ({ store, config, now }: WriteContext, options: WantedBatch) =>
    takeDispatchBatch(store, { ...options, embedsHere: config.embedsHere, now }),
  returnDispatchBatch: ({ store }: WriteContext, { jobNos }: { readonly jobNos: readonly number[] }) =>
    returnDispatchBatch(store, jobNos),
  forgetDispatchMarks: ({ store }: WriteContext, _: Record<never, never>) => forgetDispatchMarks(store),
  recoverLeases: ({ store, config, now }: WriteContext, _: Record<never, never>) =>
    recoverLeases(store, { now, leaseMs: config.OM_LEASE_MS, everyOwner: false }),
  retryJob: ({ store, now }: WriteContext, { id }: { readonly id: string }) => retryJob(store, id, now),
  cancelJob,
  discardJob,
  /**
   * Claims a schedule (a periodic maintenance task) as `claimSchedule` does.
   * @returns whether the claim succeeded, so that the caller must run the task
   */
  claimRun: (
    { store, now }: WriteContext,
    { schedule, owner, leaseMs }: { readonly schedule: Schedule; readonly owner: string; readonly leaseMs: number },
  ) => claimSchedule(store, schedule, { name: schedule.name, owner, now, leaseMs }),
  /** Renews the claim on a schedule during a run. @returns false if another process has taken it over */
  renewRun: (
    { store, now }: WriteContext,
    { name, owner, leaseMs }: { readonly name: string; readonly owner: string; readonly leaseMs: number },
  ) => renewSchedule(store, { name, owner, now, leaseMs }),
  /**
   * Releases the claim on a schedule after a run, unless another process has taken it over. `ranAt` is the time at
   * which a completed run began (Unix ms). If it is left out, the run failed: that is stored in any case, and the
   * schedule stays due, but one that `backsOff` pauses first.
   */
  releaseRun: (
    { store, now }: WriteContext,
    run: { readonly name: string; readonly owner: string; readonly ranAt?: number | undefined },
  ) => {
    if (run.ranAt === undefined) noteFailure(store, { name: run.name, now });
    releaseSchedule(store, run);
  },
  /**
   * Makes a schedule (a periodic maintenance task) due at once.
   * @returns false, with nothing changed, while the task is running
   */
  requestRun: ({ store, config, now }: WriteContext, { schedule }: { readonly schedule: RequestedSchedule }) =>
    requestRun(store, schedule, { now, leaseMs: config.OM_LEASE_MS }),
  putEval: (context: WriteContext, { items, ...set }: PackedEvalSet) => {
    const replaced = putEval(context.store, { ...set, items: JSON.parse(items) as EvalItem[] }, context.now);
    if (replaced > 0) noteDeletedRows(context);
  },
  deleteEval: (context: WriteContext, { name }: { readonly name: string }) => {
    deleteEval(context.store, name);
    noteDeletedRows(context);
  },
  eraseEvalItems: ({ store, now }: WriteContext, { userIds }: { readonly userIds: readonly string[] }) => {
    const erased = eraseEvalItems(store, userIds);
    if (erased.items > 0) putInfo(store, ERASE_PENDING, String(now));
    return erased;
  },
  appendEvalRun: ({ store }: WriteContext, { name, run }: { readonly name: string; readonly run: EvalRun }) =>
    appendRun(store, name, run),
  createStandingQuery,
  deleteStandingQuery: (context: WriteContext, { id }: { readonly id: string }) => {
    deleteStandingQuery(context.store, id);
    noteDeletedRows(context);
  },
  eraseStanding,
  createWebhook,
  deleteWebhook: (context: WriteContext, { id }: { readonly id: string }) => {
    deleteWebhook(context.store, id);
    noteDeletedRows(context);
  },
  retryDeliveries: (
    { store, now }: WriteContext,
    dead: { readonly id: string; readonly after: number; readonly limit: number },
  ) => retryDeliveries(store, dead, now),
  deleteStandingRows: (
    { store }: WriteContext,
    { part, limit }: { readonly part: StandingPart; readonly limit: number },
  ) => deleteStandingRows(store, part, limit),
  putStandingVectors: (
    { store }: WriteContext,
    { modelNo, vectors }: { readonly modelNo: number; readonly vectors: readonly StandingVector[] },
  ) => putStandingVectors(store, modelNo, vectors),
  claimDue,
  noteAnswers,
  handEvents,
  claimDeliveries,
  storeDeliveryOutcomes,
  noteBatch,
  putLearned: ({ store }: WriteContext, learned: Learned) => putLearned(store, learned),
  moveLearned: (
    { store }: WriteContext,
    { id, ...move }: { readonly id: string } & Parameters<typeof moveLearned>[2],
  ) => moveLearned(store, id, move),
  clearRefusals,
  startReembed,
  pauseReembed: (context: WriteContext, _: Record<never, never>) => pauseReembed(context),
  stopReembed: (context: WriteContext, _: Record<never, never>) => stopReembed(context),
  cancelReembed: (context: WriteContext, _: Record<never, never>) => cancelReembed(context),
  appendEmbedLog: ({ store }: WriteContext, entry: EmbedLogEntry) => appendEmbedLog(store, entry),
  /**
   * Makes sure that the file exists, is migrated and has its id.
   * @returns the id
   */
  open: ({ store }: WriteContext, _: Record<never, never>) => ensureStoreId(store),
} as const;

type WriteCommands = typeof WRITE_COMMANDS;
export type WriteCommandName = keyof WriteCommands;
/** Input of a command, its second argument. */
export type WriteInput<N extends WriteCommandName> = Parameters<WriteCommands[N]>[1];
/** Result of a command. The caller gets it once the command's changes are on disk. */
export type WriteOutput<N extends WriteCommandName> = ReturnType<WriteCommands[N]>;

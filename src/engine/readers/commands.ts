import { checkMove, type MoveSlice } from '../commands/move-namespace.ts';
import { getErasableDocument } from '../commands/within-bounds.ts';
import { DAY_MS } from '../dynamics.ts';
import { foldName } from '../entities/modes.ts';
import { learnWeights } from '../retrieve/learn-weights.ts';
import { renderDigest } from '../retrieve/digest.ts';
import { readAuditSlice } from '../store/audit-chain.ts';
import { listConsolidations } from '../store/consolidations.ts';
import { readDiff } from '../store/diff.ts';
import type { DiffRequest } from '../store/diff-scans.ts';
import { getDocument, listDocumentNos, readDocuments } from '../store/document-views.ts';
import { listLinks } from '../store/edges.ts';
import { countEmbedLogs, listEmbedLogs } from '../store/embeddings.ts';
import { listEntities } from '../store/entity-lists.ts';
import { newestCursor, readEvents } from '../store/events.ts';
import { compileFilter } from '../store/filter.ts';
import { listErasures } from '../store/erasures.ts';
import { listItemPlaces } from '../store/item-lists.ts';
import { numbersOf } from '../store/live-model.ts';
import { getMemoryRow, listMatchingMemoryNos } from '../store/memories.ts';
import { sectorStats } from '../store/memory-counts.ts';
import { listMemoryNos, listMemoryPlaces, type PageOrder, type PagePart } from '../store/memory-pages.ts';
import { readMemorySlice } from '../store/memory-slices.ts';
import { listNames } from '../store/name-lists.ts';
import { listNamespaces } from '../store/namespace-lists.ts';
import { listPassingIds } from '../store/passing-memories.ts';
import type { SliceWanted } from '../store/placed.ts';
import { listJudgedRecalls } from '../store/judged-recalls.ts';
import { readBatchReceipt, type WantedReceipt } from '../store/batch-receipts.ts';
import { readTextReceipt } from '../store/receipts.ts';
import { readRevisionSlice } from '../store/revisions.ts';
import { readLogPage } from '../store/session-logs.ts';
import { listMatchingDocuments } from '../store/documents.ts';
import { countWaiting, findJobs, oldestWaitingAt } from '../store/job-views.ts';
import { readTimeline } from '../store/timeline.ts';
import { createWorkBudget, runWithin } from '../store/work-budget.ts';
import type {
  BoundOptions,
  AuditFilter,
  ConsolidationPage,
  CursorPage,
  DocumentDeleteOptions,
  DocumentFilter,
  EmbeddingState,
  ErasureFilter,
  ItemFilter,
  LearnedOptions,
  MemoryFilter,
  NameFilter,
  NameKind,
  NamespaceFilter,
  EventQuery,
  LogPlace,
  Page,
  PresentFilter,
  Profile,
  ProviderCallFilter,
  TimelineOptions,
} from '../types.ts';
import { describeReembed } from '../upkeep/reembed-status.ts';
import { listActiveReflections } from './active-reflections.ts';
import { answerQuery, explainAnswer } from './answer-query.ts';
import { askEval } from './ask-eval.ts';
import { EVAL_READS } from './evals.ts';
import { readRecall, readRecalls, replayLogged } from './recalls.ts';
import { compareStanding } from './standing.ts';
import { STANDING_LISTS } from './standing-lists.ts';
import { previewDecayAt, readBackups } from './upkeep.ts';
import { readEntity } from './entities.ts';
import { readJobs } from './jobs.ts';
import { readStats } from './stats.ts';
import { readChunks, readContent } from './document-chunks.ts';
import { FEW_ROWS } from './few-rows.ts';
import { readExportSlice, startExport } from './export-slice.ts';
import { judgeImport } from './judge-import.ts';
import { neighbourhood, userGraph } from './graph.ts';
import { readNearDuplicates } from './near-duplicates.ts';
import { proposeConsolidations } from './propose-consolidations.ts';
import { readProposals } from './proposals.ts';
import type { ReadContext } from './read-context.ts';
import { workLimits } from './work-limits.ts';

function listMemoriesPart(
  { open, clock }: ReadContext,
  { filter, page }: { readonly filter: MemoryFilter; readonly page: PagePart },
) {
  const { store } = open();
  const now = clock.now();
  return store.read(() => {
    const { memoryNos, more } = listMemoryNos(store, filter, page, now);
    return { ...readMemorySlice(store, memoryNos, now), listed: memoryNos.length, more };
  });
}

/**
 * The read commands: reads that may take longer than a few tenths of a millisecond, and so run on reader threads where
 * there are any, and the reads of a few rows (`FEW_ROWS`). A command's input and result are plain data, since they may
 * come from or go to another thread.
 */
export const READ_COMMANDS = {
  query: answerQuery,
  askEval,
  ...EVAL_READS,
  ...FEW_ROWS,
  explain: explainAnswer,
  readRecall,
  readRecalls,
  readNearDuplicates,
  readProposals,
  proposeConsolidations,
  listConsolidations: ({ open }: ReadContext, page: ConsolidationPage) => {
    const { store } = open();
    return store.read(() => listConsolidations(store, page));
  },
  listPresent: (
    { open, clock }: ReadContext,
    { ids, filter }: { readonly ids: readonly string[]; readonly filter: PresentFilter },
  ) => {
    const now = clock.now();
    return listPassingIds(open().store, compileFilter(filter, now, { includeHidden: true, forFew: true }), ids, now);
  },
  listProviderCalls: (
    { open }: ReadContext,
    { filter, page }: { readonly filter: ProviderCallFilter; readonly page: Page },
  ) => {
    const { store } = open();
    return store.read(() => ({ items: listEmbedLogs(store, filter, page), total: countEmbedLogs(store, filter) }));
  },
  findJobs: ({ open }: ReadContext, { ids }: { readonly ids: readonly string[] }) => findJobs(open().store, ids),
  replayLogged,
  learnWeights: (
    { open }: ReadContext,
    { profile, present }: { readonly profile: Profile; readonly present: LearnedOptions },
  ) => {
    const { store } = open();
    return learnWeights(
      store.read(() => listJudgedRecalls(store, profile)),
      profile,
      present,
    );
  },
  documentReceipt: (
    { open, clock }: ReadContext,
    { id, page }: { readonly id: string; readonly page: Page & BoundOptions },
  ) => {
    const { store } = open();
    return store.read(() => readTextReceipt(store, id, { ...page, now: clock.now() }));
  },
  batchReceipt: ({ open, clock, config }: ReadContext, { id, ...wanted }: { readonly id: string } & WantedReceipt) => {
    const { store } = open();
    const since = clock.now() - config.OM_RECEIPT_DAYS * DAY_MS;
    return store.read(() => readBatchReceipt(store, id, { ...wanted, since }));
  },
  listActiveReflections,
  compareStanding,
  ...STANDING_LISTS,
  listLinks: ({ open, clock }: ReadContext, { id }: { readonly id: string }) => {
    const { store } = open();
    return store.read(() => listLinks(store, getMemoryRow(store, id, clock.now()).memoryNo));
  },
  listErasures: ({ open }: ReadContext, page: { readonly limit: number; readonly offset: number }) => {
    const { store } = open();
    return store.read(() => listErasures(store, page));
  },
  readAuditSlice: ({ open }: ReadContext, filter: AuditFilter) => readAuditSlice(open().store, filter),
  listMemories: listMemoriesPart,
  /**
   * Reads the parts of a page after the first one. It is `listMemories` under another name, so that no standby answers
   * it: these parts must not be older than the first.
   */
  listFurtherMemories: listMemoriesPart,
  readMemories: (
    { open, clock }: ReadContext,
    { memoryNos, recorded }: { readonly memoryNos: readonly number[]; readonly recorded?: number | undefined },
  ) => {
    const { store } = open();
    const slice = () => readMemorySlice(store, memoryNos, clock.now(), recorded);
    // Only memories of an earlier time are read by several statements that have to agree.
    return recorded === undefined ? slice() : store.read(slice);
  },
  listMemoryPlaces: (
    { open, clock }: ReadContext,
    { page, wanted }: { readonly page: PageOrder; readonly wanted: Omit<SliceWanted, 'now'> },
  ) => {
    const { store } = open();
    return store.read(() => listMemoryPlaces(store, page, { ...wanted, now: clock.now() }));
  },
  listItemPlaces: (
    { open, clock }: ReadContext,
    { filter, wanted }: { readonly filter: ItemFilter; readonly wanted: Omit<SliceWanted, 'now'> },
  ) => {
    const { store } = open();
    return store.read(() => listItemPlaces(store, filter, { ...wanted, now: clock.now() }));
  },
  listNamespaces: (
    { open, clock }: ReadContext,
    { filter, page }: { readonly filter: NamespaceFilter; readonly page: CursorPage },
  ) => {
    const { store } = open();
    return store.read(() => listNamespaces(store, filter, { ...page, now: clock.now() }));
  },
  checkMove: ({ open, clock }: ReadContext, slice: MoveSlice) => {
    const { store } = open();
    return store.read(() => checkMove({ store, now: clock.now() }, slice));
  },
  listNames: (
    { open, clock }: ReadContext,
    { kind, ...asked }: { readonly kind: NameKind; readonly filter: NameFilter; readonly page: CursorPage },
  ) => {
    const { store } = open();
    return store.read(() => listNames(store, kind, { ...asked, now: clock.now() }));
  },
  neighbourhood,
  userGraph,
  previewDecay: previewDecayAt,
  listBackups: readBackups,
  timeline: ({ open, clock }: ReadContext, { id, ...around }: TimelineOptions & { readonly id: string }) =>
    readTimeline(open().store, id, { ...around, now: clock.now() }),
  readRevisions: (
    { open, clock }: ReadContext,
    { id, ...page }: { readonly id: string; readonly before: number; readonly limit: number },
  ) => {
    const { store } = open();
    return store.read(() => readRevisionSlice(store, getMemoryRow(store, id, clock.now()).memoryNo, page));
  },
  newestEvent: ({ open }: ReadContext) => {
    const { store } = open();
    return store.read(() => newestCursor(store));
  },
  listEvents: ({ open }: ReadContext, query: EventQuery) => {
    const { store } = open();
    return store.read(() => readEvents(store, query));
  },
  readLog: (
    { open }: ReadContext,
    {
      place,
      page,
    }: {
      readonly place: LogPlace;
      readonly page: { readonly limit: number; readonly before?: number | undefined };
    },
  ) => {
    const { store } = open();
    return store.read(() => readLogPage(store, place, page));
  },
  listMatching: (
    { open, clock }: ReadContext,
    {
      filter,
      ...slice
    }: { readonly filter: ErasureFilter; readonly after: number; readonly limit: number; readonly bytes: number },
  ) => listMatchingMemoryNos(open().store, filter, { ...slice, now: clock.now() }),
  listMatchingDocuments: (
    { open }: ReadContext,
    {
      filter,
      ...slice
    }: { readonly filter: ErasureFilter; readonly except: string; readonly after: number; readonly limit: number },
  ) => listMatchingDocuments(open().store, filter, slice),
  sectorStats: ({ open, clock }: ReadContext, _: Record<never, never>) => sectorStats(open().store, clock.now()),
  diff: ({ open, clock, config }: ReadContext, request: Omit<DiffRequest, 'now'>) => {
    const { store } = open();
    const whole = { ...request, now: clock.now() };
    const diff = runWithin(createWorkBudget(workLimits(config)), () => store.read(() => readDiff(store, whole)));
    const known = config.OM_AUDIT === 'off' ? { ...diff, erased: null } : diff;
    const { digest } = request;
    return digest === undefined ? known : { ...known, rendered: renderDigest(known, digest.tokenBudget) };
  },
  listDocuments: (
    { open, clock }: ReadContext,
    { filter, page }: { readonly filter: DocumentFilter; readonly page: Page },
  ) => {
    const { store } = open();
    return store.read(() => listDocumentNos(store, filter, { ...page, now: clock.now() }));
  },
  readDocument: ({ open, clock }: ReadContext, { id }: { readonly id: string }) => {
    const { store } = open();
    return store.read(() => getDocument(store, id, clock.now()));
  },
  /**
   * Returns the number of a document that is about to be erased; it may be hidden already. Throws EngineError
   * `not_found`.
   */
  findErasableDocument: (
    { open, clock }: ReadContext,
    { id, ...options }: DocumentDeleteOptions & { readonly id: string },
  ) => {
    const { store } = open();
    return store.read(() => getErasableDocument(store, { id, now: clock.now() }, options).document_no);
  },
  readChunks,
  readContent,
  readDocuments: ({ open, clock }: ReadContext, { documentNos }: { readonly documentNos: readonly number[] }) => {
    const { store } = open();
    return store.read(() => readDocuments(store, documentNos, clock.now()));
  },
  listEntities: (
    { open, clock, config }: ReadContext,
    {
      prefix,
      userId,
      tags,
      page,
    }: {
      readonly prefix: string;
      readonly userId: string | undefined;
      readonly tags?: readonly string[] | undefined;
      readonly page: Page;
    },
  ) => {
    const { store } = open();
    const listing = { prefix: foldName(prefix), userId, filter: compileFilter({ tags }, clock.now()) };
    const limits = workLimits(config);
    return runWithin(createWorkBudget(limits), () => store.read(() => listEntities(store, listing, page)));
  },
  startExport,
  readExportSlice,
  judgeImport,
  getEntity: readEntity,
  listJobs: readJobs,
  countWaiting: ({ open }: ReadContext, _: Record<never, never>) => countWaiting(open().store),
  oldestWaitingAt: ({ open }: ReadContext, _: Record<never, never>) => oldestWaitingAt(open().store),
  stats: (context: ReadContext, _: Record<never, never>) => readStats(context),
  reembedStatus: ({ open, clock }: ReadContext, embedding: EmbeddingState) => {
    const { store, configuredModels } = open();
    const target = configuredModels && numbersOf(configuredModels);
    return store.read(() => describeReembed(store, { ...embedding, configuredModels, target, now: clock.now() }));
  },
} as const;

type ReadCommands = typeof READ_COMMANDS;
export type ReadCommandName = keyof ReadCommands;
/** Name of a command that reads a few rows. */
export type FewRowsName = keyof typeof FEW_ROWS;
/** Input of a command: its second argument. */
export type ReadInput<N extends ReadCommandName> = Parameters<ReadCommands[N]>[1];
/** Result of a command, without its promise. */
export type ReadOutput<N extends ReadCommandName> = Awaited<ReturnType<ReadCommands[N]>>;

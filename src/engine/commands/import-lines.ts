import { joinChains } from '../store/chains.ts';
import {
  findTwinById,
  insertExactDocument,
  insertExactLink,
  insertExactMemory,
  insertExactPlace,
  insertExactRevision,
  showComplete,
} from '../store/import-rows.ts';
import { putItemName } from '../store/items.ts';
import { insertJob } from '../store/jobs.ts';
import { ensureUser, readMemoryRows } from '../store/memories.ts';
import { neighboursOf } from '../store/session-context.ts';
import { appendItems, insertLog, type LogRow } from '../store/session-logs.ts';
import { ensureWriter } from '../store/writers.ts';
import { putText, reindexText } from '../store/word-index/memory-text.ts';
import type { ImportOutcome, PortableLine, PortableLink, PortableLogItem, PortableMemory } from '../types.ts';
import { enqueueReindex, type ReindexQueue, refuseOverBacklog } from './accept.ts';
import { storeVectors } from './import-vectors.ts';
import { judgeLine, type NewLine, type ResolvedLink } from './judge-import.ts';
import { refuseOverQuota, type Quota } from './quota.ts';
import { DEFAULT_WEIGHTS } from './relate.ts';
import { settleStatus, startOf } from './settle-status.ts';
import type { WriteContext } from './write-context.ts';

/**
 * Stores lines of an export file one after the other, each exactly as it says, with its ids, times, anchors of decay
 * and versions. What is already stored is not changed. The importing key counts as the writer of everything imported,
 * because a file can claim any writer, and undoing what a key did must reach what it imported.
 *
 * No line is begun after some 1 MiB of text was indexed, as all writes of all tenants wait for the commit. The text is
 * that of the stored memories, and of memories that they precede in a session, whose words are written anew.
 * @returns outcomes of the first lines, in their order; at least one. The caller imports the other lines again
 * @throws EngineError for all lines: `unavailable` over `OM_MAX_BACKLOG`; `storage_full` over the quota
 */
export function importLines(
  context: WriteContext,
  { lines, quota = null }: { readonly lines: readonly PortableLine[]; readonly quota?: Quota | null },
): ImportOutcome[] {
  const memories = lines.filter(({ type }) => type === 'memory').length;
  if (memories > 0) refuseOverBacklog(context, memories);
  if (memories > 0 || lines.some(({ type }) => type === 'session_item')) refuseOverQuota(context, quota, memories);
  const toReindex: ReindexQueue = { memoryNos: new Set(), bytes: 0 };
  const outcomes: ImportOutcome[] = [];
  for (const line of lines) {
    if (toReindex.bytes >= MAX_INDEXED_BYTES) break;
    const judged = judgeLine(context.store, line, context.now);
    if (judged.kind === 'new') storeLine(context, judged, toReindex);
    outcomes.push(judged.kind === 'new' ? { kind: 'stored' } : judged);
  }
  // One at a time: they may be long.
  for (const memoryNo of toReindex.memoryNos) reindexText(context.store, [memoryNo]);
  return outcomes;
}

/** Size of texts (bytes) after which one commit of an import begins no further line. */
const MAX_INDEXED_BYTES = 1024 * 1024;

/** @param toReindex memories whose words the caller writes anew; those that follow a new memory are added */
function storeLine(context: WriteContext, judged: NewLine, toReindex: ReindexQueue): void {
  const { store } = context;
  if ('hash' in judged) return storeMemory(context, judged, toReindex);
  if ('memoryNo' in judged) return insertExactRevision(store, judged.memoryNo, judged.line);
  if ('link' in judged) return storeLink(context, judged.line, judged.link);
  if ('log' in judged) return storeLogItem(context, judged.line, judged.log);
  insertExactDocument(store, judged.line, ensureWriter(store, context.writtenBy));
}

function storeMemory(
  context: WriteContext,
  { line, hash, document, vectors }: Extract<NewLine, { readonly hash: Buffer }>,
  toReindex: ReindexQueue,
): void {
  const { store, config, now } = context;
  const userNo = ensureUser(store, line.user_id);
  // A run of blanks may fill a chunk: there is nothing to embed in it.
  const isBlank = document !== null && line.content.trim() === '';
  const memoryNo = insertExactMemory(store, line, {
    userNo,
    contentHash: hash,
    state: isBlank ? 'ready' : 'queued',
    generationNo: document?.liveNo ?? null,
    decayLambda: config.OM_DECAY_LAMBDA,
    writerNo: ensureWriter(store, context.writtenBy),
    now,
  });
  if (line.item !== null) putItemName(store, memoryNo, { userNo, ...line.item });
  if (document !== null) {
    insertExactPlace(store, document.liveNo!, memoryNo, line.document!);
    showComplete(store, document.documentNo);
  }
  enqueueReindex(store, toReindex, indexWords(context, line, { memoryNo, userNo, isChunk: document !== null }));
  toReindex.bytes += Buffer.byteLength(line.content);
  storeVectors(context, { memory: memoryNo, userNo }, vectors);
  if (isBlank) return;
  insertJob(store, {
    id: context.newId(),
    memory: memoryNo,
    document: document?.documentNo ?? null,
    kind: line.state === 'ready' ? 'import' : 'memory',
    step: 'encode',
    bulk: true,
    trace: context.trace,
    now,
  });
}

/** Writes the words of a memory. @returns the memories that follow it in its session, whose words are to be written */
function indexWords(
  { store, now }: WriteContext,
  line: PortableMemory,
  place: { readonly memoryNo: number; readonly userNo: number; readonly isChunk: boolean },
): readonly number[] {
  const eventTime = line.event_time ?? line.created_at ?? now;
  const { context, successors } = neighboursOf(store, { ...place, sessionId: line.session_id, eventTime });
  const { title, content, gist, entities, tags, files } = line;
  putText(store, { memoryNo: place.memoryNo, title, content, gist, entities, tags, files, context });
  return successors;
}

function storeLogItem(context: WriteContext, line: PortableLogItem, log: LogRow | undefined): void {
  const { store } = context;
  const place = { userId: line.user_id, sessionId: line.session_id };
  const now = line.created_at ?? context.now;
  const writerNo = ensureWriter(store, context.writtenBy);
  appendItems(store, log ?? insertLog(store, place, now), [line.item], { writerNo, now });
}

/**
 * Stores a link, and gives its memories the statuses that follow from it, unless they were imported with their
 * statuses.
 */
function storeLink(context: WriteContext, line: PortableLink, { key, winner }: ResolvedLink): void {
  const { store, now } = context;
  insertExactLink(
    store,
    { src: key.src, dst: key.dst, winner },
    { ...line, weight: line.weight ?? DEFAULT_WEIGHTS[line.link_type] },
    { writerNo: line.automatic ? null : ensureWriter(store, context.writtenBy), now },
  );
  const statusOf = (id: string) => findTwinById(store, id)!.status;
  if (line.link_type === 'supersedes') {
    joinChains(store, { older: key.dst, newer: key.src });
    const [newer] = readMemoryRows(store, [key.src]);
    if (statusOf(line.dst) !== 'superseded') settleStatus(context, key.dst, { endsAt: startOf(newer!) });
  }
  if (winner !== null) {
    const isLeft = winner === key.src ? key.dst : key.src;
    const loser = line.winner === line.src ? line.dst : line.src;
    if (!['superseded', 'contradicted'].includes(statusOf(loser))) settleStatus(context, isLeft);
  }
}

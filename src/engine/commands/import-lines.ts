import { joinChains } from '../store/chains.ts';
import { countParts } from '../store/chunks.ts';
import { hasManyTrips } from '../store/foresight.ts';
import {
  findTwinById,
  insertExactDocument,
  insertExactLink,
  insertExactMemory,
  insertExactPlace,
  insertExactRevision,
  showComplete,
} from '../store/import-rows.ts';
import { putItemName, releaseItemName, setItemTtl } from '../store/items.ts';
import { insertJob } from '../store/jobs.ts';
import { ensureUser, readMemoryRows } from '../store/memories.ts';
import type { Store } from '../store/open-store.ts';
import { contextAndFollowers } from '../store/session-context.ts';
import { appendItems, insertLog, type LogRow } from '../store/session-logs.ts';
import { ensureWriter } from '../store/writers.ts';
import { indexedBytes, MAX_INDEXED_BYTES, putText, workOf } from '../store/word-index/memory-text.ts';
import { reindexFollowers } from '../store/word-index/waiting-contexts.ts';
import type { ImportOutcome, PortableLine, PortableLink, PortableLogItem, PortableMemory } from '../types.ts';
import { refuseOverBacklog } from './accept.ts';
import { storeVectors } from './import-vectors.ts';
import { judgeLine, type NewLine, type ResolvedLink } from './judge-import.ts';
import { refuseOverQuota, type Quota } from './quota.ts';
import { enqueueReindex, MOVED_BYTES, type ReindexQueue, walkedBytes } from './reindex-queue.ts';
import { DEFAULT_WEIGHTS } from './relate.ts';
import { settleStatus, settlingBytes, startOf } from './settle-status.ts';
import type { WriteContext } from './write-context.ts';

/** Result of `importLines`. */
export interface ImportedLines {
  /** Outcomes of the first lines, in their order; at least one. The caller imports the other lines again. */
  readonly outcomes: readonly ImportOutcome[];
}

/**
 * Stores lines of an export file one after the other, each exactly as it says, with its ids, times, anchors of decay
 * and versions. Nothing that is stored already is overwritten, but a new link may change the status of a stored memory.
 * The importing key counts as the writer of everything imported, because a file can claim any writer, and undoing what
 * a key did must reach what it imported.
 *
 * No more text is indexed than one commit should (`MAX_INDEXED_BYTES`), or one line, as all writes of all tenants wait
 * for the commit. The text is that of the stored memories, and of memories that they precede in a session, whose words
 * are written anew. Memories that a supersession moves to another chain count as some text, and so do walks along
 * chains that a line needs, also one that is refused. Memories whose words would be too much wait. In PostgreSQL no
 * further line is stored after 150 round trips.
 * @throws EngineError for all lines, by the number of memories in them: `unavailable` over `OM_MAX_BACKLOG`; what
 *   `refuseOverQuota` throws
 */
export function importLines(
  context: WriteContext,
  { lines, quota = null }: { readonly lines: readonly PortableLine[]; readonly quota?: Quota | null },
): ImportedLines {
  const memories = lines.filter(({ type }) => type === 'memory').length;
  if (memories > 0) refuseOverBacklog(context, memories);
  refuseOverQuota(context, quota, memories);
  const toReindex: ReindexQueue = { memoryNos: new Set(), bytes: 0, settled: 0 };
  const missing = new Map<number, number>();
  const outcomes: ImportOutcome[] = [];
  for (const line of lines) {
    if (outcomes.length > 0 && isTooMuch(context.store, toReindex, line)) break;
    const judged = judgeLine(context.store, line, context.now);
    if (judged.kind === 'new') storeLine(context, judged, { toReindex, missing });
    outcomes.push(judged.kind === 'new' ? { kind: 'stored' } : judged);
  }
  reindexFollowers(context.store, toReindex.memoryNos);
  return { outcomes };
}

/** Tells whether a line is to be stored by another write, as the present one has done much or would do so with it. */
function isTooMuch(store: Store, { bytes, settled }: ReindexQueue, line: PortableLine): boolean {
  const done = indexedBytes(store) + bytes + settled + walkedBytes(store);
  return done + workOfLine(line) > MAX_INDEXED_BYTES || hasManyTrips(store);
}

/** Returns the work that a line makes for the word index, in the unit of `insertText`; rather too little. */
function workOfLine(line: PortableLine): number {
  if (line.type !== 'memory') return 0;
  const { content, title, gist, entities, tags, files } = line;
  return workOf([content, title, gist, ...entities, ...tags, ...files]);
}

/** What is gathered while the lines of one commit are stored. */
interface Stored {
  /** Memories whose words are written anew at the end; those that follow a new memory are added. */
  readonly toReindex: ReindexQueue;
  /**
   * Number of memories that a document lacks yet, by the document's number. They are counted at its first part in the
   * commit, since counting them reads all places of the document.
   */
  readonly missing: Map<number, number>;
}

function storeLine(context: WriteContext, judged: NewLine, stored: Stored): void {
  const { store } = context;
  if ('hash' in judged) return storeMemory(context, judged, stored);
  if ('memoryNo' in judged) return insertExactRevision(store, judged.memoryNo, judged.line);
  if ('link' in judged) return storeLink(context, judged.line, judged.link, stored.toReindex);
  if ('log' in judged) return storeLogItem(context, judged.line, judged.log);
  insertExactDocument(store, judged.line, ensureWriter(store, context.writtenBy));
}

function storeMemory(
  context: WriteContext,
  { line, hash, document, vectors, expiredNames }: Extract<NewLine, { readonly hash: Buffer }>,
  { toReindex, missing }: Stored,
): void {
  const { store, config, now } = context;
  const userNo = ensureUser(store, line.user_id);
  // A run of blanks may fill a chunk: there is nothing to embed in it.
  const isBlank = document !== null && line.content.trim() === '';
  for (const name of expiredNames) releaseItemName(store, name, now);
  const memoryNo = insertExactMemory(store, line, {
    userNo,
    contentHash: hash,
    state: isBlank ? 'ready' : 'queued',
    generationNo: document?.liveNo ?? null,
    decayLambda: config.OM_DECAY_LAMBDA,
    writerNo: ensureWriter(store, context.writtenBy),
    now,
  });
  if (line.item !== null) {
    putItemName(store, memoryNo, { userNo, ...line.item });
    if (line.item.ttl_ms !== null) setItemTtl(store, memoryNo, line.item.ttl_ms);
  }
  if (document !== null) {
    const { documentNo, liveNo, chunks } = document as { documentNo: number; liveNo: number; chunks: number };
    const left = (missing.get(documentNo) ?? chunks + 1 - countParts(store, liveNo)) - 1;
    insertExactPlace(store, liveNo, memoryNo, line.document!);
    missing.set(documentNo, left);
    if (left <= 0) showComplete(store, { documentNo, generationNo: liveNo, chunks });
  }
  enqueueReindex(store, toReindex, indexWords(context, line, { memoryNo, userNo, isChunk: document !== null }));
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

/**
 * Writes the words of a memory. @returns the `memoryNo` of the memories that follow it in its session, whose words are
 * to be written anew
 */
function indexWords(
  { store, now }: WriteContext,
  line: PortableMemory,
  place: { readonly memoryNo: number; readonly userNo: number; readonly isChunk: boolean },
): readonly number[] {
  const eventTime = line.event_time ?? line.created_at ?? now;
  const { context, followers } = contextAndFollowers(store, { ...place, sessionId: line.session_id, eventTime });
  const { title, content, gist, entities, tags, files } = line;
  putText(store, { memoryNo: place.memoryNo, title, content, gist, entities, tags, files, context });
  return followers;
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
function storeLink(
  context: WriteContext,
  line: PortableLink,
  { key, winner }: ResolvedLink,
  toReindex: ReindexQueue,
): void {
  const { store, now } = context;
  insertExactLink(
    store,
    { src: key.src, dst: key.dst, winner },
    { ...line, weight: line.weight ?? DEFAULT_WEIGHTS[line.link_type] },
    { writerNo: line.automatic ? null : ensureWriter(store, context.writtenBy), now },
  );
  const statusOf = (id: string) => findTwinById(store, id)!.status;
  const settle = (memoryNo: number, ends: { readonly endsAt?: number } = {}) => {
    for (const row of readMemoryRows(store, [memoryNo])) toReindex.settled += settlingBytes(row);
    settleStatus(context, memoryNo, ends);
  };
  if (line.link_type === 'supersedes') {
    toReindex.bytes += MOVED_BYTES * joinChains(store, { older: key.dst, newer: key.src });
    const [newer] = readMemoryRows(store, [key.src]);
    if (statusOf(line.dst) !== 'superseded') settle(key.dst, { endsAt: startOf(newer!) });
  }
  if (winner !== null) {
    const loserNo = winner === key.src ? key.dst : key.src;
    const loser = line.winner === line.src ? line.dst : line.src;
    if (!['superseded', 'contradicted'].includes(statusOf(loser))) settle(loserNo);
  }
}

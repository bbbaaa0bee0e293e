import { removeUpload } from '../documents/uploads.ts';
import { EngineError } from '../errors.ts';
import { requireBounds } from '../store/bounds.ts';
import { chainOf, listChainsEndingIn, shortenChain } from '../store/chains.ts';
import {
  deleteDocumentRow,
  hideDocument,
  listMatchingDocuments,
  listPartsOf,
  listUnderWay,
} from '../store/documents.ts';
import { listNames, listNamesOfNext, listWithoutTags, listWithOwnText } from '../store/document-views.ts';
import { dropLiveGeneration, listExpiredDocuments, listOutlived } from '../store/document-expiry.ts';
import { deleteGeneration, findAbandoned } from '../store/document-generations.ts';
import { documentsOfMemories, listMemoriesOfGeneration, listWithoutDocument } from '../store/chunks.ts';
import { readProvenance } from '../store/provenance.ts';
import { releaseUpload } from '../store/uploads.ts';
import { countEdgesOf, listReleased, listSuccessors, listWaypointSources, putStatedEdge } from '../store/edges.ts';
import { countEmbeddingsOnlyOf, eraseCopies } from '../store/embeddings.ts';
import { eraseEntities } from '../store/entities.ts';
import { eraseStoredReplies } from '../store/idempotency.ts';
import { cancelDocumentJobs } from '../store/document-jobs.ts';
import { detachJobs } from '../store/job-control.ts';
import { deleteLatentFit, hasLatentSpace } from '../store/latent-spaces.ts';
import {
  deleteMemoryRows,
  getMemoryNo,
  listExpiredMemoryNos,
  type MemoryRow,
  readMemoryRows,
} from '../store/memories.ts';
import { compileFilter } from '../store/filter.ts';
import { listPassingOf } from '../store/passing-memories.ts';
import { listReflectionsOn } from '../store/reflections.ts';
import { countRevisions, prefetchSnapshots } from '../store/revisions.ts';
import { putInfo } from '../store/store-info.ts';
import { inContextOfEach } from '../store/session-context.ts';
import { withinBytes } from '../store/text-sizes.ts';
import { deleteText } from '../store/word-index/memory-text.ts';
import { reindexFollowers } from '../store/word-index/waiting-contexts.ts';
import type { Store } from '../store/open-store.ts';
import { deleteVectorsOfAll } from '../store/vectors.ts';
import { mayBeFitted } from '../text/latent-space.ts';
import type { BoundOptions, DeleteReceipt, DocumentDeleteOptions, ErasureFilter } from '../types.ts';
import { dropReading } from './drop-reading.ts';
import { enqueueSteps } from './enqueue-step.ts';
import { firstToErase } from './first-to-erase.ts';
import { noteDeletedRows } from './note-deleted-rows.ts';
import { DEFAULT_WEIGHTS } from './relate.ts';
import { settleStatus, startOf } from './settle-status.ts';
import { deleteDependentRowsSlice } from './delete-dependent-rows.ts';
import { getErasableDocument } from './within-bounds.ts';
import type { WriteContext } from './write-context.ts';

/**
 * Greatest number of memories that one write of a delete erases, and of documents that it hides. It also holds when
 * memories expire, and in the clean-up of documents' replaced or abandoned versions. Reflections on these memories come
 * in addition, at most as many again. A lower number lets other writes in sooner, and makes a large delete slower.
 */
export const ERASE_SLICE = 100;

/**
 * Greatest number of bytes of texts, values and metadata of the memories that one write erases, unless a single memory
 * has more; reflections on them come in addition, with at most as many bytes again. Their words are hashed for the
 * receipt of the delete, and every tenant's writes wait for the commit.
 */
export const ERASE_BYTES = 32 * 1024;

/** Result of one write of a delete that takes several writes. */
export interface ErasedSlice {
  readonly receipt: DeleteReceipt;
  /** Whether nothing is left to erase. */
  readonly isDone: boolean;
}

/**
 * Key of the entry in `store_info` that is set when a text was erased, since its words are still in old segments of the
 * word index and in the write-ahead log. `cleanAfterErase` cleans both.
 */
export const ERASE_PENDING = 'erase_pending';

/** The receipt of a delete that has erased nothing. */
export const EMPTY_RECEIPT: DeleteReceipt = {
  memories: 0,
  documents: 0,
  vectors: 0,
  edges: 0,
  revisions: 0,
  jobs: 0,
  cachedEmbeddings: 0,
  storedReplies: 0,
};

/** Adds up the numbers of two receipts, field by field. */
export function addReceipts(a: DeleteReceipt, b: DeleteReceipt): DeleteReceipt {
  return Object.fromEntries(
    Object.entries(a).map(([name, count]: [string, number]) => [name, count + b[name as keyof DeleteReceipt]]),
  ) as unknown as DeleteReceipt;
}

/**
 * Erases one memory, or, if too many rows depend on it for one commit, only some of those rows (`isDone` is false).
 * @param isBegun true if an earlier call for this delete has erased a part: the tags, which the memory had then, are
 *   not checked again
 * @throws EngineError `not_found`; `conflict` for a chunk of a document
 */
export function deleteMemory(
  context: WriteContext,
  { id, withinTags = [], isBegun = false }: BoundOptions & { readonly id: string; readonly isBegun?: boolean },
): ErasedSlice {
  const memoryNo = getMemoryNo(context.store, id);
  if (withinTags.length > 0 && !isBegun)
    for (const row of readMemoryRows(context.store, [memoryNo])) requireBounds(row, withinTags);
  const document = readProvenance(context.store, [memoryNo]).get(memoryNo);
  if (document !== undefined)
    throw new EngineError('conflict', `this memory is a part of document ${document.documentId}: delete the document`);
  return eraseInSlices(context, [memoryNo]);
}

/** What a write of a delete has left to other deletes, each of which records in its receipt what it has hidden. */
export interface LeftToOthers {
  /** Numbers of documents that match, but are being erased by another delete that is under way. */
  readonly others: readonly number[];
}

/**
 * Hides those of the given documents that match a filter now; `eraseAbandoned` erases them later. Documents that a
 * delete which broke off has hidden are hidden anew, and so become those of this delete. The filter is applied to the
 * documents themselves, since a document that has not been read yet has no memory to match. If the filter names
 * writers, and only the next version of a document is theirs, its reading is dropped, and the document stays;
 * `eraseAbandoned` without an erasure erases that version. The caller searches for the candidates before the write, so
 * that the search does not hold up other writes.
 * @param documentNos `documentNo` of each candidate
 * @returns a receipt that counts the hidden documents and all cancelled jobs
 */
export function hideMatching(
  context: WriteContext,
  { filter, documentNos: among }: { readonly filter: ErasureFilter; readonly documentNos: readonly number[] },
): { readonly receipt: DeleteReceipt } & LeftToOthers {
  const { store, now } = context;
  const except = context.erasing?.id ?? '';
  const found = listMatchingDocuments(store, filter, { except, limit: among.length, among });
  // Any version may have matched; the bounds are those of the version that callers are shown.
  const foreign = listWithoutTags(store, found, { tags: filter.withinTags ?? [], now });
  const matching = found.filter((documentNo) => !foreign.includes(documentNo));
  const others = listUnderWay(store, matching, { except, now });
  const free = matching.filter((documentNo) => !others.includes(documentNo));
  const kept = listWithOwnText(store, free, filter.writtenBy);
  let jobs = 0;
  if (kept.length > 0) context.erasing?.names(listNamesOfNext(store, kept));
  for (const documentNo of kept) jobs += dropReading(context, documentNo, 'ready');
  const hidden = free.filter((documentNo) => !kept.includes(documentNo));
  return { receipt: addReceipts({ ...EMPTY_RECEIPT, jobs }, abandonDocuments(context, hidden)), others };
}

/**
 * Erases those of the given memories that match a filter now, with the reflections drawn from them. The caller finds
 * the candidates before the write, since a search through all memories would hold up all other writes; here they are
 * only checked again. If a chunk of a document is among them, the whole document is hidden, and `eraseAbandoned` erases
 * it with this chunk; chunks of versions that were replaced or given up are erased by themselves. Parts of a document
 * that another delete under way has hidden are left to that delete, whose receipt records them.
 * @param memoryNos `memoryNo` of each candidate
 * @returns what was erased; until `isDone` is true, the caller calls again with the same candidates
 */
export function deleteMatching(
  context: WriteContext,
  { filter, memoryNos: found }: { readonly filter: ErasureFilter; readonly memoryNos: readonly number[] },
): ErasedSlice & LeftToOthers {
  const { store, now } = context;
  const except = context.erasing?.id ?? '';
  const passing = listPassingOf(store, compileFilter(filter, now, { includeHidden: true, forFew: true }), found);
  const others = listUnderWay(store, documentsOfMemories(store, passing, except), { except, now });
  const left = new Set(listPartsOf(store, passing, others));
  const own = passing.filter((memoryNo) => !left.has(memoryNo));
  const memoryNos = withoutForeignParts(context, own, { tags: filter.withinTags ?? [], except });
  const torn = abandonDocuments(context, documentsOfMemories(store, memoryNos, except));
  const { receipt, isDone } = eraseInSlices(context, listWithoutDocument(store, memoryNos));
  return { receipt: addReceipts(torn, receipt), isDone, others };
}

/**
 * Leaves out the chunks of documents that lack one of the tags, since erasing a chunk would erase its whole document.
 * Returns the `memoryNo` of the others.
 * @param except id of the erasure that runs; documents that it has hidden are not looked at again
 */
function withoutForeignParts(
  { store, now }: WriteContext,
  memoryNos: readonly number[],
  { tags, except }: { readonly tags: readonly string[]; readonly except: string },
): readonly number[] {
  if (tags.length === 0) return memoryNos;
  const foreign = listWithoutTags(store, documentsOfMemories(store, memoryNos, except), { tags, now });
  const parts = new Set(listPartsOf(store, memoryNos, foreign));
  return memoryNos.filter((memoryNo) => !parts.has(memoryNo));
}

/**
 * Runs one slice of the expiry job: hides at most `limit` expired documents and gives up the expired text of as many
 * whose newer version waits, for `eraseAbandoned`, and erases at most `limit` expired memories, with at most 32 KiB of
 * texts, values and metadata (`ERASE_BYTES`) or a single one.
 * @returns receipt of the erased memories, without the hidden documents
 */
export function deleteExpired(context: WriteContext, { limit }: { readonly limit: number }): ErasedSlice {
  const { store, now } = context;
  const documentNos = listExpiredDocuments(store, now, limit);
  abandonDocuments(context, documentNos);
  const outlived = listOutlived(store, now, limit);
  for (const documentNo of outlived) dropLiveGeneration(store, documentNo, now);
  const expired = listExpiredMemoryNos(store, now, limit);
  const memoryNos = withinBytes(store, expired, ERASE_BYTES);
  const { receipt, isDone } = eraseInSlices(context, memoryNos);
  const isLast = [documentNos, outlived, expired].every((found) => found.length < limit);
  return { receipt, isDone: isDone && isLast && memoryNos.length === expired.length };
}

/**
 * Hides a document and cancels the job that reads it or waits for its chunks; `eraseAbandoned` erases the document
 * later, and cancels the jobs of its chunks then. A document that a delete which broke off has hidden is hidden anew.
 * @throws EngineError `not_found`; `unavailable` while another delete is erasing the document
 */
export function deleteDocument(
  context: WriteContext,
  { id, ...options }: DocumentDeleteOptions & { readonly id: string },
): DeleteReceipt {
  const { store, now } = context;
  const { document_no: documentNo } = getErasableDocument(store, { id, now }, options);
  if (listUnderWay(store, [documentNo], { except: '', now }).length > 0)
    throw new EngineError('unavailable', 'another delete is erasing this document', { retryAfterMs: 5_000 });
  return abandonDocuments(context, [documentNo]);
}

function abandonDocuments({ store, now, erasing }: WriteContext, documentNos: readonly number[]): DeleteReceipt {
  let jobs = 0;
  if (documentNos.length > 0) erasing?.names(listNames(store, documentNos));
  for (const documentNo of documentNos) {
    jobs += cancelDocumentJobs(store, documentNo, { which: 'all', now });
    hideDocument(store, documentNo, { erasure: erasing?.id ?? null, now });
  }
  return { ...EMPTY_RECEIPT, documents: documentNos.length, jobs };
}

/**
 * Erases one slice of data that can no longer be read: of the documents that the erasure of the context has hidden; or
 * without one replaced or abandoned versions of documents, and documents that were deleted without a receipt. The
 * uploaded file of such a version is deleted before the commit. `isDone` is true only if there was nothing to erase.
 * @param limit greatest number of a document's memories to erase; they have at most 32 KiB of texts, values and
 *   metadata (`ERASE_BYTES`) together, or are a single memory. Reflections drawn from them are erased in addition
 * @param last `memoryNo` of parts that are erased after the others of their document, in the commit that deletes the
 *   document's row if they are few, and the document's jobs, too. They are parts that match a filter: if the delete
 *   breaks off, a repeated one finds the document by them
 */
export function eraseAbandoned(
  context: WriteContext,
  { limit, last = [] }: { readonly limit: number; readonly last?: readonly number[] | undefined },
): ErasedSlice {
  const { store } = context;
  const abandoned = findAbandoned(store, context.erasing?.id, last);
  if (abandoned === undefined) return { receipt: EMPTY_RECEIPT, isDone: true };
  const { documentNo, generationNo } = abandoned;
  if (generationNo === null) {
    eraseDocumentRow(context, documentNo);
    return { receipt: EMPTY_RECEIPT, isDone: false };
  }
  // The file goes before the commit. If the commit fails, the generation is still nobody's, and a crash leaves no file
  // that nobody knows.
  removeUpload(store.path, releaseUpload(store, generationNo));
  const others = last.length === 0 ? [] : listMemoriesOfGeneration(store, generationNo, limit, last);
  const listed = others.length > 0 ? others : listMemoriesOfGeneration(store, generationNo, limit);
  const memoryNos = withinBytes(store, listed, ERASE_BYTES);
  const { receipt, isDone } = eraseInSlices(context, memoryNos);
  if (!isDone || memoryNos.length < listed.length) return { receipt, isDone: false };
  const isEmpty =
    last.length === 0 ? listed.length < limit : listMemoriesOfGeneration(store, generationNo, 1).length === 0;
  if (!isEmpty) return { receipt, isDone: false };
  deleteGeneration(store, generationNo);
  noteDeletedRows(context); // The version's title, file name and URL are still in the log.
  const next = last.length === 0 ? undefined : findAbandoned(store, context.erasing?.id, last);
  if (next?.generationNo === null) eraseDocumentRow(context, next.documentNo);
  return { receipt, isDone: false };
}

function eraseDocumentRow({ store, now }: WriteContext, documentNo: number): void {
  deleteDocumentRow(store, documentNo);
  // The document's name and URL, too, are still in the log now.
  putInfo(store, ERASE_PENDING, String(now));
}

/**
 * Erases memories as `eraseMemories` does. If more rows depend on them than one commit should remove, it removes only
 * some of those rows, beginning with reflections (memories of conclusions drawn from them). Then `isDone` is false, and
 * the caller calls again until it is true.
 * @param memoryNos `memoryNo` of each memory; those that an earlier call erased are ignored
 * @param beforeLast called before the last of the memories are erased
 */
export function eraseInSlices(
  context: WriteContext,
  memoryNos: readonly number[],
  beforeLast: () => void = () => {},
): ErasedSlice {
  const first = firstToErase(context, memoryNos, { most: ERASE_SLICE, bytes: ERASE_BYTES });
  if (first.length === 0 && memoryNos.length > 0) return { receipt: EMPTY_RECEIPT, isDone: false };
  const deleted = deleteDependentRowsSlice(context, first);
  if (deleted !== undefined) return { receipt: { ...EMPTY_RECEIPT, ...deleted }, isDone: false };
  const erased = new Set(first);
  const isDone = memoryNos.every((memoryNo) => erased.has(memoryNo));
  if (isDone) beforeLast();
  return { receipt: eraseMemories(context, first), isDone };
}

/**
 * Erases memories with everything made from them: words, vectors in every index, edges, revisions, cached embeddings,
 * stored replies, the latent space (a model of word meanings) if it may know their words, entities that no other memory
 * mentions, and their words in the indexed context of the memories that follow them. Running jobs lose their lease, so
 * that they write nothing afterwards. Reflections and consolidations drawn from an erased memory repeat what it said,
 * and are erased too. Of the memories whose waypoint (automatic link) led to an erased memory, at most 100 for each
 * (`MAX_LINKED_ANEW`) are linked again. Memories that an erased memory had superseded or contradicted get their own
 * status back, unless the successor of the erased memory now supersedes them. It also sets `ERASE_PENDING`.
 * @param named `memoryNo` of each memory; unknown numbers are ignored
 */
export function eraseMemories(context: WriteContext, named: readonly number[]): DeleteReceipt {
  const { store, now } = context;
  if (named.length === 0) return EMPTY_RECEIPT;
  const erased = new Set([...named, ...listReflectionsOn(store, named)]);
  const memoryNos = [...erased];
  const released = listReleased(store, memoryNos);
  const endedChains = new Set(listChainsEndingIn(store, memoryNos).values());
  eraseEntities(store, memoryNos);
  const rows = readMemoryRows(store, memoryNos);
  const found = rows.map(({ memoryNo }) => memoryNo);
  forgetSpaceOf(store, rows);
  if (context.erasing !== undefined) prefetchSnapshots(store, found);
  const followers = [...inContextOfEach(store, rows).values()].flat();
  for (const row of rows) context.erasing?.memory(row);
  const linking = listWaypointSources(store, found);
  const receipt: DeleteReceipt = {
    memories: found.length,
    documents: 0,
    edges: countEdgesOf(store, found),
    revisions: countRevisions(store, found),
    jobs: detachJobs(store, found, now),
    storedReplies: eraseStoredReplies(store, found),
    ...eraseVectors(context, found),
  };
  deleteText(store, ...found);
  deleteMemoryRows(store, found);
  const staying = (some: readonly number[]) => [...new Set(some)].filter((memoryNo) => !erased.has(memoryNo));
  reindexFollowers(store, staying(followers));
  enqueueSteps(context, staying(linking), 'link');
  for (const { memory, successor } of released) {
    if (successor !== null) {
      putStatedEdge(store, { src: successor, dst: memory, type: 'supersedes' }, DEFAULT_WEIGHTS.supersedes, now);
    }
    const [newer] = successor === null ? [] : readMemoryRows(store, [successor]);
    if (!erased.has(memory)) settleStatus(context, memory, newer && { endsAt: startOf(newer) });
  }
  const freed = [...new Set(released.map(({ memory }) => memory))].filter(
    (memory) => !erased.has(memory) && listSuccessors(store, memory).length === 0,
  );
  const chainOfFreed = new Map(freed.map((memory) => [memory, chainOf(store, memory)]));
  for (const chainNo of endedChains) {
    shortenChain(
      store,
      chainNo,
      freed.filter((memory) => chainOfFreed.get(memory) === chainNo),
    );
  }
  putInfo(store, ERASE_PENDING, String(now));
  return receipt;
}

/**
 * Deletes the latent space (a model of word meanings) if one of the memories that are about to be erased may have been
 * among the texts to which it was fitted. The periodic upkeep fits a new one.
 */
export function forgetSpaceOf(store: Store, rows: readonly MemoryRow[]): void {
  // The text of an earlier version may have been long enough, even if the present one is too short.
  const isPart = ({ content, version }: MemoryRow) => version > 1 || mayBeFitted(content);
  if (hasLatentSpace(store) && rows.some(isPart)) deleteLatentFit(store);
}

/**
 * Removes the vectors of memories from the file and from every index, and counts them. `cachedEmbeddings` counts, once
 * for each model, the different window texts whose cached vectors no other memory has: an equal text must be embedded
 * anew.
 */
export function eraseVectors(
  { store, indexes }: Pick<WriteContext, 'store' | 'indexes'>,
  memoryNos: readonly number[],
): Pick<DeleteReceipt, 'vectors' | 'cachedEmbeddings'> {
  const cachedEmbeddings = countEmbeddingsOnlyOf(store, memoryNos);
  for (const memoryNo of memoryNos) eraseCopies(store, memoryNo);
  let vectors = 0;
  for (const [modelNo, index] of indexes) {
    const vectorNos = deleteVectorsOfAll(store, memoryNos, modelNo);
    // A model that was dropped meanwhile has neither vectors nor an index.
    if (vectorNos.length > 0) index.remove(vectorNos);
    vectors += vectorNos.length;
  }
  return { vectors, cachedEmbeddings };
}

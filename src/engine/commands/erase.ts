import { removeUpload } from '../documents/uploads.ts';
import { EngineError } from '../errors.ts';
import { chainOf, listChainsEndingIn, shortenChain } from '../store/chains.ts';
import {
  deleteDocumentRow,
  findDocumentRow,
  findErasedDocument,
  getDocumentRow,
  hideDocument,
  listExpiredDocuments,
  listMatchingDocuments,
} from '../store/documents.ts';
import { toDocument } from '../store/document-views.ts';
import { deleteGeneration, findAbandonedGeneration } from '../store/document-generations.ts';
import { documentsOfMemories, listMemoriesOfGeneration } from '../store/chunks.ts';
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
  deleteMemoryRow,
  getMemoryNo,
  listExpiredMemoryNos,
  type MemoryRow,
  readMemoryRows,
} from '../store/memories.ts';
import { compileFilter } from '../store/filter.ts';
import { listPassingOf } from '../store/passing-memories.ts';
import { listReflectionsOn } from '../store/reflections.ts';
import { countRevisions } from '../store/revisions.ts';
import { putInfo } from '../store/store-info.ts';
import { placeOf, successorsOf } from '../store/session-context.ts';
import { deleteText, reindexText } from '../store/word-index/memory-text.ts';
import type { Store } from '../store/open-store.ts';
import { deleteVectors } from '../store/vectors.ts';
import { mayBeFitted } from '../text/latent-space.ts';
import type { DeleteReceipt, ErasureFilter } from '../types.ts';
import { oweStep } from './owe-step.ts';
import { DEFAULT_WEIGHTS } from './relate.ts';
import { settleStatus, startOf } from './settle-status.ts';
import type { WriteContext } from './write-context.ts';

/**
 * Most memories, and most documents, that one write erases: in a delete, when memories expire, and in the clean-up of
 * what was abandoned. Fewer let other writes come through sooner, and make a large delete slower.
 */
export const ERASE_SLICE = 100;

/**
 * Key of the store info that is set when rows were erased and their words are still in freed pages and in the log. The
 * maintenance cleans both.
 */
export const ERASE_PENDING = 'erase_pending';

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

export function addReceipts(a: DeleteReceipt, b: DeleteReceipt): DeleteReceipt {
  return Object.fromEntries(
    Object.entries(a).map(([name, count]: [string, number]) => [name, count + b[name as keyof DeleteReceipt]]),
  ) as unknown as DeleteReceipt;
}

/** Erases one memory. @throws EngineError `not_found`; `conflict` for a part of a document */
export function deleteMemory(context: WriteContext, { id }: { readonly id: string }): DeleteReceipt {
  const memoryNo = getMemoryNo(context.store, id);
  const document = readProvenance(context.store, [memoryNo]).get(memoryNo);
  if (document !== undefined)
    throw new EngineError('conflict', `this memory is a part of document ${document.documentId}: delete the document`);
  return eraseMemories(context, [memoryNo]);
}

/**
 * Hides at most `limit` documents that match a filter, for `eraseAbandoned`. They are matched by what they say
 * themselves, since one that is not read yet has no memory to be found by.
 */
export function hideMatching(
  context: WriteContext,
  { filter, limit }: { readonly filter: ErasureFilter; readonly limit: number },
): DeleteReceipt {
  return abandonDocuments(context, listMatchingDocuments(context.store, filter, limit));
}

/**
 * Erases those of the given memories that match a filter at present, with the reflections that rest on them. They are
 * looked for elsewhere, since a search through all memories would hold up all other writes. A document that loses a
 * part is hidden as a whole, for `eraseAbandoned`.
 */
export function deleteMatching(
  context: WriteContext,
  { filter, memoryNos: found }: { readonly filter: ErasureFilter; readonly memoryNos: readonly number[] },
): DeleteReceipt {
  const { store, now } = context;
  const passing = listPassingOf(store, compileFilter(filter, now, { includeHidden: true }), found);
  const memoryNos = withoutForeignParts(store, passing, filter.withinTags ?? []);
  const torn = abandonDocuments(context, documentsOfMemories(store, memoryNos));
  return addReceipts(torn, eraseMemories(context, memoryNos));
}

/** Leaves out parts of documents that lack one of the tags: with a part, the whole document would go. */
function withoutForeignParts(store: Store, memoryNos: readonly number[], tags: readonly string[]): readonly number[] {
  if (tags.length === 0) return memoryNos;
  const foreign = new Set(
    documentsOfMemories(store, memoryNos)
      .map((documentNo) => toDocument(store, findDocumentRow(store, documentNo)!))
      .filter((document) => !tags.every((tag) => document.tags.includes(tag)))
      .map(({ id }) => id),
  );
  const parts = readProvenance(store, memoryNos);
  return memoryNos.filter((memoryNo) => !foreign.has(parts.get(memoryNo)?.documentId ?? ''));
}

/**
 * Runs one slice of the expiry job: hides every expired document, for `eraseAbandoned`, and erases at most `limit`
 * expired memories.
 * @returns receipt of the erased memories; hidden documents are not in it
 */
export function deleteExpired(context: WriteContext, { limit }: { readonly limit: number }): DeleteReceipt {
  abandonDocuments(context, listExpiredDocuments(context.store, context.now));
  return eraseMemories(context, listExpiredMemoryNos(context.store, context.now, limit));
}

/** Hides a document from everybody; `eraseAbandoned` erases it. @throws EngineError `not_found` */
export function deleteDocument(context: WriteContext, { id }: { readonly id: string }): DeleteReceipt {
  const { document_no: documentNo } = getDocumentRow(context.store, id, context.now);
  return abandonDocuments(context, [documentNo]);
}

function abandonDocuments({ store, now }: WriteContext, documentNos: readonly number[]): DeleteReceipt {
  let jobs = 0;
  for (const documentNo of documentNos) {
    jobs += cancelDocumentJobs(store, documentNo, now);
    hideDocument(store, documentNo, now);
  }
  return { ...EMPTY_RECEIPT, documents: documentNos.length, jobs };
}

/** Result of one slice of `eraseAbandoned`. */
export interface ErasedSlice {
  readonly receipt: DeleteReceipt;
  /** True if nothing is left to erase. */
  readonly isDone: boolean;
}

/**
 * Erases one slice of what nobody sees any more: generations that were replaced or given up, and deleted documents.
 * @param limit most parts of a document erased; reflections that rest on them come on top
 */
export function eraseAbandoned(
  context: WriteContext,
  {
    limit,
    documentId = null,
  }: {
    readonly limit: number;
    /** The document to erase from; null for all documents. */
    readonly documentId?: string | null;
  },
): ErasedSlice {
  const { store } = context;
  const abandoned = findAbandonedGeneration(store, documentId);
  if (abandoned === undefined) {
    const erased = findErasedDocument(store, documentId);
    if (erased !== undefined) {
      deleteDocumentRow(store, erased);
      // The document's name and URL, too, are in freed pages and in the log now.
      putInfo(store, ERASE_PENDING, String(context.now));
    }
    return { receipt: EMPTY_RECEIPT, isDone: erased === undefined };
  }
  // The file goes before the commit. If the commit fails, the generation is still nobody's, and a crash leaves no file
  // that nobody knows.
  removeUpload(store.path, releaseUpload(store, abandoned.generationNo));
  const memoryNos = listMemoriesOfGeneration(store, abandoned.generationNo, limit);
  const receipt = eraseMemories(context, memoryNos);
  if (memoryNos.length < limit) deleteGeneration(store, abandoned.generationNo);
  return { receipt, isDone: false };
}

/**
 * Removes memories with everything made from them: words, vectors in every index, edges, revisions, cached embeddings,
 * stored replies, a latent space that may know their words, names that no other memory mentions, and their traces in
 * the context of their successors. Jobs in flight lose their lease, so that they write nothing afterwards. Reflections
 * that rest on an erased memory tell of it, and are erased too. Memories whose waypoint led to an erased memory are
 * linked anew. Memories that gave way to an erased memory get their own status back, unless what superseded the latter
 * takes its place.
 * @param named numbers of the memories; numbers without a memory are passed over
 */
export function eraseMemories(context: WriteContext, named: readonly number[]): DeleteReceipt {
  const { store, now } = context;
  if (named.length === 0) return EMPTY_RECEIPT;
  const erased = new Set([...named, ...listReflectionsOn(store, named)]);
  const memoryNos = [...erased];
  const needContext = new Set<number>();
  const needLink = new Set<number>();
  const released = listReleased(store, memoryNos);
  const endedChains = new Set(listChainsEndingIn(store, memoryNos).values());
  let receipt = EMPTY_RECEIPT;
  eraseEntities(store, memoryNos);
  const rows = readMemoryRows(store, memoryNos);
  forgetSpaceOf(store, rows);
  for (const row of rows) {
    for (const successor of successorsOf(store, placeOf(row))) needContext.add(successor);
    for (const source of listWaypointSources(store, row.memoryNo)) needLink.add(source);
    context.erasing?.memory(row);
    const counts = {
      memories: 1,
      documents: 0,
      edges: countEdgesOf(store, row.memoryNo),
      revisions: countRevisions(store, row.memoryNo),
      jobs: detachJobs(store, row.memoryNo, now),
      storedReplies: eraseStoredReplies(store, row.memoryNo),
      ...eraseVectors(context, row.memoryNo),
    };
    deleteText(store, row.memoryNo);
    deleteMemoryRow(store, row.memoryNo);
    receipt = addReceipts(receipt, counts);
  }
  reindexText(
    store,
    [...needContext].filter((memoryNo) => !erased.has(memoryNo)),
  );
  for (const memoryNo of needLink) if (!erased.has(memoryNo)) oweStep(context, memoryNo, 'link');
  for (const { memory, heir } of released) {
    if (heir !== null) {
      putStatedEdge(store, { src: heir, dst: memory, type: 'supersedes' }, DEFAULT_WEIGHTS.supersedes, now);
    }
    const [newer] = heir === null ? [] : readMemoryRows(store, [heir]);
    if (!erased.has(memory)) settleStatus(context, memory, newer && { endsAt: startOf(newer) });
  }
  const freed = [...new Set(released.map(({ memory }) => memory))].filter(
    (memory) => !erased.has(memory) && listSuccessors(store, memory).length === 0,
  );
  for (const chainNo of endedChains) {
    shortenChain(
      store,
      chainNo,
      freed.filter((memory) => chainOf(store, memory) === chainNo),
    );
  }
  putInfo(store, ERASE_PENDING, String(now));
  return receipt;
}

/** Forgets the latent space if it may hold words of memories that are to go; the upkeep fits another one. */
export function forgetSpaceOf(store: Store, rows: readonly MemoryRow[]): void {
  // An earlier version may have been longer.
  const isPart = ({ content, version }: MemoryRow) => version > 1 || mayBeFitted(content);
  if (hasLatentSpace(store) && rows.some(isPart)) deleteLatentFit(store);
}

/** Removes a memory's vectors, which serve as cache for equal texts, and their rows in every index. */
export function eraseVectors(
  { store, indexes }: Pick<WriteContext, 'store' | 'indexes'>,
  memoryNo: number,
): Pick<DeleteReceipt, 'vectors' | 'cachedEmbeddings'> {
  const cachedEmbeddings = countEmbeddingsOnlyOf(store, memoryNo);
  eraseCopies(store, memoryNo);
  let vectors = 0;
  for (const [modelNo, index] of indexes) {
    const vectorNos = deleteVectors(store, memoryNo, modelNo);
    // A model that was dropped meanwhile has neither vectors nor an index.
    if (vectorNos.length > 0) index.remove(vectorNos);
    vectors += vectorNos.length;
  }
  return { vectors, cachedEmbeddings };
}

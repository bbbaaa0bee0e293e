import { removeUpload } from '../documents/uploads.ts';
import { EngineError } from '../errors.ts';
import { chainOf, listChainsEndingIn, shortenChain } from '../store/chains.ts';
import {
  deleteDocumentRow,
  deleteGeneration,
  documentsOfMemories,
  findAbandonedGeneration,
  findErasedDocument,
  getDocumentRow,
  hideDocument,
  listExpiredDocuments,
  listMatchingDocuments,
  listMemoriesOfGeneration,
  readProvenance,
  releaseUpload,
} from '../store/documents.ts';
import { countEdgesOf, listReleased, listSuccessors, listWaypointSources, putStatedEdge } from '../store/edges.ts';
import { eraseCachedEmbeddingsOf } from '../store/embeddings.ts';
import { eraseEntities } from '../store/entities.ts';
import { eraseStoredReplies } from '../store/idempotency.ts';
import { cancelDocumentJobs, detachJobs } from '../store/jobs.ts';
import { deleteMemoryRow, getSeq, listExpiredSeqs, listMatchingSeqs, readMemoryRows } from '../store/memories.ts';
import { listReflectionsOn } from '../store/reflections.ts';
import { countRevisions } from '../store/revisions.ts';
import { putInfo } from '../store/store-info.ts';
import { placeOf, successorsOf } from '../store/session-context.ts';
import { deleteText, reindexText } from '../store/word-index/memory-text.ts';
import { deleteVectors } from '../store/vectors.ts';
import type { DeleteReceipt, ErasureFilter } from '../types.ts';
import { oweStep } from './owe-step.ts';
import { DEFAULT_WEIGHTS } from './relate.ts';
import { settleStatus, startOf } from './settle-status.ts';
import type { WriteContext } from './write-context.ts';

/** Set when rows were erased whose words are still in freed pages and in the log; the maintenance cleans both. */
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

/** @throws EngineError `not_found`; `conflict` for a part of a document */
export function deleteMemory(context: WriteContext, { id }: { readonly id: string }): DeleteReceipt {
  const seq = getSeq(context.store, id);
  const document = readProvenance(context.store, [seq]).get(seq);
  if (document !== undefined)
    throw new EngineError('conflict', `this memory is a part of document ${document.documentId}: delete the document`);
  return eraseMemories(context, [seq]);
}

/**
 * One slice of a delete by filter; the caller repeats it until a receipt says less than `limit` documents and memories, and then erases
 * what is left of documents. They go first, by what they say themselves, since one that is not read yet has no memory to be found by;
 * one that loses a part goes as a whole.
 */
export function deleteMatching(
  context: WriteContext,
  { filter, limit }: { readonly filter: ErasureFilter; readonly limit: number },
): DeleteReceipt {
  const { store, now } = context;
  const hidden = abandonDocuments(context, listMatchingDocuments(store, filter, limit));
  const seqs = listMatchingSeqs(store, filter, limit, now);
  const torn = abandonDocuments(context, documentsOfMemories(store, seqs));
  return addReceipts(addReceipts(hidden, torn), eraseMemories(context, seqs));
}

/** One slice of the expiry job. */
export function deleteExpired(context: WriteContext, { limit }: { readonly limit: number }): DeleteReceipt {
  abandonDocuments(context, listExpiredDocuments(context.store, context.now));
  return eraseMemories(context, listExpiredSeqs(context.store, context.now, limit));
}

/** Hides a document from everybody; `eraseAbandoned` makes it go. */
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

/** One slice of erasing what nobody sees any more: generations that were replaced or given up, and deleted documents. */
export interface ErasedSlice {
  readonly receipt: DeleteReceipt;
  readonly isDone: boolean;
}

export function eraseAbandoned(
  context: WriteContext,
  {
    limit,
    documentId = null,
  }: {
    readonly limit: number;
    /** null for those of any document. */
    readonly documentId?: string | null;
  },
): ErasedSlice {
  const { store } = context;
  const abandoned = findAbandonedGeneration(store, documentId);
  if (abandoned === undefined) {
    const erased = findErasedDocument(store, documentId);
    if (erased !== undefined) {
      deleteDocumentRow(store, erased);
      // Its name and URL, too, are in freed pages and in the log now.
      putInfo(store, ERASE_PENDING, String(context.now));
    }
    return { receipt: EMPTY_RECEIPT, isDone: erased === undefined };
  }
  // Before the commit: if it fails, the generation is nobody's all the same, and a crash leaves no file that nobody knows.
  removeUpload(store.path, releaseUpload(store, abandoned.generationNo));
  const seqs = listMemoriesOfGeneration(store, abandoned.generationNo, limit);
  const receipt = eraseMemories(context, seqs);
  if (seqs.length < limit) deleteGeneration(store, abandoned.generationNo);
  return { receipt, isDone: false };
}

/**
 * Removes memories with everything made from them: words, vectors in every index, edges, revisions, cached embeddings, stored
 * replies, names that no other memory mentions, and their traces in the context of their successors. Jobs in flight lose their lease, so that nothing of theirs is
 * written afterwards. Reflections that rest on one of them tell of it, and go too. Memories whose waypoint led to one of them are linked anew, and those that gave way to one of them stand
 * again, unless what superseded it takes its place.
 */
export function eraseMemories(context: WriteContext, named: readonly number[]): DeleteReceipt {
  const { store, now } = context;
  if (named.length === 0) return EMPTY_RECEIPT;
  const erased = new Set([...named, ...listReflectionsOn(store, named)]);
  const seqs = [...erased];
  const needContext = new Set<number>();
  const needLink = new Set<number>();
  const released = listReleased(store, seqs);
  const endedChains = new Set(listChainsEndingIn(store, seqs).values());
  let receipt = EMPTY_RECEIPT;
  eraseEntities(store, seqs);
  for (const row of readMemoryRows(store, seqs)) {
    for (const successor of successorsOf(store, placeOf(row))) needContext.add(successor);
    for (const source of listWaypointSources(store, row.seq)) needLink.add(source);
    const counts = {
      memories: 1,
      documents: 0,
      edges: countEdgesOf(store, row.seq),
      revisions: countRevisions(store, row.seq),
      jobs: detachJobs(store, row.seq, now),
      storedReplies: eraseStoredReplies(store, row.seq),
      ...eraseVectors(context, row.seq),
    };
    deleteText(store, row.seq);
    deleteMemoryRow(store, row.seq);
    receipt = addReceipts(receipt, counts);
  }
  reindexText(
    store,
    [...needContext].filter((seq) => !erased.has(seq)),
  );
  for (const seq of needLink) if (!erased.has(seq)) oweStep(context, seq, 'link');
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

/** Removes a memory's vectors with their rows in every index and what the cache knows of the texts they were made from. */
export function eraseVectors(
  { store, indexes }: Pick<WriteContext, 'store' | 'indexes'>,
  memory: number,
): Pick<DeleteReceipt, 'vectors' | 'cachedEmbeddings'> {
  const cachedEmbeddings = eraseCachedEmbeddingsOf(store, memory);
  let vectors = 0;
  for (const [modelNo, index] of indexes) {
    const vectorNos = deleteVectors(store, memory, modelNo);
    // A model that was dropped since has neither vectors nor an index.
    if (vectorNos.length > 0) index.remove(vectorNos);
    vectors += vectorNos.length;
  }
  return { vectors, cachedEmbeddings };
}

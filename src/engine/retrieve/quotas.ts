import { boundsOf, originsOf, type Origin } from '../store/derivations.ts';
import type { Store } from '../store/open-store.ts';
import { readProvenance } from '../store/provenance.ts';
import type { Candidate } from './candidate.ts';
import type { CompleteQuery } from './options.ts';

/**
 * Greatest `k` for which `perDocument` (the limit of hits of one document) applies. A caller who wants more hits wants
 * all of them, even from one document.
 */
const DIVERSE_K = 10;

/** Counts how many further hits each document and each kind may have. `place` is an index in the list of candidates. */
interface Quotas {
  /**
   * Returns the reason to leave out the candidate at this index; null if its document and its kind may have another
   * hit. A chunk of a document whose root is a hit is not refused because of the document, since it replaces the root.
   */
  refusal(place: number): 'document_limit' | 'kind_limit' | null;
  /**
   * Counts the candidate at this index as a hit.
   * @param isRoot whether it is the root of a document (the memory of the whole document)
   */
  take(place: number, isRoot: boolean): void;
  /** Undoes `take` for a hit that is removed again. */
  giveBack(place: number): void;
}

/**
 * Least number of candidates whose documents and kinds are read by one SQL statement. The first `k` are usually enough,
 * and each memory costs 3 µs.
 */
const ORIGINS_AT_ONCE = 10;

/**
 * Creates the limits of one query: at most `perDocument` hits that are derived from one document or memory (this memory
 * included) while `k` is at most 10 and `perDocument` is above 0, and at most `topK` hits of each kind. A conclusion
 * drawn from other memories repeats none of them, so it counts as a document of its own.
 * @param ranked candidates, best first
 */
export function quotasOf(
  store: Store,
  ranked: readonly Candidate[],
  { k, perDocument, topK, filter }: CompleteQuery,
): Quotas {
  const perRoot = k <= DIVERSE_K && perDocument > 0 ? perDocument : Infinity;
  if (perRoot === Infinity && topK === undefined) return { refusal: () => null, take: () => {}, giveBack: () => {} };
  // Sources are followed whatever their status.
  const bounds = boundsOf(filter);
  const origins = new Map<number, Origin>();
  let learnt = 0;
  const originOf = (place: number) => {
    while (place >= learnt) {
      // Where documents crowd the list, each statement reads as many as all before it, so that they stay few.
      const count = Math.max(ORIGINS_AT_ONCE, k, learnt);
      const next = ranked.slice(learnt, (learnt += count)).map(({ row }) => row.memoryNo);
      for (const [memoryNo, origin] of originsOf(store, next, { followed: bounds, bounds }))
        origins.set(memoryNo, origin);
    }
    const { memoryNo } = ranked[place]!.row;
    return origins.get(memoryNo) ?? { root: memoryNo, isSource: false, hasAutomaticSource: false };
  };
  const ofRoot = new Map<number, number>();
  /** `memoryNo` of each root of a document that is a hit. */
  const roots = new Set<number>();
  const isChunk = createChunkLook(store, ranked);
  const left = { knowledge: topK?.knowledge ?? Infinity, episodes: topK?.episodes ?? Infinity, other: Infinity };
  // A conclusion repeats nothing of its sources and must not crowd them out, so it counts as a document of its own.
  const documentAt = (place: number, { root, hasAutomaticSource }: Origin) =>
    hasAutomaticSource ? ranked[place]!.row.memoryNo : root;
  const count = (place: number, hits: 1 | -1) => {
    const origin = originOf(place);
    left[kindOf(ranked[place]!, origin)] -= hits;
    const document = documentAt(place, origin);
    ofRoot.set(document, (ofRoot.get(document) ?? 0) + hits);
  };
  return {
    refusal(place) {
      const origin = originOf(place);
      if (left[kindOf(ranked[place]!, origin)] <= 0) return 'kind_limit';
      const document = documentAt(place, origin);
      if ((ofRoot.get(document) ?? 0) < perRoot) return null;
      return roots.has(document) && isChunk(place, learnt) ? null : 'document_limit';
    },
    take(place, isRoot) {
      count(place, 1);
      if (isRoot) roots.add(ranked[place]!.row.memoryNo);
    },
    giveBack(place) {
      count(place, -1);
      roots.delete(ranked[place]!.row.memoryNo);
    },
  };
}

/**
 * Creates a function that tells whether the candidate at index `place` is a chunk of a document. If it must read, it
 * reads all candidates before the index `end` (above `place`) that were not read yet, by one SQL statement.
 */
function createChunkLook(store: Store, ranked: readonly Candidate[]): (place: number, end: number) => boolean {
  const chunks = new Set<number>();
  let read = 0;
  return (place, end) => {
    if (place >= read) {
      const next = ranked.slice(read, (read = end)).map(({ row }) => row.memoryNo);
      for (const [memoryNo, { chunk }] of readProvenance(store, next)) if (chunk !== null) chunks.add(memoryNo);
    }
    return chunks.has(ranked[place]!.row.memoryNo);
  };
}

/**
 * Returns the kind of a candidate. Knowledge is derived from another memory; an episode is a memory from which others
 * are derived. A memory that is both counts as knowledge, one that is neither as `other`.
 */
function kindOf({ row }: Candidate, { root, isSource }: Origin): 'knowledge' | 'episodes' | 'other' {
  if (root !== row.memoryNo) return 'knowledge';
  return isSource ? 'episodes' : 'other';
}

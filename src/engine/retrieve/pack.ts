import { documentsOf, type Origin } from '../store/derivations.ts';
import { readProvenance } from '../store/provenance.ts';
import type { Store } from '../store/open-store.ts';
import { textWeights, withinBytes } from '../store/text-sizes.ts';
import { estimateTokens } from '../text/tokens.ts';
import type { Memory, Outcome, Provenance } from '../types.ts';
import type { Candidate } from './candidate.ts';
import { createNearDuplicates } from './near-duplicates.ts';
import type { CompleteQuery } from './options.ts';
import { costsOf, MAX_RENDERED_CHARACTERS } from './prompt.ts';

/** A hit of a query: a candidate with its memory. */
export interface Packed {
  readonly candidate: Candidate;
  readonly memory: Memory;
  /** Ids of the near-duplicates that were left out because of this hit, best first; empty if there are none. */
  readonly similar: readonly string[];
}

/** The hits of a query, and the candidates that were left out. */
export interface Packing {
  /** The hits, best first; at most `k`. */
  readonly packed: readonly Packed[];
  /** Reason why each candidate that is not a hit was left out, by `memoryNo`. */
  readonly cut: ReadonlyMap<number, Outcome>;
  /**
   * Places of the hits in their documents, by `memoryNo`; undefined where they were not read, since `perDocument` is 0.
   */
  readonly provenance: ReadonlyMap<number, Provenance> | undefined;
  /** Whether candidates were left out because the hits together reached `MAX_HIT_BYTES` (6 MiB). */
  readonly isFull: boolean;
  /**
   * Token budget that the best match would need, if it did not fit the query's token budget, even if shorter matches
   * are hits; null if it fit, if there was no match, and without a token budget.
   */
  readonly bestNeeds: number | null;
}

/**
 * Greatest `k` for which `perDocument` (the limit of hits of one document) applies. A caller who wants more hits wants
 * all of them, even from one document.
 */
const DIVERSE_K = 10;
/** Greatest size of the texts, values and metadata of all hits together, in bytes. One text has up to 256 KiB. */
const MAX_HIT_BYTES = 6 * 1024 * 1024;
/** Greatest `k` for which the texts of all hits cannot exceed `MAX_HIT_BYTES`, whatever their length. */
const MANY_HITS = MAX_HIT_BYTES / (256 * 1024);
/**
 * Number of memories that may turn out too long for the token budget before the search for a shorter one ends, since a
 * text may have 256 KiB and reading it costs time.
 */
const TRIED_FURTHER = 30;
/**
 * Number of characters for each token of the budget, more than natural text has. If a text has more characters than
 * that for the whole budget, only its beginning is estimated at first.
 */
const CHARACTERS_PER_TOKEN = 6;

type ReadMemories = (memoryNos: readonly number[]) => ReadonlyMap<number, Memory>;

/**
 * Selects the best `k` candidates within the limits of the query: hits of one document, hits of one kind, the token
 * budget, and 6 MiB in all. Of near-duplicates, only the best is selected. A candidate that does not fit is skipped,
 * since a shorter one after it may fit. A document's root (the memory of the whole document) repeats the words of its
 * chunks; so a chunk that fits replaces the root, unless `perDocument` is 0.
 * @param ranked candidates, best first
 * @param read reads memories by `memoryNo`; a memory that was erased is missing in its result. It is called for at most
 *   `k` memories at a time, so that long texts are read only if they are needed
 */
export function pack(store: Store, ranked: readonly Candidate[], query: CompleteQuery, read: ReadMemories): Packing {
  const { k } = query;
  const packed: Packed[] = [];
  const cut = new Map<number, Outcome>();
  prefetchForFirst(store, ranked, query, read);
  const quotas = quotasOf(store, ranked, query);
  const budget = budgetOf(query);
  const roots = createRoots();
  const duplicates = createNearDuplicates(query.collapseSimilar);
  let memories: ReadonlyMap<number, Memory> = new Map();
  const provenance = new Map<number, Provenance>();
  let readUpTo = 0;
  const texts = createTexts(store, k);
  for (const [place, candidate] of ranked.entries()) {
    const { memoryNo } = candidate.row;
    const outcome =
      packed.length === k
        ? 'beyond_k'
        : (quotas.refusal(place) ?? (budget.isSpent() || texts.isFull() ? 'over_budget' : null));
    if (outcome !== null) {
      cut.set(memoryNo, outcome);
      continue;
    }
    if (place >= readUpTo) {
      readUpTo = Math.min(place + k, ranked.length);
      const wanted: number[] = [];
      for (let next = place; next < readUpTo; next += 1) {
        if (quotas.refusal(next) === null) wanted.push(ranked[next]!.row.memoryNo);
      }
      // Of many texts only those are read that can be among the hits.
      memories = read(texts.readable(wanted));
      const batch = ranked.slice(place, readUpTo).map(({ row }) => row.memoryNo);
      // With `perDocument` 0 any number of hits of one document is wanted, its root included.
      if (query.perDocument > 0)
        for (const [part, origin] of readProvenance(store, batch)) provenance.set(part, origin);
    }
    // This memory was not read with the others if its quota was full then, and a root has given way since.
    const memory = memories.get(memoryNo) ?? read([memoryNo]).get(memoryNo);
    if (memory === undefined) {
      cut.set(memoryNo, 'filtered');
      continue;
    }
    const origin = provenance.get(memoryNo);
    const isRepeatedRoot = origin !== undefined && roots.isRepeated(origin);
    if (isRepeatedRoot || (origin === undefined && duplicates.isRepeated(memory))) {
      cut.set(memoryNo, isRepeatedRoot ? 'document_limit' : 'near_duplicate');
      continue;
    }
    const root = origin && roots.repeatedBy(origin);
    if (root !== undefined) budget.giveBack(root.hit.memory);
    if (!texts.take(memoryNo, memory) || !budget.take(memory)) {
      if (root !== undefined) budget.take(root.hit.memory);
      cut.set(memoryNo, 'over_budget');
      continue;
    }
    if (root !== undefined) {
      packed.splice(packed.indexOf(root.hit), 1);
      quotas.giveBack(root.place);
      cut.set(root.hit.candidate.row.memoryNo, 'document_limit');
    }
    const hit: Packed = { candidate, memory, similar: duplicates.take(memory) };
    packed.push(hit);
    quotas.take(place);
    if (origin !== undefined) roots.take(origin, { hit, place });
  }
  return {
    ...{ packed, cut, isFull: texts.isFull(), bestNeeds: budget.bestNeeds() },
    provenance: query.perDocument > 0 ? provenance : undefined,
  };
}

/**
 * Prefetches, for a database behind a network, the memories and documents of the first `k` candidates, which are the
 * hits as a rule. They come in the round trip of the first SQL statement of `pack`.
 */
function prefetchForFirst(
  store: Store,
  ranked: readonly Candidate[],
  { k, perDocument }: CompleteQuery,
  read: ReadMemories,
) {
  const first = ranked.slice(0, k).map(({ row }) => row.memoryNo);
  store.ahead?.readSpeculatively(
    () => (k > MANY_HITS ? withinBytes(store, first, MAX_HIT_BYTES) : read(first)),
    () => perDocument > 0 && readProvenance(store, first),
  );
}

/**
 * Creates the limit on the bytes of all hits together: `MAX_HIT_BYTES` (6 MiB). With a `k` of at most 24, the texts
 * alone cannot exceed it, so only memories with a structured value are counted.
 */
function createTexts(store: Store, k: number) {
  const isMany = k > MANY_HITS;
  let left = MAX_HIT_BYTES;
  let taken = 0;
  return {
    /** Returns the first elements of `memoryNos` whose texts together fit into the bytes that are left. */
    readable: (memoryNos: readonly number[]) => (isMany ? withinBytes(store, memoryNos, left) : memoryNos),
    /**
     * Subtracts the bytes of a memory from those that are left. Returns false if too few are left; from then on, no
     * memory fits. The first memory fits in any case.
     */
    take(memoryNo: number, { content, value, metadata }: Memory): boolean {
      // Few texts without values fit together; most memories have little metadata, or none.
      const isWeighed = value !== null || (isMany && Object.keys(metadata).length > 0);
      if (!isMany && !isWeighed) return left >= 0;
      left -= (isWeighed ? textWeights(store, [memoryNo]).get(memoryNo) : undefined) ?? Buffer.byteLength(content);
      if (taken === 0) left = Math.max(0, left);
      if (left >= 0) taken += 1;
      return left >= 0;
    },
    isFull: () => left < 0,
  };
}

/**
 * A hit that is the root of a document (the memory of the whole document), with its index in the list of candidates.
 */
interface PackedRoot {
  readonly hit: Packed;
  readonly place: number;
}

/**
 * Creates a record of which documents have their root (the memory of the whole document) among the hits, and which have
 * a chunk among them and so need no root.
 */
function createRoots() {
  const rootOf = new Map<string, PackedRoot>();
  const withChunk = new Set<string>();
  return {
    /**
     * Tells whether a memory is the root of a document (the memory of the whole document) of which a chunk is already a
     * hit.
     */
    isRepeated: ({ chunk, documentId }: Provenance): boolean => chunk === null && withChunk.has(documentId),
    /**
     * Returns the hit that this chunk replaces: the root of its document. Returns undefined if the memory is no chunk
     * or its document's root is no hit.
     */
    repeatedBy: ({ chunk, documentId }: Provenance): PackedRoot | undefined =>
      chunk === null ? undefined : rootOf.get(documentId),
    take({ chunk, documentId }: Provenance, root: PackedRoot): void {
      if (chunk === null) rootOf.set(documentId, root);
      else {
        rootOf.delete(documentId);
        withChunk.add(documentId);
      }
    },
  };
}

/** Counts how many further hits each document and each kind may have. `place` is an index in the list of candidates. */
interface Quotas {
  /**
   * Returns the reason to leave out the candidate at this index; null if its document and its kind may have another
   * hit.
   */
  refusal(place: number): 'document_limit' | 'kind_limit' | null;
  /** Counts the candidate at this index as a hit. */
  take(place: number): void;
  /** Undoes `take` for a hit that is removed again. */
  giveBack(place: number): void;
}

/**
 * Least number of candidates whose documents and kinds are read by one SQL statement. The first `k` are usually enough,
 * and each memory costs 3 µs.
 */
const ORIGINS_AT_ONCE = 10;

function quotasOf(store: Store, ranked: readonly Candidate[], { k, perDocument, topK }: CompleteQuery): Quotas {
  const perRoot = k <= DIVERSE_K && perDocument > 0 ? perDocument : Infinity;
  if (perRoot === Infinity && topK === undefined) return { refusal: () => null, take: () => {}, giveBack: () => {} };
  const origins = new Map<number, Origin>();
  let learnt = 0;
  const originOf = (place: number) => {
    while (place >= learnt) {
      // Where documents crowd the list, each statement reads as many as all before it, so that they stay few.
      const count = Math.max(ORIGINS_AT_ONCE, k, learnt);
      const next = ranked.slice(learnt, (learnt += count)).map(({ row }) => row.memoryNo);
      for (const [memoryNo, origin] of documentsOf(store, next)) origins.set(memoryNo, origin);
    }
    const { memoryNo } = ranked[place]!.row;
    return origins.get(memoryNo) ?? { root: memoryNo, isSource: false, isConclusion: false };
  };
  const ofRoot = new Map<number, number>();
  const left = { knowledge: topK?.knowledge ?? Infinity, episodes: topK?.episodes ?? Infinity, other: Infinity };
  // A conclusion repeats nothing of its sources and must not crowd them out, so it counts as a document of its own.
  const documentAt = (place: number, { root, isConclusion }: Origin) =>
    isConclusion ? ranked[place]!.row.memoryNo : root;
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
      return (ofRoot.get(documentAt(place, origin)) ?? 0) >= perRoot ? 'document_limit' : null;
    },
    take: (place) => count(place, 1),
    giveBack: (place) => count(place, -1),
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

/**
 * What is left of the limit on the texts of the hits: in tokens or, for an answer as text without a token budget, in
 * characters.
 */
interface Budget {
  /**
   * Subtracts the size of a memory.
   * @returns false if the memory does not fit; then nothing is subtracted
   */
  take(memory: Memory): boolean;
  /** Adds the size of a memory again that `take` subtracted. */
  giveBack(memory: Memory): void;
  /** Whether no further memory needs to be tried, because nothing is left or too many memories did not fit. */
  isSpent(): boolean;
  /**
   * Returns the token budget that the first memory would need, if it did not fit before any other was taken; else null.
   */
  bestNeeds(): number | null;
}

function budgetOf({ tokenBudget, format = 'json' }: CompleteQuery): Budget {
  if (tokenBudget === undefined && format !== 'json') return textBudget();
  if (tokenBudget === undefined) {
    return { take: () => true, giveBack: () => {}, isSpent: () => false, bestNeeds: () => null };
  }
  const costs = costsOf(format);
  let left = tokenBudget - costs.fixed;
  let triesLeft = TRIED_FURTHER;
  let tooLarge: Memory | undefined;
  let hasTaken = false;
  return {
    take(memory) {
      const cost = isClearlyOver(memory.content, left) ? Infinity : costs.of(memory);
      if (cost > left) {
        triesLeft -= 1;
        if (!hasTaken) tooLarge ??= memory;
        return false;
      }
      hasTaken = true;
      left -= cost;
      return true;
    },
    giveBack: (memory) => void (left += costs.of(memory)),
    // The best match is looked at in any case, to know what it needs.
    isSpent: () => triesLeft <= 0 || (left <= 0 && (hasTaken || tooLarge !== undefined)),
    bestNeeds: () => (tooLarge === undefined ? null : Math.ceil(costs.fixed + costs.of(tooLarge))),
  };
}

/**
 * Creates the limit on an answer as text if the query has no token budget: `MAX_RENDERED_CHARACTERS` of titles and
 * texts.
 */
function textBudget(): Budget {
  let left = MAX_RENDERED_CHARACTERS;
  let triesLeft = TRIED_FURTHER;
  return {
    take({ title, content }) {
      const characters = title.length + content.length;
      if (characters > left) {
        triesLeft -= 1;
        return false;
      }
      left -= characters;
      return true;
    },
    giveBack: ({ title, content }) => void (left += title.length + content.length),
    isSpent: () => triesLeft <= 0,
    bestNeeds: () => null,
  };
}

/**
 * Tells whether the beginning of a long text already shows that the text exceeds `tokens`, since an estimate only grows
 * with the text. If false, the whole text must be estimated.
 */
function isClearlyOver(content: string, tokens: number): boolean {
  const enough = Math.ceil(CHARACTERS_PER_TOKEN * (tokens + 1));
  return content.length > enough && estimateTokens(content.slice(0, enough)) > tokens;
}

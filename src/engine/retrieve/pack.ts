import { readProvenance } from '../store/provenance.ts';
import type { Store } from '../store/open-store.ts';
import { weightOf } from '../store/memory-weight.ts';
import { estimateTokens } from '../text/tokens.ts';
import type { Memory, Outcome, Provenance } from '../types.ts';
import type { Candidate } from './candidate.ts';
import { createRepeatedHits } from './repeated-hits.ts';
import type { CompleteQuery } from './options.ts';
import { costsOf, MAX_RENDERED_CHARACTERS } from './prompt.ts';
import type { MemoryReader } from './memory-reader.ts';
import { quotasOf } from './quotas.ts';

/** A hit of a query: a candidate with its memory. */
export interface Packed {
  readonly candidate: Candidate;
  readonly memory: Memory;
  /** Ids of the near-duplicates that were left out because of this hit, best first; empty if there are none. */
  readonly similar: string[];
}

/** The hits of a query, and the candidates that were left out. */
export interface Packing {
  /** The hits, in the order of the candidates that `pack` got; at most `k`. */
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

/** Greatest size of all hits together, in bytes, as `weightOf` measures them. One memory has up to 2 MiB. */
const MAX_HIT_BYTES = 6 * 1024 * 1024;
/**
 * Greatest `k` for which memories are read before their sizes are known, which saves a round trip to the database.
 * Nearly always all of them fit; at worst, if they were imported, they have 48 MiB, most of it read in vain.
 */
const MANY_HITS = 24;
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

/**
 * Selects the best `k` candidates within the limits of the query: hits of one document, hits of one kind, the token
 * budget, and 6 MiB in all. Of near-duplicates, only the best is selected; a part of a document counts as one only if
 * `perDocument` is 0. A candidate that does not fit is skipped, since a shorter one after it may fit. A document's root
 * (the memory of the whole document) repeats the words of its chunks; so a chunk that fits replaces the root, unless
 * `perDocument` is 0.
 * @param ranked candidates, in the order in which they are to be hits: best first, but for `sharePlaces`
 * @param reader reads memories; it is called for at most `k` memories at a time, so that long texts are read only if
 *   they are needed
 */
export function pack(store: Store, ranked: readonly Candidate[], query: CompleteQuery, reader: MemoryReader): Packing {
  const { k } = query;
  const packed: Packed[] = [];
  const cut = new Map<number, Outcome>();
  prefetchForFirst(store, ranked, query, reader);
  const quotas = quotasOf(store, ranked, query);
  const budget = budgetOf(query);
  const roots = createRoots();
  const duplicates = createRepeatedHits(query.collapseSimilar);
  let memories: ReadonlyMap<number, Memory> = new Map();
  const provenance = new Map<number, Provenance>();
  let readUpTo = 0;
  const texts = createTexts(reader, k);
  for (const [place, candidate] of ranked.entries()) {
    const { memoryNo } = candidate.row;
    const isSpent = budget.isSpent() || texts.isFull();
    const outcome = packed.length === k ? 'beyond_k' : (quotas.refusal(place) ?? (isSpent ? 'over_budget' : null));
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
      memories = reader.read(texts.readable(wanted));
      const batch = ranked.slice(place, readUpTo).map(({ row }) => row.memoryNo);
      // With `perDocument` 0 any number of hits of one document is wanted, its root included.
      if (query.perDocument > 0)
        for (const [part, origin] of readProvenance(store, batch)) provenance.set(part, origin);
    }
    // This memory was not read with the others if its quota was full then, and a root has given way since.
    const memory = memories.get(memoryNo) ?? reader.read([memoryNo]).get(memoryNo);
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
    if (!takeRoom({ texts, budget }, memory, { memoryNo, instead: root?.hit })) {
      cut.set(memoryNo, 'over_budget');
      continue;
    }
    if (root !== undefined) {
      packed.splice(packed.indexOf(root.hit), 1);
      quotas.giveBack(root.place);
      cut.set(root.hit.candidate.row.memoryNo, 'document_limit');
    }
    const hit: Packed = { candidate, memory, similar: duplicates.take(memory, root?.hit.similar) };
    packed.push(hit);
    quotas.take(place, origin?.chunk === null);
    if (origin !== undefined) roots.take(origin, { hit, place });
  }
  return {
    ...{ packed, cut, isFull: texts.isFull(), bestNeeds: budget.bestNeeds() },
    provenance: query.perDocument > 0 ? provenance : undefined,
  };
}

/**
 * Prefetches, for a database behind a network, the memories (only their sizes if `k` is above `MANY_HITS`) and
 * documents of the first `k` candidates, which are the hits as a rule. They come in the round trip of the first SQL
 * statement of `pack`.
 */
function prefetchForFirst(
  store: Store,
  ranked: readonly Candidate[],
  { k, perDocument }: CompleteQuery,
  reader: MemoryReader,
) {
  const first = ranked.slice(0, k).map(({ row }) => row.memoryNo);
  store.ahead?.readSpeculatively(
    () => (k > MANY_HITS ? reader.within(first, MAX_HIT_BYTES) : reader.read(first)),
    () => perDocument > 0 && readProvenance(store, first),
  );
}

/**
 * Takes room for a memory, in bytes and in the token budget.
 * @param options.instead the hit that is removed if the memory fits, so that its room counts as free
 * @returns false if the memory does not fit. The room is then as before, unless the bytes were too few: then no further
 *   memory fits
 */
function takeRoom(
  { texts, budget }: { readonly texts: ReturnType<typeof createTexts>; readonly budget: Budget },
  memory: Memory,
  { memoryNo, instead }: { readonly memoryNo: number; readonly instead: Packed | undefined },
): boolean {
  const given = instead === undefined ? 0 : texts.giveBack(instead.candidate.row.memoryNo);
  if (instead !== undefined) budget.giveBack(instead.memory);
  if (texts.take(memoryNo, memory)) {
    if (budget.take(memory)) return true;
    texts.giveBack(memoryNo);
  }
  if (instead !== undefined) {
    budget.take(instead.memory);
    texts.takeAgain(instead.candidate.row.memoryNo, given);
  }
  return false;
}

/** Creates the limit on the bytes of all hits together: `MAX_HIT_BYTES` (6 MiB). */
function createTexts(reader: MemoryReader, k: number) {
  const isMany = k > MANY_HITS;
  let left = MAX_HIT_BYTES;
  /** Bytes that were subtracted, by `memoryNo`. */
  const taken = new Map<number, number>();
  return {
    /**
     * Returns as many of the first elements of `memoryNos` as have texts that fit together into the bytes that are
     * left; all of them for a `k` of at most `MANY_HITS` (24).
     */
    readable: (memoryNos: readonly number[]) => (isMany ? reader.within(memoryNos, left) : memoryNos),
    /**
     * Subtracts the bytes of a memory from those that are left. Returns false if too few are left; from then on, no
     * memory fits. The first memory fits in any case.
     */
    take(memoryNo: number, memory: Memory): boolean {
      const size = weightOf(memory);
      const bytes = taken.size === 0 ? Math.min(left, size) : size;
      left -= bytes;
      if (left >= 0) taken.set(memoryNo, bytes);
      return left >= 0;
    },
    /** Adds the bytes again that `take` subtracted for a memory that is no hit any more, and returns them. */
    giveBack(memoryNo: number): number {
      const bytes = taken.get(memoryNo) ?? 0;
      taken.delete(memoryNo);
      left += bytes;
      return bytes;
    },
    /** Undoes `giveBack`, which returned `bytes`. */
    takeAgain(memoryNo: number, bytes: number): void {
      if (bytes > 0) taken.set(memoryNo, bytes);
      left -= bytes;
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
   * Returns the token budget that the first memory needs, if it did not fit although nothing was taken yet; else null.
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

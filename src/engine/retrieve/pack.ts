import { documentsOf, type Origin } from '../store/derivations.ts';
import { withinBytes } from '../store/memories.ts';
import { readProvenance } from '../store/provenance.ts';
import type { Store } from '../store/open-store.ts';
import { estimateTokens } from '../text/tokens.ts';
import type { Memory, Outcome, Provenance } from '../types.ts';
import type { Candidate } from './candidate.ts';
import { createNearDuplicates } from './near-duplicates.ts';
import type { CompleteQuery } from './options.ts';
import { costsOf, MAX_RENDERED_CHARACTERS } from './prompt.ts';

/** A hit: a candidate with its memory. */
export interface Packed {
  readonly candidate: Candidate;
  readonly memory: Memory;
  /** Ids of the near-duplicates that the hit stands for, best first. */
  readonly similar: readonly string[];
}

/** The hits of a query, and the candidates that were left out. */
export interface Packing {
  /** The hits, best first, at most `k`. */
  readonly packed: readonly Packed[];
  /** Reason why each candidate that is no hit was left out, by memory number. */
  readonly cut: ReadonlyMap<number, Outcome>;
  /** Whether candidates were left out because the texts of the hits have `MAX_HIT_BYTES`. */
  readonly isFull: boolean;
  /** The token budget that the best match needs, if it does not fit the query's; null otherwise. */
  readonly bestNeeds: number | null;
}

/**
 * The greatest `k` for which `perDocument` applies. A caller who wants more hits wants all there are, from one
 * document, too.
 */
const DIVERSE_K = 10;
/** Most bytes of text that the hits of a query have together; a single text may have 256 KiB. */
const MAX_HIT_BYTES = 6 * 1024 * 1024;
/** Least `k` with which the texts of the hits may exceed `MAX_HIT_BYTES`. */
const MANY_HITS = MAX_HIT_BYTES / (256 * 1024);
/**
 * Memories that may fail to fit the budget before the search for a shorter one ends. A text may have 256 KiB, so only
 * few texts that do not fit are read.
 */
const TRIED_FURTHER = 30;
/**
 * Characters of a token, more than natural text has. Of a text longer than the budget by this measure, the beginning is
 * estimated first.
 */
const CHARACTERS_PER_TOKEN = 6;

/**
 * Selects the best `k` candidates that fit the bounds of the query: hits of one document, hits of a kind, the token
 * budget. Of memories that say nearly the same, the best stands for all. A candidate that does not fit is skipped; a
 * shorter one behind it may fit. The root of a document repeats the
 * words of its chunks. So it gives way to a chunk that fits, and stands for the document where no chunk does; with
 * `perDocument` 0 both may be hits.
 * @param ranked best first
 * @param read reads memories by number; called for at most `k` at a time, so that long texts are read only where they
 *   are wanted
 */
export function pack(
  store: Store,
  ranked: readonly Candidate[],
  query: CompleteQuery,
  read: (memoryNos: readonly number[]) => ReadonlyMap<number, Memory>,
): Packing {
  const { k } = query;
  const packed: Packed[] = [];
  const cut = new Map<number, Outcome>();
  const quotas = quotasOf(store, ranked, query);
  const budget = budgetOf(query);
  const roots = createRoots();
  const duplicates = createNearDuplicates(query.collapseSimilar);
  let memories: ReadonlyMap<number, Memory> = new Map();
  let provenance: ReadonlyMap<number, Provenance> = new Map();
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
      provenance = query.perDocument === 0 ? provenance : readProvenance(store, batch);
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
    if (!texts.take(memory) || !budget.take(memory)) {
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
  return { packed, cut, isFull: texts.isFull(), bestNeeds: budget.bestNeeds() };
}

/** Bounds the bytes that the texts of all hits have together. */
function createTexts(store: Store, k: number) {
  let left = k > MANY_HITS ? MAX_HIT_BYTES : Infinity;
  return {
    /** The first of these memories, as many as may fit. */
    readable: (memoryNos: readonly number[]) => (left === Infinity ? memoryNos : withinBytes(store, memoryNos, left)),
    /** Takes the room of a text; false if it does not fit, and then no other does. */
    take({ content }: Memory): boolean {
      if (left !== Infinity) left -= Buffer.byteLength(content);
      return left >= 0;
    },
    isFull: () => left < 0,
  };
}

/** The root of a document that is a hit, with its place among the candidates, from 0. */
interface PackedRoot {
  readonly hit: Packed;
  readonly place: number;
}

/**
 * Keeps track of the documents whose root is a hit, and of the documents that need no root, since one of their chunks
 * is a hit.
 */
function createRoots() {
  const rootOf = new Map<string, PackedRoot>();
  const withChunk = new Set<string>();
  return {
    /** Whether a memory is the root of a document, and a chunk of that document is a hit. */
    isRepeated: ({ chunk, documentId }: Provenance): boolean => chunk === null && withChunk.has(documentId),
    /** The root among the hits that this chunk of its document replaces; undefined where there is none. */
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
 * The number of hits that there may still be of each document and of each kind. A place is an index in the list of
 * candidates.
 */
interface Quotas {
  /** The reason to leave out the candidate at this place; null while there is room for it. */
  refusal(place: number): 'document_limit' | 'kind_limit' | null;
  /** Counts the candidate at this place as a hit. */
  take(place: number): void;
  /** Frees the room of a hit that was taken. */
  giveBack(place: number): void;
}

/**
 * Least number of candidates whose origins are read by one statement. Mostly the first `k` are all that is needed, and
 * each memory costs 3 µs.
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
 * The kind of a candidate. Knowledge is derived from another memory; an episode is a memory from which others are
 * derived. A memory that is both counts as knowledge.
 */
function kindOf({ row }: Candidate, { root, isSource }: Origin): 'knowledge' | 'episodes' | 'other' {
  if (root !== row.memoryNo) return 'knowledge';
  return isSource ? 'episodes' : 'other';
}

/** The room for the texts of the hits. */
interface Budget {
  /**
   * Takes the room of a memory.
   * @returns false, and takes nothing, where the memory does not fit
   */
  take(memory: Memory): boolean;
  /** Frees the room of a memory that was taken. */
  giveBack(memory: Memory): void;
  /** Whether no further memory is worth a try. */
  isSpent(): boolean;
  /** The token budget that a memory needs which did not fit before any other was taken; null if there is none. */
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

/** The budget for an answer as text where the query has no token budget. */
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

/** Whether the beginning of a long text shows that the text cannot fit: an estimate only grows with the text. */
function isClearlyOver(content: string, tokens: number): boolean {
  const enough = Math.ceil(CHARACTERS_PER_TOKEN * (tokens + 1));
  return content.length > enough && estimateTokens(content.slice(0, enough)) > tokens;
}

import { documentsOf, type Origin } from '../store/derivations.ts';
import { readProvenance } from '../store/documents.ts';
import type { Store } from '../store/open-store.ts';
import { estimateTokens } from '../text/tokens.ts';
import type { Memory, Outcome, Provenance } from '../types.ts';
import type { Candidate } from './candidate.ts';
import type { CompleteQuery } from './options.ts';
import { costsOf, RENDERED_CHARACTERS_MOST } from './prompt.ts';

export interface Packed {
  readonly candidate: Candidate;
  readonly memory: Memory;
}

export interface Packing {
  /** Best first, at most `k`. */
  readonly packed: readonly Packed[];
  /** Why the others were left out, by number. */
  readonly cut: ReadonlyMap<number, Outcome>;
}

/** With more hits than this a caller wants all there is, from one document too. */
export const DIVERSE_K = 10;
/** Memories that are read after the first one that does not fit: a text may have 256 KiB, and few are read in vain. */
const TRIED_FURTHER = 30;
/** More than natural text has. */
const CHARACTERS_PER_TOKEN = 6;

/**
 * The best `k` that fit the bounds of the query: few of one document, few of a kind, the token budget. One that does not fit is
 * skipped, not the end: a shorter one behind it may. The root of a document repeats the words of its chunks: it gives way to one that
 * fits, and stands for the document where none does.
 * @param ranked best first
 * @param read memories by number; asked for `k` at a time, so that long texts are read only where they are wanted
 */
export function pack(
  store: Store,
  ranked: readonly Candidate[],
  query: CompleteQuery,
  read: (seqs: readonly number[]) => ReadonlyMap<number, Memory>,
): Packing {
  const { k } = query;
  const packed: Packed[] = [];
  const cut = new Map<number, Outcome>();
  const quotas = quotasOf(store, ranked, query);
  const budget = budgetOf(query);
  const roots = createRoots();
  let memories: ReadonlyMap<number, Memory> = new Map();
  let provenance: ReadonlyMap<number, Provenance> = new Map();
  let readUpTo = 0;
  for (const [place, candidate] of ranked.entries()) {
    const { seq } = candidate.row;
    const outcome =
      packed.length === k ? 'beyond_k' : (quotas.refusal(place) ?? (budget.isSpent() ? 'over_budget' : null));
    if (outcome !== null) {
      cut.set(seq, outcome);
      continue;
    }
    if (place >= readUpTo) {
      readUpTo = Math.min(place + k, ranked.length);
      const wanted: number[] = [];
      for (let next = place; next < readUpTo; next += 1) {
        if (quotas.refusal(next) === null) wanted.push(ranked[next]!.row.seq);
      }
      memories = read(wanted);
      const batch = ranked.slice(place, readUpTo).map(({ row }) => row.seq);
      // Who asks for any number of hits of one document gets its root as well.
      provenance = query.perDocument === 0 ? provenance : readProvenance(store, batch);
    }
    // A root that gave way made room for one that was not wanted when the others were read.
    const memory = memories.get(seq) ?? read([seq]).get(seq);
    if (memory === undefined) {
      cut.set(seq, 'filtered');
      continue;
    }
    const origin = provenance.get(seq);
    if (origin !== undefined && roots.isRepeated(origin)) {
      cut.set(seq, 'document_limit');
      continue;
    }
    const root = origin && roots.repeatedBy(origin);
    if (root !== undefined) budget.giveBack(root.hit.memory);
    if (!budget.take(memory)) {
      if (root !== undefined) budget.take(root.hit.memory);
      cut.set(seq, 'over_budget');
      continue;
    }
    if (root !== undefined) {
      packed.splice(packed.indexOf(root.hit), 1);
      quotas.giveBack(root.place);
      cut.set(root.hit.candidate.row.seq, 'document_limit');
    }
    const hit = { candidate, memory };
    packed.push(hit);
    quotas.take(place);
    if (origin !== undefined) roots.take(origin, { hit, place });
  }
  return { packed, cut };
}

interface PackedRoot {
  readonly hit: Packed;
  readonly place: number;
}

/** Roots among the hits, and the documents that need none. */
function createRoots() {
  const rootOf = new Map<string, PackedRoot>();
  const withChunk = new Set<string>();
  return {
    isRepeated: ({ chunk, documentId }: Provenance): boolean => chunk === null && withChunk.has(documentId),
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

interface Quotas {
  /** null while there is room for the candidate at this place. */
  refusal(place: number): 'document_limit' | 'kind_limit' | null;
  take(place: number): void;
  giveBack(place: number): void;
}

/** A statement for so many; most queries need no more, and each memory costs 2 microseconds. */
const ORIGINS_AT_ONCE = 40;

/** How many hits there may still be of each document and of each kind. */
function quotasOf(store: Store, ranked: readonly Candidate[], { k, perDocument, topK }: CompleteQuery): Quotas {
  const perRoot = k <= DIVERSE_K && perDocument > 0 ? perDocument : Infinity;
  if (perRoot === Infinity && topK === undefined) return { refusal: () => null, take: () => {}, giveBack: () => {} };
  const origins = new Map<number, Origin>();
  let learnt = 0;
  const originOf = (place: number) => {
    while (place >= learnt) {
      const next = ranked.slice(learnt, (learnt += ORIGINS_AT_ONCE)).map(({ row }) => row.seq);
      for (const [seq, origin] of documentsOf(store, next)) origins.set(seq, origin);
    }
    const { seq } = ranked[place]!.row;
    return origins.get(seq) ?? { root: seq, isSource: false, isConclusion: false };
  };
  const ofRoot = new Map<number, number>();
  const left = { knowledge: topK?.knowledge ?? Infinity, episodes: topK?.episodes ?? Infinity, other: Infinity };
  // Conclusions repeat nothing of their sources, and must not crowd them out.
  const documentAt = (place: number, { root, isConclusion }: Origin) => (isConclusion ? ranked[place]!.row.seq : root);
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

/** Knowledge is derived from something, an episode is what others are derived from; what is both counts as knowledge. */
function kindOf({ row }: Candidate, { root, isSource }: Origin): 'knowledge' | 'episodes' | 'other' {
  if (root !== row.seq) return 'knowledge';
  return isSource ? 'episodes' : 'other';
}

interface Budget {
  /** @returns false, and takes nothing, where it does not fit */
  take(memory: Memory): boolean;
  /** For what was taken. */
  giveBack(memory: Memory): void;
  isSpent(): boolean;
}

function budgetOf({ tokenBudget, format = 'json' }: CompleteQuery): Budget {
  if (tokenBudget === undefined && format !== 'json') return textBudget();
  if (tokenBudget === undefined) return { take: () => true, giveBack: () => {}, isSpent: () => false };
  const costs = costsOf(format);
  let left = tokenBudget - costs.fixed;
  let triesLeft = TRIED_FURTHER;
  return {
    take(memory) {
      const cost = isClearlyOver(memory.content, left) ? Infinity : costs.of(memory);
      if (cost > left) {
        triesLeft -= 1;
        return false;
      }
      left -= cost;
      return true;
    },
    giveBack: (memory) => void (left += costs.of(memory)),
    isSpent: () => left <= 0 || triesLeft <= 0,
  };
}

/** Where nothing else bounds a text made of the hits. */
function textBudget(): Budget {
  let left = RENDERED_CHARACTERS_MOST;
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
  };
}

/** Looks at no more of a long text than tells that it cannot fit: an estimate only grows with the text. */
function isClearlyOver(content: string, tokens: number): boolean {
  const enough = Math.ceil(CHARACTERS_PER_TOKEN * (tokens + 1));
  return content.length > enough && estimateTokens(content.slice(0, enough)) > tokens;
}

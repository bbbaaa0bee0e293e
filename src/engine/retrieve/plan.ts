import { classify } from '../sectors/classify.ts';
import type { CompiledFilter } from '../store/filter.ts';
import { compileFilter } from '../store/filter.ts';
import type { Store } from '../store/open-store.ts';
import { createTextReader, findUsers, isNarrowing, listPassing, type TextReader } from '../store/search.ts';
import { identifiersAsWritten, queryTerms } from '../text/index-text.ts';
import { normalise } from '../text/words.ts';
import type { MemoryFilter, MemoryQuery, MemoryStatus, Sector } from '../types.ts';
import { memoryCount, raritiesOf } from './term-frequencies.ts';
import { createQueryMatcher, type QueryMatcher } from './text-match.ts';

/** One thing to look for in the text: a word, an identifier or a phrase. */
export interface Term {
  /** As it is shown in explanations, as a person would write it; a word and an identifier may be shown alike. */
  readonly text: string;
  /** As it is looked for. */
  readonly words: string;
}

/**
 * Where to look. In a `narrow` scope every memory that passes the filter is known by number and is looked at: the answer is
 * exact, but for words too common to be scored. In a `wide` one, rare words and the vector index find the candidates.
 */
export type Scope =
  | {
      readonly kind: 'narrow';
      readonly seqs: readonly number[];
      /** Whose all of them are; undefined where they may be several users'. */
      readonly userNo: number | undefined;
    }
  | {
      readonly kind: 'wide';
      /** The one user asked about; undefined for several, for all, or for one who has everything. */
      readonly userNo: number | undefined;
      /** Memories of the file for each one of the scope, at least 1; searches that cannot see the filter reach so much further. */
      readonly dilution: number;
    };

export interface QueryPlan {
  /** As it was asked. */
  readonly query: string;
  readonly terms: readonly Term[];
  /** What may be a candidate. */
  readonly filter: CompiledFilter;
  /** What may be returned: superseded memories lead to the live end of their chain. The same as `filter` where they stand for themselves. */
  readonly liveFilter: CompiledFilter;
  readonly scope: Scope;
  /** How many memories the file holds. */
  readonly memories: number;
  /** Sectors that are searched by vectors one by one; null for all at once. */
  readonly denseSectors: readonly Sector[] | null;
  /** The query as texts are compared with it, its words weighed by the snapshot that it was planned on; made when first asked for. */
  matcher(): QueryMatcher;
  /** Of the same snapshot. */
  readonly texts: TextReader;
}

/**
 * An exact scan misses nothing but costs 1.4 µs for each vector of the scope. So a scope is narrow while that is little beside the rest of
 * a query: up to the first figure in a small file, to its share of a larger one, and never beyond the second.
 */
const NARROW_LEAST = 400;
export const NARROW_SCOPE = 2_000;
const NARROW_SHARE = 1 / 16;

export function planQuery(store: Store, query: MemoryQuery, now: number): QueryPlan {
  const { filter, liveFilter } = filtersOf(query, now);
  const memories = memoryCount(store);
  const scope = scopeOf(store, query.filter, filter, memories);
  const denseSectors = query.denseSectors === 'candidate' ? candidateSectors(query.query) : null;
  let known: QueryMatcher | undefined;
  const matcher = () => (known ??= createQueryMatcher(query.query, (words) => raritiesOf(store, words)));
  const texts = createTextReader(store);
  const terms = termsOf(query.query);
  return { query: query.query, terms, filter, liveFilter, scope, memories, denseSectors, matcher, texts };
}

const DEEP: readonly MemoryStatus[] = ['active', 'superseded', 'contradicted', 'archived'];

function filtersOf({ filter, deepRecall, asOf }: MemoryQuery, now: number): Pick<QueryPlan, 'filter' | 'liveFilter'> {
  if (filter.statuses === undefined && !deepRecall && asOf === undefined) {
    return {
      filter: compileFilter(filter, now, { statuses: ['active', 'superseded'] }),
      liveFilter: compileFilter(filter, now, { orStillHolds: true }),
    };
  }
  // Looking back, validity says what stood then.
  const statuses: readonly MemoryStatus[] = deepRecall ? DEEP : asOf ? ['active', 'superseded'] : ['active'];
  const same = compileFilter(filter, now, { statuses, asOf });
  return { filter: same, liveFilter: same };
}

export function describePlan({ scope, terms, denseSectors }: QueryPlan): string {
  const where =
    scope.kind === 'narrow' ? `exact over ${scope.seqs.length}` : `index, dilution ${scope.dilution.toFixed(1)}`;
  return `${terms.length} terms; ${where}; ${denseSectors === null ? 'all sectors' : denseSectors.join(', ')}`;
}

/** How many memories are asked, about. */
export function scopeSize({ scope, memories }: QueryPlan): number {
  return scope.kind === 'narrow' ? scope.seqs.length : memories / scope.dilution;
}

/** A question that leaves open what kind of memory answers it is asked of all: a wrong guess would hide what it should find. */
const SURE_OF_SECTOR = 0.5;

function candidateSectors(query: string): readonly Sector[] | null {
  const { primary, additional, confidence } = classify(query);
  return confidence < SURE_OF_SECTOR ? null : [primary, ...additional];
}

function termsOf(query: string): Term[] {
  const { phrases, words, identifiers } = queryTerms(query);
  const texts = [...phrases.map((phrase) => phrase.join(' ')), ...words, ...identifiers];
  const written = identifiers.length === 0 ? undefined : identifiersAsWritten(query);
  const shown = (text: string) => {
    const identifier = written?.get(text);
    if (identifier === undefined) return text;
    const word = normalise(identifier);
    return words.includes(word) ? word : identifier;
  };
  return [...new Set(texts)].map((words) => ({ text: shown(words), words }));
}

function scopeOf(store: Store, filter: MemoryFilter, compiled: CompiledFilter, memories: number): Scope {
  const users = filter.userIds === undefined ? undefined : findUsers(store, filter.userIds);
  const only = users?.length === 1 ? users[0] : undefined;
  const counted = users === undefined ? memories : users.reduce((sum, user) => sum + user.memories, 0);
  const narrow = Math.min(NARROW_SCOPE, Math.max(NARROW_LEAST, Math.floor(NARROW_SHARE * memories)));
  // Listing is worth its price where it may end early: a small user, or a filter that may leave little.
  if (counted <= narrow || isNarrowing(filter)) {
    const seqs = listPassing(store, compiled, narrow + 1);
    if (seqs.length <= narrow) return { kind: 'narrow', seqs, userNo: only?.userNo };
  }
  // A user who has everything needs no filter, which costs the index a fifth.
  const userNo = counted < memories ? only?.userNo : undefined;
  return { kind: 'wide', userNo, dilution: Math.max(1, memories / Math.max(1, counted)) };
}

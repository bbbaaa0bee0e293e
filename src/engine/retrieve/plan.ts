import type { CompiledFilter } from '../store/filter.ts';
import { compileFilter } from '../store/filter.ts';
import type { Store } from '../store/open-store.ts';
import { findUsers, isNarrowing, listPassing } from '../store/search.ts';
import { ftsString, queryTerms } from '../text/index-text.ts';
import type { MemoryFilter, MemoryQuery } from '../types.ts';
import { memoryCount } from './term-frequencies.ts';

/** One thing to look for in the text: a word, an identifier or a phrase. */
export interface Term {
  /** As it is shown in explanations. */
  readonly text: string;
  /** As FTS5 takes it: quoted, so that nothing a caller types is syntax. */
  readonly match: string;
}

/**
 * Where to look. In a `narrow` scope every memory that passes the filter is known by number and is looked at: the answer is
 * exact, but for words too common to be scored. In a `wide` one, rare words and the vector index find the candidates.
 */
export type Scope =
  | { readonly kind: 'narrow'; readonly seqs: readonly number[] }
  | {
      readonly kind: 'wide';
      /** The one user asked about; undefined for several, for all, or for one who has everything. */
      readonly userNo: number | undefined;
      /** Memories of the file for each one of the scope, at least 1; searches that cannot see the filter reach so much further. */
      readonly dilution: number;
    };

export interface QueryPlan {
  readonly terms: readonly Term[];
  readonly filter: CompiledFilter;
  readonly scope: Scope;
  /** How many memories the file holds. */
  readonly memories: number;
}

/** Up to here an exact scan of int8 vectors (2 µs each) is no slower than the index and misses nothing. */
export const NARROW_SCOPE = 2_000;

export function planQuery(store: Store, query: MemoryQuery, now: number): QueryPlan {
  const filter = compileFilter(query.filter, now);
  const memories = memoryCount(store);
  return { terms: termsOf(query.query), filter, scope: scopeOf(store, query.filter, filter, memories), memories };
}

export function describePlan({ scope, terms }: QueryPlan): string {
  const where =
    scope.kind === 'narrow' ? `exact over ${scope.seqs.length}` : `index, dilution ${scope.dilution.toFixed(1)}`;
  return `${terms.length} terms; ${where}`;
}

function termsOf(query: string): Term[] {
  const { phrases, words, identifiers } = queryTerms(query);
  const texts = [...phrases.map((phrase) => phrase.join(' ')), ...words, ...identifiers];
  return [...new Set(texts)].map((text) => ({ text, match: ftsString(text) }));
}

function scopeOf(store: Store, filter: MemoryFilter, compiled: CompiledFilter, memories: number): Scope {
  const users = filter.userIds === undefined ? undefined : findUsers(store, filter.userIds);
  const counted = users === undefined ? memories : users.reduce((sum, user) => sum + user.memories, 0);
  // Listing is worth its price where it may end early: a small user, or a filter that may leave little.
  if (counted <= NARROW_SCOPE || isNarrowing(filter)) {
    const seqs = listPassing(store, compiled, NARROW_SCOPE + 1);
    if (seqs.length <= NARROW_SCOPE) return { kind: 'narrow', seqs };
  }
  // A user who has everything needs no filter, which costs the index a fifth.
  const userNo = users?.length === 1 && counted < memories ? users[0]?.userNo : undefined;
  return { kind: 'wide', userNo, dilution: Math.max(1, memories / Math.max(1, counted)) };
}

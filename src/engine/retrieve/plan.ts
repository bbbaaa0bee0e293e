import { classify } from '../sectors/classify.ts';
import { type CompiledFilter, compileFilter } from '../store/filter.ts';
import type { Store } from '../store/open-store.ts';
import { createTextReader, type TextReader } from '../store/own-texts.ts';
import { findUsers } from '../store/memory-counts.ts';
import { isNarrowing, listPassingWithin } from '../store/passing-memories.ts';
import { createRowReader, type RowReader } from '../store/ranking-rows.ts';
import { ROW_BYTES, spendWork, workLeft } from '../store/work-budget.ts';
import { identifiersAsWritten } from '../text/index-text.ts';
import { type QueryText, readQueryText } from '../text/query-text.ts';
import { normalise } from '../text/words.ts';
import type { MemoryFilter, MemoryQuery, MemoryStatus, Sector } from '../types.ts';
import { memoryCount, raritiesOf } from './term-frequencies.ts';
import { createQueryMatcher, type QueryMatcher } from './text-match.ts';

/** A term of a query that is searched for in texts: a word, an identifier, a phrase, or an irregular form of a word. */
export interface Term {
  /** The term as a person would write it, for explanations. A word and an identifier may have equal `text`. */
  readonly text: string;
  /** The term as it is written in the word index; the words of a phrase are joined by blanks. */
  readonly words: string;
  /**
   * For an irregular form of a word: `words` of the term of that word. `text` is then the word, not the form. Left out
   * for any other term.
   */
  readonly formOf?: string;
}

/**
 * The memories that are searched. In a `narrow` scope all memories that pass the filter are listed and each is
 * compared, so the answer is exact. In a `wide` scope rare words and the vector index choose the candidates.
 */
type Scope =
  | {
      readonly kind: 'narrow';
      /** `memoryNo` of every memory that passes the filter. */
      readonly memoryNos: readonly number[];
      /**
       * The user who owns all of `memoryNos`; undefined unless exactly one of the users that the query names has
       * memories.
       */
      readonly userNo: number | undefined;
    }
  | {
      readonly kind: 'wide';
      /**
       * The user who owns all memories that pass the filter; undefined unless exactly one of the users that the query
       * names has memories, and undefined if this user owns all memories of the file.
       */
      readonly userNo: number | undefined;
      /**
       * Number of memories in the file divided by the number of memories of the query's users, at least 1; other
       * conditions of the filter do not count. A search that ignores the filter must rank more memories by this factor.
       */
      readonly dilution: number;
    };

/** The plan of a query, which all stages of the query use. */
export interface QueryPlan {
  /** The text of the query, split into words, phrases, identifiers and sentences. */
  readonly query: QueryText;
  /** The phrases, words and identifiers of the query, each once; each word is followed by its irregular forms. */
  readonly terms: readonly Term[];
  /** Conditions that a candidate must meet. A memory may be superseded, unless the query names other statuses. */
  readonly filter: CompiledFilter;
  /**
   * Conditions that a returned memory must meet. A superseded memory fails them, unless it still holds. The stage
   * `resolve` replaces one that fails by a successor that meets them, or leaves it out if none does. This is the same
   * object as `filter` if superseded memories are not replaced: with `deepRecall`, with `asOf`, and if the query names
   * statuses.
   */
  readonly liveFilter: CompiledFilter;
  readonly scope: Scope;
  /** Number of memories in the file. */
  readonly memories: number;
  /** Sectors that the vector search searches one by one; null if it searches all at once. */
  readonly denseSectors: readonly Sector[] | null;
  /**
   * Returns the matcher that compares texts with the query: the same matcher at every call. The first call looks up how
   * rare the words are in the file, so it must be made inside the read transaction that made the plan.
   */
  matcher(): QueryMatcher;
  /** Reads texts by `memoryNo`. It may be called only inside the read transaction that made the plan. */
  readonly texts: TextReader;
  /**
   * Reads the rows that ranking needs, by `memoryNo`, inside a read transaction. In another one than that which made
   * the plan, it reads them anew.
   */
  readonly rows: RowReader;
}

/**
 * A scope (the memories that a query searches) of up to this number of memories is narrow (`Scope`) even in a small
 * file, if they can be listed within the work budget. If users are the filter's only condition, or it has none, the
 * memories that are archived or superseded count, too.
 */
const MIN_NARROW = 400;
/**
 * Greatest number of memories in a narrow scope (`Scope`). An exact scan misses nothing, but costs 1.4 µs for each
 * vector of the scope, which is little compared with the whole query up to this size.
 */
export const NARROW_SCOPE = 2_000;
/**
 * A scope counts as narrow (`Scope`) up to this share of the file's memories, but at least up to `MIN_NARROW` (400) and
 * at most up to `NARROW_SCOPE` (2,000) memories.
 */
const NARROW_SHARE = 1 / 16;

/**
 * Share of what is left of the query's work budget that may be spent on listing the memories of a scope, once for the
 * rows that are looked at and once for what their filter parses. If the list is not complete by then, the scope is
 * searched as a wide one.
 */
const LISTING_SHARE = 0.5;

/**
 * Plans a query: splits its text, compiles its filter, and decides between an exact scan of the scope and a search with
 * the indexes. It must be called inside a read transaction; the plan is valid for its snapshot.
 * @param now time of the query, Unix ms
 */
export function planQuery(store: Store, query: MemoryQuery, now: number): QueryPlan {
  const { filter, liveFilter } = filtersOf(query, now);
  const memories = memoryCount(store);
  const scope = scopeOf(store, query.filter, filter, memories);
  const denseSectors = query.denseSectors === 'candidate' ? candidateSectors(query.query) : null;
  const text = readQueryText(query.query);
  const matcher = matcherFor(store, text.terms);
  const texts = createTextReader(store);
  const rows = createRowReader(store);
  const terms = termsOf(text);
  return { query: text, terms, filter, liveFilter, scope, memories, denseSectors, matcher, texts, rows };
}

/** Returns a function that creates the matcher of a query's terms at its first call and returns it from then on. */
export function matcherFor(store: Store, terms: QueryText['terms']): () => QueryMatcher {
  let created: QueryMatcher | undefined;
  return () => (created ??= createQueryMatcher(terms, (words) => raritiesOf(store, words)));
}

/** Statuses of the memories that a query with `deepRecall` searches. */
const DEEP: readonly MemoryStatus[] = ['active', 'superseded', 'contradicted', 'archived'];

function filtersOf(query: MemoryQuery, now: number): Pick<QueryPlan, 'filter' | 'liveFilter'> {
  const { filter: asked, deepRecall, asOf, include = [], anyValidity } = query;
  const filter = asked.statuses === undefined ? asked : { ...asked, statuses: [...asked.statuses, ...include] };
  if (filter.statuses === undefined && !deepRecall && asOf === undefined) {
    return {
      filter: compileFilter(filter, now, { statuses: ['active', 'superseded', ...include], anyValidity }),
      liveFilter: compileFilter(filter, now, { statuses: ['active', ...include], orStillHolds: true, anyValidity }),
    };
  }
  // With `asOf`, superseded memories are included, since their validity says whether they held at that time.
  const held: readonly MemoryStatus[] = asOf ? ['active', 'superseded'] : ['active'];
  const compiled = compileFilter(filter, now, {
    statuses: deepRecall ? DEEP : [...held, ...include],
    asOf,
    anyValidity,
  });
  return { filter: compiled, liveFilter: compiled };
}

/** Describes a plan on one line, for the trace. */
export function describePlan({ scope, terms, denseSectors }: QueryPlan): string {
  const where =
    scope.kind === 'narrow' ? `exact over ${scope.memoryNos.length}` : `index, dilution ${scope.dilution.toFixed(1)}`;
  return `${terms.length} terms; ${where}; ${denseSectors === null ? 'all sectors' : denseSectors.join(', ')}`;
}

/**
 * Returns the number of memories that are searched: the exact number for a narrow scope; for a wide one, the number of
 * all memories of the query's users, without regard to the other conditions of the filter.
 */
export function scopeSize({ scope, memories }: QueryPlan): number {
  return scope.kind === 'narrow' ? scope.memoryNos.length : memories / scope.dilution;
}

/**
 * Least confidence of the classification of a question for which the vector search is limited to the found sectors.
 * Below it all sectors are searched, since a wrong guess would hide the answer.
 */
const SURE_OF_SECTOR = 0.5;

/**
 * Finds the sectors that a question asks about; null if the classification is not confident enough. It uses the
 * classifier by patterns, since the learned weights were trained on statements, not questions.
 */
function candidateSectors(query: string): readonly Sector[] | null {
  const { primary, additional, confidence } = classify(query, 'patterns');
  return confidence < SURE_OF_SECTOR ? null : [primary, ...additional];
}

/**
 * Lists the terms of a text: its phrases, words and identifiers, each once; each word is followed by its irregular
 * forms that the text itself does not have.
 */
export function termsOf({
  text: query,
  terms: { phrases, words, identifiers, forms = NO_FORMS },
}: Pick<QueryText, 'text' | 'terms'>): Term[] {
  const texts = [...phrases.map((phrase) => phrase.join(' ')), ...words, ...identifiers];
  const written = identifiers.length === 0 ? undefined : identifiersAsWritten(query);
  const shown = (text: string) => {
    const identifier = written?.get(text);
    if (identifier === undefined) return text;
    const word = normalise(identifier);
    return words.includes(word) ? word : identifier;
  };
  return [...new Set(texts)].flatMap((word): Term[] => {
    const text = shown(word);
    const others = (forms.get(word) ?? []).filter((form) => !words.includes(form));
    return [{ text, words: word }, ...others.map((form) => ({ text, words: form, formOf: word }))];
  });
}

const NO_FORMS: NonNullable<QueryText['terms']['forms']> = new Map();

/**
 * Subtracts the work of listing this number of memories from the budget. Returns false, with nothing subtracted, if it
 * is more than its share of what is left: the list would use up the budget before the search.
 */
function mayList(memories: number): boolean {
  const bytes = ROW_BYTES * memories;
  return bytes <= LISTING_SHARE * workLeft().bytes && spendWork(bytes);
}

function scopeOf(store: Store, filter: MemoryFilter, compiled: CompiledFilter, memories: number): Scope {
  const users = filter.userIds === undefined ? undefined : findUsers(store, filter.userIds);
  const singleUser = users?.length === 1 ? users[0] : undefined;
  const counted = users === undefined ? memories : users.reduce((sum, user) => sum + user.memories, 0);
  const narrow = Math.min(NARROW_SCOPE, Math.max(MIN_NARROW, Math.floor(NARROW_SHARE * memories)));
  // Listing the scope pays off where it may end early: for a user with few memories, or a filter that may leave few.
  if (counted <= narrow || (isNarrowing(filter) && mayList(counted))) {
    const { rows, isCut } = listPassingWithin(store, compiled, { limit: narrow + 1, share: LISTING_SHARE });
    if (rows.length <= narrow && !isCut) return { kind: 'narrow', memoryNos: rows, userNo: singleUser?.userNo };
  }
  // A user who owns all memories needs no filter by user, which costs the index a fifth of its time.
  const userNo = counted < memories ? singleUser?.userNo : undefined;
  return { kind: 'wide', userNo, dilution: Math.max(1, memories / Math.max(1, counted)) };
}

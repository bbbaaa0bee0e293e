import { classify } from '../sectors/classify.ts';
import { type CompiledFilter, compileFilter } from '../store/filter.ts';
import type { Store } from '../store/open-store.ts';
import { createTextReader, type TextReader } from '../store/own-texts.ts';
import { findUsers } from '../store/memory-counts.ts';
import { isNarrowing, listPassingWithin } from '../store/passing-memories.ts';
import { createRowReader, type RowReader } from '../store/ranking-rows.ts';
import { ROW_BYTES, spendWork } from '../store/work-budget.ts';
import { identifiersAsWritten } from '../text/index-text.ts';
import { type QueryText, readQueryText } from '../text/query-text.ts';
import { normalise } from '../text/words.ts';
import type { MemoryFilter, MemoryQuery, MemoryStatus, Sector } from '../types.ts';
import { memoryCount, raritiesOf } from './term-frequencies.ts';
import { createQueryMatcher, type QueryMatcher } from './text-match.ts';

/** A term to look for in texts: a word, an identifier or a phrase. */
export interface Term {
  /** The term as a person would write it, for explanations; a word and an identifier may be shown alike. */
  readonly text: string;
  /** The term as the word index looks for it; the words of a phrase are joined by blanks. */
  readonly words: string;
  /** `words` of the term that this one is an irregular form of and is shown as; left out for any other term. */
  readonly formOf?: string;
}

/**
 * The memories among which to search. In a `narrow` scope every memory that passes the filter is known by its number
 * and is compared: the answer is exact. In a `wide` scope rare words and the vector index find the candidates.
 */
type Scope =
  | {
      readonly kind: 'narrow';
      /** Numbers of all memories that pass the filter. */
      readonly memoryNos: readonly number[];
      /** The one user who owns all of these memories; undefined if there may be several. */
      readonly userNo: number | undefined;
    }
  | {
      readonly kind: 'wide';
      /**
       * The one user asked about; undefined for several users, for all, or for a user who owns all memories of the
       * file.
       */
      readonly userNo: number | undefined;
      /**
       * Memories of the file for each memory of the users asked about, at least 1; other conditions of the filter do
       * not count. Searches that do not know the filter reach further by this factor.
       */
      readonly dilution: number;
    };

/** What all stages of a query share. */
export interface QueryPlan {
  /** The text of the query, taken apart. */
  readonly query: QueryText;
  /**
   * The phrases, words and identifiers of the query, each once, as they are looked for and as explanations show them;
   * each word is followed by its irregular forms.
   */
  readonly terms: readonly Term[];
  /** Conditions that a candidate must meet. */
  readonly filter: CompiledFilter;
  /**
   * Conditions that a returned memory must meet: a superseded memory leads to the live end of its chain. This is the
   * same object as `filter` where superseded memories stand for themselves.
   */
  readonly liveFilter: CompiledFilter;
  readonly scope: Scope;
  /** Number of memories in the file. */
  readonly memories: number;
  /** Sectors that are searched by vectors one by one; null for all at once. */
  readonly denseSectors: readonly Sector[] | null;
  /**
   * Returns the query made ready to be compared with texts: one matcher for all calls. The first call weighs the words
   * by the file, so it must come inside the read that made the plan.
   */
  matcher(): QueryMatcher;
  /** Reads texts by memory number. Call it inside the read that made the plan only. */
  readonly texts: TextReader;
  /** Reads ranking rows by memory number. Call it inside the read that made the plan only. */
  readonly rows: RowReader;
}

/** Least number of memories up to which a scope counts as narrow, however small its file is. */
const MIN_NARROW = 400;
/**
 * Greatest number of memories in a narrow scope. An exact scan misses nothing, but costs 1.4 µs for each vector of the
 * scope, which is little beside the rest of the query up to this size.
 */
export const NARROW_SCOPE = 2_000;
/**
 * Share of the file's memories up to which a scope counts as narrow, but never less than `MIN_NARROW` memories nor more
 * than `NARROW_SCOPE`.
 */
const NARROW_SHARE = 1 / 16;

/**
 * Share of the work budget that is spent on listing a scope. Where that does not reach its end, the scope is searched
 * as a wide one: what words and vectors find best is looked at first.
 */
const LISTING_SHARE = 0.5;

/**
 * Plans a query: takes its text apart, compiles its filter, and decides between an exact scan of the scope and the
 * indexes. Call inside a read; the plan is for that snapshot.
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

/** Returns a function that makes the matcher of a query's terms when it is first called. */
export function matcherFor(store: Store, terms: QueryText['terms']): () => QueryMatcher {
  let kept: QueryMatcher | undefined;
  return () => (kept ??= createQueryMatcher(terms, (words) => raritiesOf(store, words)));
}

const DEEP: readonly MemoryStatus[] = ['active', 'superseded', 'contradicted', 'archived'];

function filtersOf(query: MemoryQuery, now: number): Pick<QueryPlan, 'filter' | 'liveFilter'> {
  const { filter: asked, deepRecall, asOf, include = [] } = query;
  const filter = asked.statuses === undefined ? asked : { ...asked, statuses: [...asked.statuses, ...include] };
  if (filter.statuses === undefined && !deepRecall && asOf === undefined) {
    return {
      filter: compileFilter(filter, now, { statuses: ['active', 'superseded', ...include] }),
      liveFilter: compileFilter(filter, now, { orStillHolds: true }),
    };
  }
  // Where the query looks back, validity says which memories held then.
  const held: readonly MemoryStatus[] = asOf ? ['active', 'superseded'] : ['active'];
  const compiled = compileFilter(filter, now, { statuses: deepRecall ? DEEP : [...held, ...include], asOf });
  return { filter: compiled, liveFilter: compiled };
}

/** Describes a plan on one line, for the trace. */
export function describePlan({ scope, terms, denseSectors }: QueryPlan): string {
  const where =
    scope.kind === 'narrow' ? `exact over ${scope.memoryNos.length}` : `index, dilution ${scope.dilution.toFixed(1)}`;
  return `${terms.length} terms; ${where}; ${denseSectors === null ? 'all sectors' : denseSectors.join(', ')}`;
}

/**
 * The number of memories that are searched: exact for a narrow scope; for a wide one, all memories of the users asked
 * about.
 */
export function scopeSize({ scope, memories }: QueryPlan): number {
  return scope.kind === 'narrow' ? scope.memoryNos.length : memories / scope.dilution;
}

/**
 * Least confidence of a classification by which the vector search is limited to sectors. Below it all sectors are
 * searched, since a wrong guess would hide the answer.
 */
const SURE_OF_SECTOR = 0.5;

/** Finds the sectors that a question asks about. Patterns tell, since weights were learned from statements only. */
function candidateSectors(query: string): readonly Sector[] | null {
  const { primary, additional, confidence } = classify(query, 'patterns');
  return confidence < SURE_OF_SECTOR ? null : [primary, ...additional];
}

/**
 * Lists the terms of a text: its phrases, words and identifiers, each once, as they are looked for and as explanations
 * show them; each word is followed by its irregular forms.
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

function scopeOf(store: Store, filter: MemoryFilter, compiled: CompiledFilter, memories: number): Scope {
  const users = filter.userIds === undefined ? undefined : findUsers(store, filter.userIds);
  const singleUser = users?.length === 1 ? users[0] : undefined;
  const counted = users === undefined ? memories : users.reduce((sum, user) => sum + user.memories, 0);
  const narrow = Math.min(NARROW_SCOPE, Math.max(MIN_NARROW, Math.floor(NARROW_SHARE * memories)));
  // Listing the scope pays off where it may end early: for a user with few memories, or a filter that may leave few.
  if (counted <= narrow || (isNarrowing(filter) && spendWork(ROW_BYTES * counted))) {
    const { rows, isCut } = listPassingWithin(store, compiled, { limit: narrow + 1, share: LISTING_SHARE });
    if (rows.length <= narrow && !isCut) return { kind: 'narrow', memoryNos: rows, userNo: singleUser?.userNo };
  }
  // A user who owns all memories needs no filter by user, which costs the index a fifth of its time.
  const userNo = counted < memories ? singleUser?.userNo : undefined;
  return { kind: 'wide', userNo, dilution: Math.max(1, memories / Math.max(1, counted)) };
}

import type { FilterCondition } from '../store/filter.ts';
import { listChangeTimes, meetsConditions } from '../store/inspection.ts';
import { getMemoryRow, toMemory } from '../store/memories.ts';
import type { Store } from '../store/open-store.ts';
import { createPastReader } from '../store/past-memories.ts';
import { OWN_COLUMNS } from '../store/own-texts.ts';
import { readRankingRows } from '../store/ranking-rows.ts';
import { matchingText } from '../store/word-index/matching-rows.ts';
import type { Memory, MemoryExplanation, Outcome, TextColumn } from '../types.ts';
import type { Candidate } from './candidate.ts';
import { similaritiesOf } from './dense.ts';
import type { StageResults } from './stage-results.ts';
import type { RetrieveContext } from './retrieve-context.ts';

/** What happened to a memory in one run of a query's stages, for an explanation. */
export interface Inspection extends ReachedStage {
  /**
   * The memory as the filter saw it: its present state, or with `asOf.recorded` its recorded state at that time (its
   * first state if it was stored later).
   */
  readonly memory: Memory;
  /** Times of the memory's last changes, newest first, Unix ms; at most 4 (`CHANGES_READ`). */
  readonly changedAt: readonly number[];
  /**
   * Names of the filter's conditions that the memory fails, each once, in the order of the filter; empty if it passes
   * all.
   */
  readonly failedFilters: readonly string[];
  /**
   * Id of the successor that replaced the memory among the candidates, because the memory is superseded; null if the
   * memory was not replaced, or if no successor passes the filter.
   */
  readonly supersededBy: string | null;
  /**
   * Names of the filter's conditions that a source of the memory fails, each once, if that keeps the memory out
   * (`sources_hidden`); empty otherwise.
   */
  readonly failedBySource: readonly string[];
  /**
   * Terms of the query in three lists: found in the memory itself, found only in the text of its neighbours, and not
   * found.
   */
  readonly terms: MemoryExplanation['terms'];
  /**
   * Cosine of the query's vector and the memory's nearest vector, -1..1, by one model; null if the query or the memory
   * has no vector. With several models, it is the cosine by the model that found the memory, else by the first model
   * with a vector of the memory.
   */
  readonly cosine: number | null;
  /**
   * Public ids, by `memoryNo`, of up to two other memories: the successor that replaced the memory, and the memory from
   * which activation reached it over a link.
   */
  readonly ids: ReadonlyMap<number, string>;
}

/** The outcome of a memory in a query: the last stage that it reached, and its place among the candidates. */
interface ReachedStage {
  readonly outcome: Outcome;
  /**
   * Place, from 1, in the final order of all candidates, those that floor or packing drop included; null if the memory
   * is no candidate.
   */
  readonly rank: number | null;
  readonly candidate: Candidate | null;
}

/**
 * Greatest number of a memory's last changes whose times are read. A remedy may propose `as_of` a time before one of
 * them.
 */
const CHANGES_READ = 4;

/**
 * Finds out what the stages of a query did with a memory. It must be called inside a read of the store.
 * @param recall the results of the stages
 * @throws EngineError `not_found` for a memory that does not exist or has expired, and for a part of a document that
 *   queries do not find
 */
export function inspect({ store }: RetrieveContext, recall: StageResults, memoryId: string): Inspection {
  const { plan, vectors, now, replaced, hidden, query } = recall;
  const row = getMemoryRow(store, memoryId, now);
  const { conditions } = plan.filter;
  const failedFilters = failedOf(store, row.memoryNo, conditions);
  const source = hidden.get(row.memoryNo);
  const terms = termsOf(recall, (words, columns) => matchingText(store, words, [row.memoryNo], columns).length > 0);
  const reached = findReachedStage(recall, row.memoryNo, {
    passes: failedFilters.length === 0,
    sharesWords: terms.matched.length + terms.inContext.length > 0,
  });
  // The cosine is by one model: the model that found the memory, else the first that has a vector of it.
  const [nearest] = [
    ...(vectors.length > 1 ? [reached.candidate?.dense?.item ?? []].flat() : []),
    ...vectors.flatMap((vector) => similaritiesOf(store, vector, [row.memoryNo])),
  ];
  const others = [replaced.get(row.memoryNo), reached.candidate?.arrival?.from].filter((memoryNo) => memoryNo != null);
  const ids = new Map(readRankingRows(store, others).map(({ memoryNo, id }) => [memoryNo, id]));
  const at = query.asOf?.recorded;
  const memory = at === undefined ? undefined : createPastReader(store, at).read([row.memoryNo], now).get(row.memoryNo);
  return {
    ...reached,
    memory: memory ?? toMemory(row, now),
    changedAt: listChangeTimes(store, row.memoryNo, CHANGES_READ),
    failedFilters,
    failedBySource: source === undefined ? [] : failedOf(store, source, plan.liveFilter.conditions),
    supersededBy: ids.get(replaced.get(row.memoryNo) ?? -1) ?? null,
    terms,
    cosine: nearest?.similarity ?? null,
    ids,
  };
}

/** Returns the names of the conditions that a memory fails, each once, in their order. */
function failedOf(store: Store, memoryNo: number, conditions: readonly FilterCondition[]): string[] {
  const meets = meetsConditions(store, memoryNo, conditions);
  return [...new Set(conditions.filter((_, place) => !meets[place]).map(({ name }) => name))];
}

/**
 * Whether the memory lacks a tag to which the caller's key is bound, now or at the recorded time that the query asks
 * for. Such an inspection must not be told to the caller, nor what follows from it.
 */
export function isOutOfBounds({ failedFilters }: Pick<Inspection, 'failedFilters'>): boolean {
  return failedFilters.includes('bounds');
}

/**
 * Finds the last stage that a memory reached. The stages are checked from the last to the first, since a memory that
 * reached a stage has passed all stages before it.
 */
function findReachedStage(
  { packing, floored, candidates, replaced, hidden }: StageResults,
  memoryNo: number,
  { passes, sharesWords }: { readonly passes: boolean; readonly sharesWords: boolean },
): ReachedStage {
  const place = candidates.findIndex(({ row }) => row.memoryNo === memoryNo);
  const candidate = candidates[place] ?? null;
  const rank = candidate === null ? null : place + 1;
  if (packing.packed.some((packed) => packed.candidate.row.memoryNo === memoryNo))
    return { outcome: 'returned', rank, candidate };
  const cut = packing.cut.get(memoryNo) ?? floored.cut.get(memoryNo);
  if (cut !== undefined) return { outcome: cut, rank, candidate };
  if (replaced.has(memoryNo)) return { outcome: 'superseded', rank: null, candidate: null };
  if (hidden.has(memoryNo)) return { outcome: 'sources_hidden', rank: null, candidate: null };
  if (!passes) return { outcome: 'filtered', rank: null, candidate: null };
  return { outcome: sharesWords ? 'not_a_candidate' : 'no_match', rank: null, candidate: null };
}

/**
 * Divides the terms of the query into three lists: found in the memory itself; found only in the text of its
 * neighbours; not found.
 */
function termsOf(
  { plan: { terms } }: StageResults,
  finds: (words: string, columns?: readonly TextColumn[]) => boolean,
): MemoryExplanation['terms'] {
  const PLACES = ['missed', 'inContext', 'matched'] as const;
  const best = new Map<string, number>();
  for (const { text, words } of terms) {
    const place = !finds(words) ? 0 : finds(words, OWN_COLUMNS) ? 2 : 1;
    // A word and an identifier may be shown alike.
    best.set(text, Math.max(place, best.get(text) ?? 0));
  }
  const at = (wanted: (typeof PLACES)[number]) =>
    [...best].filter(([, place]) => PLACES[place] === wanted).map(([text]) => text);
  return { matched: at('matched'), inContext: at('inContext'), missed: at('missed') };
}

/**
 * Lists the query's terms that the memory or the text of its neighbours contains, each once, in the order of the query,
 * spelled as in an explanation.
 */
export function termsHeld({ plan }: StageResults, { terms: { matched, inContext } }: Inspection): string[] {
  const held = new Set([...matched, ...inContext]);
  return [...new Set(plan.terms.map(({ text }) => text))].filter((text) => held.has(text));
}

import { listChangeTimes, meetsConditions } from '../store/inspection.ts';
import { getMemoryRow, toMemory } from '../store/memories.ts';
import { readMemoriesAsOf } from '../store/revisions.ts';
import { OWN_COLUMNS } from '../store/own-texts.ts';
import { readRankingRows } from '../store/ranking-rows.ts';
import { matchingText } from '../store/word-index/matching-rows.ts';
import type { Memory, MemoryExplanation, Outcome, TextColumn } from '../types.ts';
import type { Candidate } from './candidate.ts';
import { similaritiesOf } from './dense.ts';
import type { Recall } from './recall.ts';
import type { RetrieveContext } from './retrieve-context.ts';

/** The fate of a memory in one run of the stages. */
export interface Inspection extends Standing {
  /** The memory as the filter read it: with `asOf.recorded`, as it was recorded at that time. */
  readonly memory: Memory;
  /** Times of the memory's last changes, newest first, Unix ms; at most `CHANGES_READ`. */
  readonly changedAt: readonly number[];
  /**
   * Names of the filter's conditions that the memory fails, each once, in the order of the filter; empty where it
   * passes.
   */
  readonly failedFilters: readonly string[];
  /** Id of the memory that took its place among the candidates; null where none did. */
  readonly supersededBy: string | null;
  /** Terms of the query by where they stand: in the memory, only in the text of its neighbours, or in neither. */
  readonly terms: MemoryExplanation['terms'];
  /**
   * Cosine of the query's vector and the memory's nearest vector, -1..1, by one model; null where the query or the
   * memory has no vector.
   */
  readonly cosine: number | null;
  /**
   * Ids, by memory number, of the successor of the memory and of the memory one hop before it, where there are such.
   */
  readonly ids: ReadonlyMap<number, string>;
}

/** How far a memory came through the stages. */
interface Standing {
  readonly outcome: Outcome;
  /** Rank among all candidates, from 1; null where the memory is not among them. */
  readonly rank: number | null;
  readonly candidate: Candidate | null;
}

/** Number of last changes that are read: a remedy may look back to before each of them. */
const CHANGES_READ = 4;

/**
 * Finds out what the stages did with a memory. Call inside a read.
 * @param recall what the stages found
 * @throws EngineError `not_found` for a memory that does not exist or has expired
 */
export function inspect({ store }: RetrieveContext, recall: Recall, memoryId: string): Inspection {
  const { plan, vectors, now, replaced, query } = recall;
  const row = getMemoryRow(store, memoryId, now);
  const { conditions } = plan.filter;
  const meets = meetsConditions(store, row.memoryNo, conditions);
  const failedFilters = [...new Set(conditions.filter((_, place) => !meets[place]).map(({ name }) => name))];
  const terms = termsOf(recall, (words, columns) => matchingText(store, words, [row.memoryNo], columns).length > 0);
  const standing = standingOf(recall, row.memoryNo, {
    passes: failedFilters.length === 0,
    sharesWords: terms.matched.length + terms.inContext.length > 0,
  });
  // The cosine is by one model: the model that found the memory, else the first that has a vector of it.
  const [nearest] = [
    ...(vectors.length > 1 ? [standing.candidate?.dense?.item ?? []].flat() : []),
    ...vectors.flatMap((vector) => similaritiesOf(store, vector, [row.memoryNo])),
  ];
  const others = [replaced.get(row.memoryNo), standing.candidate?.arrival?.from].filter((memoryNo) => memoryNo != null);
  const ids = new Map(readRankingRows(store, others).map(({ memoryNo, id }) => [memoryNo, id]));
  const at = query.asOf?.recorded;
  const memory = at === undefined ? undefined : readMemoriesAsOf(store, [row.memoryNo], { at, now }).get(row.memoryNo);
  return {
    ...standing,
    memory: memory ?? toMemory(row, now),
    changedAt: listChangeTimes(store, row.memoryNo, CHANGES_READ),
    failedFilters,
    supersededBy: ids.get(replaced.get(row.memoryNo) ?? -1) ?? null,
    terms,
    cosine: nearest?.similarity ?? null,
    ids,
  };
}

/**
 * Looks through the stages from the last to the first: a memory that reached a stage has passed all stages before it.
 */
function standingOf(
  { packing, floored, candidates, replaced }: Recall,
  memoryNo: number,
  { passes, sharesWords }: { readonly passes: boolean; readonly sharesWords: boolean },
): Standing {
  const place = candidates.findIndex(({ row }) => row.memoryNo === memoryNo);
  const candidate = candidates[place] ?? null;
  const rank = candidate === null ? null : place + 1;
  if (packing.packed.some((packed) => packed.candidate.row.memoryNo === memoryNo))
    return { outcome: 'returned', rank, candidate };
  const cut = packing.cut.get(memoryNo) ?? floored.cut.get(memoryNo);
  if (cut !== undefined) return { outcome: cut, rank, candidate };
  if (replaced.has(memoryNo)) return { outcome: 'superseded', rank: null, candidate: null };
  if (!passes) return { outcome: 'filtered', rank: null, candidate: null };
  return { outcome: sharesWords ? 'not_a_candidate' : 'no_match', rank: null, candidate: null };
}

/**
 * Looks for each term of the query in the memory's own columns and, if it is not there, in the text of its neighbours.
 */
function termsOf(
  { plan: { terms } }: Recall,
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
 * Lists the terms that the memory or the text of its neighbours holds, each once, in the order of the query, as they
 * are shown.
 */
export function termsHeld({ plan }: Recall, { terms: { matched, inContext } }: Inspection): string[] {
  const held = new Set([...matched, ...inContext]);
  return [...new Set(plan.terms.map(({ text }) => text))].filter((text) => held.has(text));
}

import { listChangeTimes, meetsConditions } from '../store/inspection.ts';
import { getMemoryRow, toMemory } from '../store/memories.ts';
import { readMemoriesAsOf } from '../store/revisions.ts';
import { OWN_COLUMNS, readRankingRows } from '../store/search.ts';
import { matchingText } from '../store/word-index/matching-rows.ts';
import type { Memory, MemoryExplanation, Outcome, TextColumn } from '../types.ts';
import type { Candidate } from './candidate.ts';
import { similaritiesOf } from './dense.ts';
import type { Recall } from './recall.ts';
import type { RetrieveContext } from './retrieve.ts';

/** What one run of the stages did with a memory. */
export interface Seen extends Standing {
  /** As it was recorded at the time that the query looks back to, which is what the filter read. */
  readonly memory: Memory;
  /** When it was changed last, newest first; at most `CHANGES_READ`. */
  readonly changedAt: readonly number[];
  /** Names of the filter's conditions that it fails. */
  readonly failedFilters: readonly string[];
  readonly supersededBy: string | null;
  readonly terms: MemoryExplanation['terms'];
  readonly cosine: number | null;
  /** Of the memories on its way. */
  readonly ids: ReadonlyMap<number, string>;
}

interface Standing {
  readonly outcome: Outcome;
  /** Among all candidates, from 1. */
  readonly rank: number | null;
  readonly candidate: Candidate | null;
}

const CHANGES_READ = 4;

/** @throws EngineError `not_found` */
export function inspect({ store }: RetrieveContext, recall: Recall, memoryId: string): Seen {
  const { plan, vectors, now, replaced, query } = recall;
  const row = getMemoryRow(store, memoryId, now);
  const { conditions } = plan.filter;
  const meets = meetsConditions(store, row.seq, conditions);
  const failedFilters = [...new Set(conditions.filter((_, place) => !meets[place]).map(({ name }) => name))];
  const terms = termsOf(recall, (words, columns) => matchingText(store, words, [row.seq], columns).length > 0);
  const standing = standingOf(recall, row.seq, {
    passes: failedFilters.length === 0,
    sharesWords: terms.matched.length + terms.inContext.length > 0,
  });
  // By one model: that which found it, if there is one.
  const [measured] = [
    ...(vectors.length > 1 ? [standing.candidate?.dense?.item ?? []].flat() : []),
    ...vectors.flatMap((vector) => similaritiesOf(store, vector, [row.seq])),
  ];
  const others = [replaced.get(row.seq), standing.candidate?.arrival?.from].filter((seq) => seq != null);
  const ids = new Map(readRankingRows(store, others).map(({ seq, id }) => [seq, id]));
  const at = query.asOf?.recorded;
  const memory = at === undefined ? undefined : readMemoriesAsOf(store, [row.seq], { at, now }).get(row.seq);
  return {
    ...standing,
    memory: memory ?? toMemory(row, now),
    changedAt: listChangeTimes(store, row.seq, CHANGES_READ),
    failedFilters,
    supersededBy: ids.get(replaced.get(row.seq) ?? -1) ?? null,
    terms,
    cosine: measured?.similarity ?? null,
    ids,
  };
}

/** From the last stage to the first: what reached a stage had passed those before. */
function standingOf(
  { packing, floored, candidates, replaced }: Recall,
  seq: number,
  { passes, sharesWords }: { readonly passes: boolean; readonly sharesWords: boolean },
): Standing {
  const place = candidates.findIndex(({ row }) => row.seq === seq);
  const candidate = candidates[place] ?? null;
  const rank = candidate === null ? null : place + 1;
  if (packing.packed.some((packed) => packed.candidate.row.seq === seq))
    return { outcome: 'returned', rank, candidate };
  const cut = packing.cut.get(seq) ?? floored.cut.get(seq);
  if (cut !== undefined) return { outcome: cut, rank, candidate };
  if (replaced.has(seq)) return { outcome: 'superseded', rank: null, candidate: null };
  if (!passes) return { outcome: 'filtered', rank: null, candidate: null };
  return { outcome: sharesWords ? 'not_a_candidate' : 'no_match', rank: null, candidate: null };
}

/** Each term is looked for in the memory's own columns and, if it is not there, in those of its neighbours. */
function termsOf(
  { plan: { terms } }: Recall,
  finds: (words: string, columns?: readonly TextColumn[]) => boolean,
): MemoryExplanation['terms'] {
  const PLACES = ['missed', 'inContext', 'matched'] as const;
  const best = new Map<string, number>();
  for (const { text, words } of terms) {
    const place = !finds(words) ? 0 : finds(words, OWN_COLUMNS) ? 2 : 1;
    // A word and an identifier may be written alike.
    best.set(text, Math.max(place, best.get(text) ?? 0));
  }
  const at = (wanted: (typeof PLACES)[number]) =>
    [...best].filter(([, place]) => PLACES[place] === wanted).map(([text]) => text);
  return { matched: at('matched'), inContext: at('inContext'), missed: at('missed') };
}

/** In the order of the query, as a hit has them. */
export function termsHeld({ plan }: Recall, { terms: { matched, inContext } }: Seen): string[] {
  const held = new Set([...matched, ...inContext]);
  return [...new Set(plan.terms.map(({ text }) => text))].filter((text) => held.has(text));
}

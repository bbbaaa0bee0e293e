import { type GatheredSource, hasConsolidations, listGatheredAmong } from '../store/consolidations.ts';
import type { CompiledFilter } from '../store/filter.ts';
import type { Store } from '../store/open-store.ts';
import { listPassingOf } from '../store/passing-memories.ts';
import { adjust, byRawScore, type Candidate } from './candidate.ts';

/**
 * Ranks gathered memories and their sources beside each other. A gathered memory stands for its sources: it comes no
 * higher than the best of them, however many words they have together, and is left out where none of them was found or
 * the query may not see one of them. The sources give way to it: the raw score of a source gets a factor, if the source
 * is then behind the gathered memory. One that fits the query so much better that it is not stays as it is.
 * @param candidates best first
 * @param options.visible filter that memories pass which a query may see
 * @param options.factor  0..1; with 1 nothing gives way
 */
export function stepBack(
  store: Store,
  candidates: readonly Candidate[],
  { visible, factor }: { readonly visible: CompiledFilter; readonly factor: number },
): Candidate[] {
  if (!hasConsolidations(store)) return [...candidates];
  const pairs = listGatheredAmong(
    store,
    candidates.map(({ row }) => row.memoryNo),
  );
  if (pairs.length === 0) return [...candidates];
  const standing = standingFor(store, candidates, { pairs, visible });
  const gatheredOf = new Map(pairs.map(({ source, gathered }) => [source, standing.get(gathered)]));
  return candidates
    .flatMap((candidate) => {
      const { memoryNo } = candidate.row;
      // What gathers others is in `standing` at its new score, or not at all.
      if (pairs.some(({ gathered }) => gathered === memoryNo)) return standing.get(memoryNo) ?? [];
      const gathered = gatheredOf.get(memoryNo);
      if (gathered === undefined || factor === 1 || candidate.rawScore * factor > gathered.rawScore) return candidate;
      return adjust(candidate, { by: 'consolidated', factor, because: gathered.row.id });
    })
    .sort(byRawScore);
}

/** Finds the gathered memories that may stand for all of their sources, by number, at the scores that they get. */
function standingFor(
  store: Store,
  candidates: readonly Candidate[],
  { pairs, visible }: { readonly pairs: readonly GatheredSource[]; readonly visible: CompiledFilter },
): ReadonlyMap<number, Candidate> {
  const byMemoryNo = new Map(candidates.map((candidate) => [candidate.row.memoryNo, candidate]));
  const seen = new Set(listPassingOf(store, visible, [...new Set(pairs.map(({ source }) => source))]));
  const sourcesOf = Map.groupBy(pairs, ({ gathered }) => gathered);
  return new Map(
    [...sourcesOf].flatMap(([gathered, sources]): [number, Candidate][] => {
      const found = sources.flatMap(({ source }) => byMemoryNo.get(source) ?? []);
      const best = found.sort(byRawScore)[0];
      if (best === undefined || !sources.every(({ source }) => seen.has(source))) return [];
      return [[gathered, belowBest(byMemoryNo.get(gathered)!, best)]];
    }),
  );
}

/** Lowers a gathered memory to the raw score of the best of its sources, if it has a higher one. */
function belowBest(gathered: Candidate, best: Candidate): Candidate {
  if (gathered.rawScore <= best.rawScore) return gathered;
  return adjust(gathered, { by: 'consolidated', factor: best.rawScore / gathered.rawScore, because: best.row.id });
}

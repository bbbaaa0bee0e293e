import { type GatheredSource, hasConsolidations, listGatheredAmong } from '../store/consolidations.ts';
import type { CompiledFilter } from '../store/filter.ts';
import type { Store } from '../store/open-store.ts';
import { listPassingOf } from '../store/passing-memories.ts';
import { adjust, byRawScore, type Candidate } from './candidate.ts';

/**
 * Ranks consolidations (memories that gather the content of several source memories) relative to their sources. A
 * consolidation is ranked no higher than the best of its sources, however many of the query's words it contains. It is
 * left out if none of its sources is a candidate, or if the query may not see one of its sources. The raw score of a
 * source is multiplied by `factor` if the source then ranks below its consolidation. A source that would still rank
 * before its consolidation keeps its score, since it matches the query much better.
 * @param candidates best first
 * @param options.visible filter for the memories that the query may see
 * @param options.factor 0..1; 1 changes no source
 * @returns best first, by raw score
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
      // A consolidation is in `standing` with its new score, or it is left out.
      if (pairs.some(({ gathered }) => gathered === memoryNo)) return standing.get(memoryNo) ?? [];
      const gathered = gatheredOf.get(memoryNo);
      if (gathered === undefined || factor === 1 || candidate.rawScore * factor > gathered.rawScore) return candidate;
      return adjust(candidate, { by: 'consolidated', factor, because: gathered.row.id });
    })
    .sort(byRawScore);
}

/** Returns the consolidations that are kept, with their new raw scores, by `memoryNo`. */
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

/** Lowers the raw score of a consolidation to that of the best of its sources, if it is higher. */
function belowBest(gathered: Candidate, best: Candidate): Candidate {
  if (gathered.rawScore <= best.rawScore) return gathered;
  return adjust(gathered, { by: 'consolidated', factor: best.rawScore / gathered.rawScore, because: best.row.id });
}

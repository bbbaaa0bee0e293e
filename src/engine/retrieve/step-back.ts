import { type GatheredSource, hasConsolidations, listGatheredAmong } from '../store/consolidations.ts';
import type { CompiledFilter } from '../store/filter.ts';
import type { Store } from '../store/open-store.ts';
import { listPassingOf } from '../store/passing-memories.ts';
import { adjust, byRawScore, type Candidate } from './candidate.ts';
import type { StageResults } from './stage-results.ts';

/**
 * Ranks consolidations (memories that gather the content of several source memories) relative to their sources. A
 * consolidation is ranked no higher than the best of its sources, however many of the query's words it contains. It is
 * left out if none of its sources is a candidate, or if the query may not see one of its sources. The raw score of a
 * source is multiplied by `factor` if the source then ranks below its consolidation. A source that would still rank
 * before its consolidation keeps its score, since it matches the query much better.
 * @param candidates best first
 * @param options.visible filter for the memories that the query may see
 * @param options.factor 0..1; 1 changes no source
 * @returns `candidates` best first, by raw score; `hidden` as in `StageResults`
 */
export function stepBack(
  store: Store,
  candidates: readonly Candidate[],
  { visible, factor }: { readonly visible: CompiledFilter; readonly factor: number },
): SteppedBack {
  if (!hasConsolidations(store)) return { candidates, hidden: NONE };
  const pairs = listGatheredAmong(
    store,
    candidates.map(({ row }) => row.memoryNo),
  );
  if (pairs.length === 0) return { candidates, hidden: NONE };
  const { standing, hidden } = standingFor(store, candidates, { pairs, visible });
  const gatheredOf = new Map(pairs.map(({ source, gathered }) => [source, standing.get(gathered)]));
  const ranked = candidates
    .flatMap((candidate) => {
      const { memoryNo } = candidate.row;
      // A consolidation is in `standing` with its new score, or it is left out.
      if (pairs.some(({ gathered }) => gathered === memoryNo)) return standing.get(memoryNo) ?? [];
      const gathered = gatheredOf.get(memoryNo);
      if (gathered === undefined || factor === 1 || candidate.rawScore * factor > gathered.rawScore) return candidate;
      return adjust(candidate, { by: 'consolidated', factor, because: gathered.row.id });
    })
    .sort(byRawScore);
  return { candidates: ranked, hidden };
}

/** The result of `stepBack`. */
type SteppedBack = Pick<StageResults, 'candidates' | 'hidden'>;

const NONE: SteppedBack['hidden'] = new Map();

/** Returns the consolidations that are kept, with their new raw scores, by `memoryNo`, and those that are hidden. */
function standingFor(
  store: Store,
  candidates: readonly Candidate[],
  { pairs, visible }: { readonly pairs: readonly GatheredSource[]; readonly visible: CompiledFilter },
): { readonly standing: ReadonlyMap<number, Candidate>; readonly hidden: SteppedBack['hidden'] } {
  const byMemoryNo = new Map(candidates.map((candidate) => [candidate.row.memoryNo, candidate]));
  const seen = new Set(listPassingOf(store, visible, [...new Set(pairs.map(({ source }) => source))]));
  const sourcesOf = Map.groupBy(pairs, ({ gathered }) => gathered);
  const [standing, hidden] = [new Map<number, Candidate>(), new Map<number, number>()];
  for (const [gathered, sources] of sourcesOf) {
    const unseen = sources.find(({ source }) => !seen.has(source));
    const [best] = sources.flatMap(({ source }) => byMemoryNo.get(source) ?? []).sort(byRawScore);
    if (unseen !== undefined) hidden.set(gathered, unseen.source);
    else if (best !== undefined) standing.set(gathered, belowBest(byMemoryNo.get(gathered)!, best));
  }
  return { standing, hidden };
}

/** Lowers the raw score of a consolidation to that of the best of its sources, if it is higher. */
function belowBest(gathered: Candidate, best: Candidate): Candidate {
  if (gathered.rawScore <= best.rawScore) return gathered;
  return adjust(gathered, { by: 'consolidated', factor: best.rawScore / gathered.rawScore, because: best.row.id });
}

import { listChainEnds } from '../store/chains.ts';
import { type Contradiction, listContradictions } from '../store/contradictions.ts';
import { listSupersessions } from '../store/edges.ts';
import type { CompiledFilter } from '../store/filter.ts';
import type { Store } from '../store/open-store.ts';
import { listPassingOf } from '../store/passing-memories.ts';
import { readRankingRows, type RankingRow } from '../store/ranking-rows.ts';
import { adjust, byRawScore, type Candidate, type Findings } from './candidate.ts';

/** The settings of the resolve stage, which replaces superseded memories and weakens contradicted ones. */
export interface ResolveOptions {
  /** Filter that a memory must pass to replace a superseded one. A superseded memory that passes it is kept. */
  readonly filter: CompiledFilter;
  /**
   * Whether superseded memories are kept, whatever the filter: with `deepRecall`, with `asOf`, and if the caller named
   * statuses.
   */
  readonly keepSuperseded: boolean;
  /** Time, Unix ms: only contradictions recorded at or before it count; all count if it is left out. */
  readonly recordedBy?: number | undefined;
  /** Factor on the raw score of the weaker of two candidates that contradict each other, 0..1. */
  readonly contradicted: number;
  /** Time of the query, Unix ms. */
  readonly now: number;
  /** Scores a memory that replaces a superseded one, with what the searches found out about the superseded one. */
  readonly score: (row: RankingRow, findings: Findings) => Candidate;
}

/** The result of the resolve stage. */
export interface Resolved {
  /** The candidates that are kept and the memories that replace superseded ones, by falling raw score. */
  readonly resolved: Candidate[];
  /**
   * For each superseded memory that is not kept, `memoryNo` of the memory that replaced it; null if no successor passes
   * the filter.
   */
  readonly replaced: ReadonlyMap<number, number | null>;
}

/**
 * Least factor on the raw score of the weaker of two contradicting candidates if the contradiction is only proposed,
 * since the form of the texts suggests it. A wrong proposal then hides neither of them.
 */
const PROPOSED_FACTOR = 0.9;

/**
 * Replaces superseded memories by the last memory of their chain of successors (the live end) or, if that does not pass
 * the filter, by the nearest successor that passes. Then lowers the raw score of the weaker of two candidates that
 * contradict each other. A superseded memory is left out if neither it nor a successor passes the filter.
 * @param candidates in any order
 */
export function resolve(store: Store, candidates: readonly Candidate[], options: ResolveOptions): Resolved {
  const superseded = options.keepSuperseded ? [] : candidates.filter(({ row }) => row.status === 'superseded');
  const ends = liveEnds(
    store,
    superseded.map(({ row }) => row.memoryNo),
    options,
  );
  const standing = superseded.length === 0 ? candidates : putInPlace(store, candidates, ends, options);
  const gone = superseded.filter(({ row }) => ends.get(row.memoryNo) !== row.memoryNo);
  return {
    resolved: demoteContradicted(store, standing, options).sort(byRawScore),
    replaced: new Map(gone.map(({ row }) => [row.memoryNo, ends.get(row.memoryNo) ?? null])),
  };
}

/**
 * Finds the memory that replaces each superseded one, by this order: the superseded memory itself if it passes the
 * filter, which it does while its successor is not valid yet or after that has expired; the last memory of its chain of
 * successors (the live end) if that is valid and passes; the nearest successor that passes. A memory with none of these
 * has no entry.
 * @returns `memoryNo` of the replacement, by the `memoryNo` of the superseded memory
 */
function liveEnds(
  store: Store,
  superseded: readonly number[],
  { filter, now }: Pick<ResolveOptions, 'filter' | 'now'>,
): Map<number, number> {
  if (superseded.length === 0) return new Map();
  const chains = listChainEnds(store, superseded, now);
  const passing = new Set(listPassingOf(store, filter, [...superseded, ...chains.map(({ liveEnd }) => liveEnd)]));
  const ends = new Map(
    chains
      .filter(({ liveEnd, isHolding }) => isHolding && passing.has(liveEnd))
      .map(({ memoryNo, liveEnd }) => [memoryNo, liveEnd]),
  );
  for (const memoryNo of superseded) if (passing.has(memoryNo)) ends.set(memoryNo, memoryNo);
  const others = superseded.filter((memoryNo) => !ends.has(memoryNo));
  return others.length === 0 ? ends : new Map([...ends, ...nearestEnds(store, others, filter)]);
}

function nearestEnds(store: Store, superseded: readonly number[], filter: CompiledFilter): Map<number, number> {
  const successors = new Map<number, number[]>();
  for (const { older, newer } of listSupersessions(store, superseded)) {
    const newerOnes = successors.get(older);
    if (newerOnes === undefined) successors.set(older, [newer]);
    else newerOnes.push(newer);
  }
  const members = new Set([...superseded, ...[...successors.values()].flat()]);
  const passing = new Set(listPassingOf(store, filter, [...members]));
  const ends = superseded.map((memoryNo) => [memoryNo, nearest(memoryNo, successors, passing)] as const);
  return new Map(ends.filter((end): end is [number, number] => end[1] !== undefined));
}

/**
 * Finds the nearest memory of `wanted` by breadth-first search along successors. Of several successors of one memory,
 * the one with the highest `memoryNo` is visited first. Each memory is visited once, so that the search ends even in a
 * cycle. Returns undefined if none is reached.
 */
function nearest(
  start: number,
  successors: ReadonlyMap<number, readonly number[]>,
  wanted: ReadonlySet<number>,
): number | undefined {
  const seen = new Set([start]);
  for (const memoryNo of seen) {
    if (wanted.has(memoryNo)) return memoryNo;
    for (const newer of successors.get(memoryNo)?.toSorted((a, b) => b - a) ?? []) seen.add(newer);
  }
  return undefined;
}

/**
 * Replaces superseded candidates by the memories in `ends`. A replacement gets the findings of the best candidate that
 * leads to it, unless its own findings give it a higher raw score.
 * @param ends `memoryNo` of the replacement, by the `memoryNo` of the superseded memory
 */
function putInPlace(
  store: Store,
  candidates: readonly Candidate[],
  ends: ReadonlyMap<number, number>,
  { score }: ResolveOptions,
): Candidate[] {
  const standing = new Map(
    candidates.filter(({ row }) => row.status !== 'superseded').map((candidate) => [candidate.row.memoryNo, candidate]),
  );
  const rows = new Map(readRankingRows(store, [...new Set(ends.values())]).map((row) => [row.memoryNo, row]));
  for (const candidate of candidates) {
    const { row: older } = candidate;
    const end = older.status === 'superseded' ? ends.get(older.memoryNo) : undefined;
    const row = end === undefined ? undefined : rows.get(end);
    if (row === undefined) continue;
    // The live end passes the filter now, even if its status says that it is superseded later.
    const { lexical, dense, fused, arrival, fit } = candidate;
    const standIn = replace(candidate, score({ ...row, status: 'active' }, { lexical, dense, fused, arrival, fit }));
    const rival = standing.get(row.memoryNo);
    if (rival === undefined || standIn.rawScore > rival.rawScore) standing.set(row.memoryNo, standIn);
  }
  return [...standing.values()];
}

/**
 * Records in a replacement (`standIn`) which superseded memory it replaces. A memory that replaces itself is returned
 * unchanged.
 */
function replace({ row: older }: Candidate, standIn: Candidate): Candidate {
  if (older.memoryNo === standIn.row.memoryNo) return standIn;
  return {
    ...adjust(standIn, { by: 'superseded', factor: 1, because: older.id }),
    supersedes: older.id,
    foundAs: older.memoryNo,
  };
}

/**
 * Lowers the raw score of the weaker of two candidates that contradict each other. A pair with a memory of status
 * `contradicted` is skipped, since this status has already lowered its score. A candidate with a lowered score still
 * lowers the scores of others. The strongest opponent of a candidate determines the factor.
 */
function demoteContradicted(
  store: Store,
  candidates: readonly Candidate[],
  { recordedBy = Number.MAX_SAFE_INTEGER, contradicted }: Pick<ResolveOptions, 'recordedBy' | 'contradicted'>,
): Candidate[] {
  const byMemoryNo = new Map(candidates.map((candidate) => [candidate.row.memoryNo, candidate]));
  const strongest = new Map<number, Opponent>();
  for (const { a, b, by } of listContradictions(store, [...byMemoryNo.keys()], recordedBy)) {
    const pair = [byMemoryNo.get(a)!, byMemoryNo.get(b)!];
    if (pair.some(({ row }) => row.status === 'contradicted')) continue;
    const [weaker, stronger] = pair.sort(byStanding) as [Candidate, Candidate];
    const opponent = strongest.get(weaker.row.memoryNo);
    const rival = { candidate: stronger, by };
    if (opponent === undefined || isStronger(rival, opponent)) strongest.set(weaker.row.memoryNo, rival);
  }
  return candidates.map((candidate) => {
    const stronger = strongest.get(candidate.row.memoryNo);
    if (stronger === undefined) return candidate;
    return adjust(candidate, {
      by: 'contradicted',
      factor: stronger.by === 'form' ? Math.max(PROPOSED_FACTOR, contradicted) : contradicted,
      because: stronger.candidate.row.id,
      ...(stronger.by === 'caller' ? {} : { automatic: true }),
    });
  });
}

/** A candidate that contradicts a weaker one, and who or what recorded the contradiction. */
interface Opponent {
  readonly candidate: Candidate;
  readonly by: Contradiction['by'];
}

/**
 * Tells whether the opponent `one` is stronger than the opponent `other`. A contradiction that only the form of two
 * texts suggests is weaker than any other contradiction; between two of equal kind, the order of `byStanding` decides.
 */
function isStronger(one: Opponent, other: Opponent): boolean {
  const [proposed, otherProposed] = [one.by === 'form', other.by === 'form'];
  return proposed === otherProposed ? byStanding(other.candidate, one.candidate) < 0 : otherProposed;
}

/**
 * Compares two candidates for a sort from the weaker to the stronger, by strength × confidence × recency; of equal ones
 * the older is the weaker, since the newer was written later.
 */
function byStanding(a: Candidate, b: Candidate): number {
  return standingOf(a) - standingOf(b) || (a.row.id < b.row.id ? -1 : 1);
}

function standingOf({ features: { strength, confidence, recency } }: Candidate): number {
  return strength * confidence * recency;
}

import { listChainEnds } from '../store/chains.ts';
import { listContradictions, listSupersessions } from '../store/edges.ts';
import type { CompiledFilter } from '../store/filter.ts';
import type { Store } from '../store/open-store.ts';
import { listPassingOf, readRankingRows, type RankingRow } from '../store/search.ts';
import { adjust, byRawScore, type Candidate, type Findings } from './candidate.ts';

export interface ResolveOptions {
  /** What a live end must pass to stand in for a superseded memory. */
  readonly filter: CompiledFilter;
  /** Superseded memories stay as they are: deep recall, a look back in time, or statuses that the caller named. */
  readonly keepSuperseded: boolean;
  /** Only what was said to contradict by then counts (Unix ms); all of it by default. */
  readonly recordedBy?: number | undefined;
  /** Unix ms */
  readonly now: number;
  readonly score: (row: RankingRow, findings: Findings) => Candidate;
}

export interface Resolved {
  /** Best first. */
  readonly resolved: Candidate[];
  /** Superseded memories that gave way, with the live end that took their place, or null where none passes the filter. */
  readonly replaced: ReadonlyMap<number, number | null>;
}

/** OpenMem's factor for the weaker of two that contradict each other. */
export const CONTRADICTED_FACTOR = 0.3;

/** Supersessions, then contradictions among what is left. */
export function resolve(store: Store, candidates: readonly Candidate[], options: ResolveOptions): Resolved {
  const superseded = options.keepSuperseded ? [] : candidates.filter(({ row }) => row.status === 'superseded');
  const ends = liveEnds(
    store,
    superseded.map(({ row }) => row.seq),
    options,
  );
  const standing = superseded.length === 0 ? candidates : putInPlace(store, candidates, ends, options);
  const gone = superseded.filter(({ row }) => ends.get(row.seq) !== row.seq);
  return {
    resolved: demoteContradicted(store, standing, options.recordedBy).sort(byRawScore),
    replaced: new Map(gone.map(({ row }) => [row.seq, ends.get(row.seq) ?? null])),
  };
}

/**
 * For each superseded memory the nearest of its chain that passes the filter: mostly the live end, or the memory itself while its
 * successor does not hold yet. Only where neither is it, the chain is walked. Of two successors the later stored goes first.
 */
function liveEnds(
  store: Store,
  superseded: readonly number[],
  { filter, now }: Pick<ResolveOptions, 'filter' | 'now'>,
): Map<number, number> {
  if (superseded.length === 0) return new Map();
  const known = listChainEnds(store, superseded, now);
  const passing = new Set(listPassingOf(store, filter, [...superseded, ...known.map(({ liveEnd }) => liveEnd)]));
  const ends = new Map(
    known.filter(({ liveEnd, isHolding }) => isHolding && passing.has(liveEnd)).map((one) => [one.seq, one.liveEnd]),
  );
  for (const seq of superseded) if (passing.has(seq)) ends.set(seq, seq);
  const others = superseded.filter((seq) => !ends.has(seq));
  return others.length === 0 ? ends : new Map([...ends, ...nearestEnds(store, others, filter)]);
}

function nearestEnds(store: Store, superseded: readonly number[], filter: CompiledFilter): Map<number, number> {
  const successors = new Map<number, number[]>();
  for (const { older, newer } of listSupersessions(store, superseded)) {
    const known = successors.get(older);
    if (known === undefined) successors.set(older, [newer]);
    else known.push(newer);
  }
  const met = new Set([...superseded, ...[...successors.values()].flat()]);
  const passing = new Set(listPassingOf(store, filter, [...met]));
  const ends = superseded.map((seq) => [seq, nearest(seq, successors, passing)] as const);
  return new Map(ends.filter((found): found is [number, number] => found[1] !== undefined));
}

/** Breadth first, each memory once, so that a circle ends. */
function nearest(
  start: number,
  successors: ReadonlyMap<number, readonly number[]>,
  wanted: ReadonlySet<number>,
): number | undefined {
  const seen = new Set([start]);
  for (const seq of seen) {
    if (wanted.has(seq)) return seq;
    for (const newer of successors.get(seq)?.toSorted((a, b) => b - a) ?? []) seen.add(newer);
  }
  return undefined;
}

/** Live ends with the findings of the best that leads to them, unless their own are better. */
function putInPlace(
  store: Store,
  candidates: readonly Candidate[],
  ends: ReadonlyMap<number, number>,
  { score }: ResolveOptions,
): Candidate[] {
  const standing = new Map(
    candidates.filter(({ row }) => row.status !== 'superseded').map((one) => [one.row.seq, one]),
  );
  const rows = new Map(readRankingRows(store, [...new Set(ends.values())]).map((row) => [row.seq, row]));
  for (const candidate of candidates) {
    const { row: older } = candidate;
    const end = older.status === 'superseded' ? ends.get(older.seq) : undefined;
    const row = end === undefined ? undefined : rows.get(end);
    if (row === undefined) continue;
    // It passed for what is live, whatever its status says of the time to come.
    const { lexical, dense, fused, arrival, fit } = candidate;
    const standIn = replace(candidate, score({ ...row, status: 'active' }, { lexical, dense, fused, arrival, fit }));
    const known = standing.get(row.seq);
    if (known === undefined || standIn.rawScore > known.rawScore) standing.set(row.seq, standIn);
  }
  return [...standing.values()];
}

function replace({ row: older }: Candidate, standIn: Candidate): Candidate {
  if (older.seq === standIn.row.seq) return standIn;
  return {
    ...adjust(standIn, { by: 'superseded', factor: 1, because: older.id }),
    supersedes: older.id,
    foundAs: older.seq,
  };
}

/**
 * Of two candidates that contradict each other the weaker loses most of its score. One that was decided against bears that in its
 * status already. What is weakened still counts against others.
 */
function demoteContradicted(
  store: Store,
  candidates: readonly Candidate[],
  recordedBy = Number.MAX_SAFE_INTEGER,
): Candidate[] {
  const bySeq = new Map(candidates.map((candidate) => [candidate.row.seq, candidate]));
  const strongest = new Map<number, Opponent>();
  for (const { a, b, automatic } of listContradictions(store, [...bySeq.keys()], recordedBy)) {
    const [one, other] = [bySeq.get(a)!, bySeq.get(b)!];
    if (one.row.status === 'contradicted' || other.row.status === 'contradicted') continue;
    const [weaker, stronger] = [one, other].sort(byStanding) as [Candidate, Candidate];
    const known = strongest.get(weaker.row.seq);
    if (known === undefined || byStanding(known.candidate, stronger) < 0) {
      strongest.set(weaker.row.seq, { candidate: stronger, isConcluded: automatic === 1 });
    }
  }
  return candidates.map((candidate) => {
    const stronger = strongest.get(candidate.row.seq);
    if (stronger === undefined) return candidate;
    return adjust(candidate, {
      by: 'contradicted',
      factor: CONTRADICTED_FACTOR,
      because: stronger.candidate.row.id,
      ...(stronger.isConcluded ? { automatic: true } : {}),
    });
  });
}

interface Opponent {
  readonly candidate: Candidate;
  /** By a language model. */
  readonly isConcluded: boolean;
}

/** The weaker first; of two alike the older, which the other was said in knowledge of. */
function byStanding(a: Candidate, b: Candidate): number {
  return standingOf(a) - standingOf(b) || (a.row.id < b.row.id ? -1 : 1);
}

function standingOf({ features: { strength, confidence, recency } }: Candidate): number {
  return strength * confidence * recency;
}

import { NEAR_WEIGHT } from '../retrieve/evidence-meter.ts';
import { enoughHeld } from '../retrieve/lenience.ts';
import { confidenceOf } from '../retrieve/calibrate.ts';
import type { PreparedQuery, StandingIndex } from '../retrieve/standing-index.ts';
import { memoryCount } from '../retrieve/term-frequencies.ts';
import { readCosineBase } from '../store/calibrations.ts';
import { compileFilter } from '../store/filter.ts';
import type { SectorModels } from '../store/live-model.ts';
import { findUsers } from '../store/memory-counts.ts';
import type { Store } from '../store/open-store.ts';
import { createTextReader, type OwnText } from '../store/own-texts.ts';
import { listPassingOf } from '../store/passing-memories.ts';
import { readProvenance } from '../store/provenance.ts';
import { listOwners } from '../store/standing.ts';
import { createSupersededFinder } from '../store/superseded-answers.ts';
import type { RetrievalOptions, StandingMatch, StandingRest } from '../types.ts';
import { createKeptWithin } from './kept-within.ts';
import type { ReadContext } from './read-context.ts';
import { meterOf } from './standing-meters.ts';
import { forgetIndex, indexOf } from './standing-upkeep.ts';
import { createCosines, createNearFinder, forgetNeighbours, keepNeighbours, vectorsOf } from './standing-vectors.ts';

/** Length of the beginning of a memory's text that is compared, in Unicode code points: as much as a query reads. */
const MAX_CHARACTERS = 4_000;
/** Number of characters of texts, queries and filters after which a read compares no more pairs: some 0.1 s. */
const COMPARED_CHARACTERS = 1_000_000;
/** Number of characters that each pair of a memory and a query counts in addition to their texts. */
const CHARACTERS_PER_PAIR = 250;
/**
 * Number of characters that the first pair with a filter counts in addition: each filter is a statement of its own,
 * and so a round trip where the tenant is in PostgreSQL.
 */
const CHARACTERS_PER_FILTER = 2_500;

/** The result of one read that compares memories with standing queries. */
interface Compared {
  readonly matches: StandingMatch[];
  /** What is left to be compared; null for nothing. */
  readonly rest: StandingRest | null;
}

/**
 * Compares memories with all standing queries, up to the limit of one read (`COMPARED_CHARACTERS`). A memory answers a
 * query if it passes the query's filter and would get at least the query's `min_score` by its own words and vector, as
 * the best hit: the calibration is that of queries. A memory that supersedes an answer answers, too, if it passes the
 * filter; its `score` is null if it does not reach `min_score` itself. A few answers may be missed, since only queries
 * that the memory's words or vector lead to are scored.
 */
export async function compareStanding(
  context: ReadContext,
  { defaults, ...asked }: StandingRest & { readonly defaults: RetrievalOptions },
): Promise<Compared> {
  const least = defaults.minScore ?? context.config.OM_MIN_SCORE;
  const { pairs, rest } = findPairs(context, asked, least);
  const scored = pairs.filter(({ isScored }) => isScored);
  const vectors = await vectorsOf(context, [...new Set(scored.map(({ query }) => query))]);
  const { store } = context.open();
  const matches = store.read(() => {
    const passes = createFilters(store, pairs, context.clock.now());
    const cosineOf = createCosines(store, scored, vectors);
    const base = readCosineBase(store, vectors.space?.modelNo ?? null);
    return pairs.flatMap((pair): StandingMatch[] => {
      const { query, memoryNo, isScored, supersedes } = pair;
      const { queryNo, minScore } = query;
      const cosine = isScored ? cosineOf(pair) : null;
      const score = isScored ? confidenceBy(store, query, { ...pair, cosine, base }) : 0;
      const answers = isScored && score >= (minScore ?? least);
      if (!(answers || supersedes !== null) || !passes(query, memoryNo)) return [];
      return [{ queryNo, memoryNo, score: answers ? score : null, supersedes }];
    });
  });
  return { matches, rest };
}

/**
 * Greatest number of reads in a row that may index queries in steps; the largest index takes some 25. The next read
 * indexes all that are left, so that comparisons go on even if indexes are dropped again and again.
 */
const MAX_STEPS = 300;

/** Greatest size in bytes that the indexes of standing queries have on all threads of a process together. */
const MAX_BYTES = 250_000_000;
/**
 * Least number of bytes that the indexes on one thread may have, however many threads there are. 20,000 queries of ten
 * English words, as many as a tenant may have, take 52 MB: they stay whole beside the indexes of small tenants.
 */
const LEAST_BYTES = 60_000_000;
/** The sizes of the indexes that the thread keeps. Exported for tests. */
export const indexes = createKeptWithin<Store>();

/**
 * Returns the greatest size in bytes that the indexes of all tenants on one of `threads` threads have together, unless
 * the one in use is larger. The indexes of the longest unused tenants are dropped, and made anew in steps.
 */
const mostBytes = (threads: number): number => Math.max(LEAST_BYTES, MAX_BYTES / threads);

/** A standing query, and a memory that may answer it. */
interface Pair {
  readonly query: PreparedQuery;
  readonly memoryNo: number;
  readonly text: OwnText;
  /** Number of memories of the query's user, or of all users; the other conditions of its filter do not count. */
  readonly scope: number;
  /** Whether the memory may reach `min_score`, so that its score must be computed. */
  readonly isScored: boolean;
  /** `memoryNo` of the answer that the memory supersedes; null for none. */
  readonly supersedes: number | null;
}

/**
 * Finds the pairs of memories and queries that they may answer, up to `COMPARED_CHARACTERS`. A read that has to index
 * many queries first compares none of them: the next read goes on.
 */
function findPairs(
  { open, threads }: ReadContext,
  { memoryNos, afterQuery, steps = 0 }: StandingRest,
  least: number,
): { readonly pairs: readonly Pair[]; readonly rest: StandingRest | null } {
  const { store, liveModels } = open();
  return store.read(() => {
    // What was indexed is lost when the file is closed, as beside many other tenants.
    const inSteps = steps < MAX_STEPS;
    const { index, isWhole } = indexOf(store, inSteps);
    for (const other of indexes.note(store, index.bytes, mostBytes(threads))) {
      forgetIndex(other);
      forgetNeighbours(other);
    }
    if (!isWhole || !keepNeighbours(store, index, { liveModels, inSteps }))
      return { pairs: [], rest: { memoryNos, afterQuery, steps: steps + 1 } };
    const pairs: Pair[] = [];
    const filters = new Set<string>();
    let room = COMPARED_CHARACTERS;
    const candidatesOf = createCandidates(store, index, { least, memoryNos, liveModels });
    for (const [place, memoryNo] of memoryNos.entries()) {
      if (room <= 0) return { pairs, rest: { memoryNos: memoryNos.slice(place), afterQuery: 0 } };
      const { candidates, judge, searched } = candidatesOf(memoryNo, place === 0 ? afterQuery : 0);
      for (const [tried, query] of candidates.entries()) {
        if (room <= 0)
          return { pairs, rest: { memoryNos: memoryNos.slice(place), afterQuery: candidates[tried - 1]!.queryNo } };
        const { pair, characters } = judge(query);
        room -= CHARACTERS_PER_PAIR + query.characters + characters;
        if (pair === undefined) continue;
        pairs.push(pair);
        const known = filters.size;
        if (filters.add(filterKeyOf(query)).size > known) room -= CHARACTERS_PER_FILTER;
      }
      // Only now, so that each read compares at least some queries with the first of its memories.
      room -= searched;
    }
    return { pairs, rest: null };
  });
}

/**
 * Creates the function that finds the queries after the number `afterQuery` which a memory may answer: `candidates`, in
 * the order of their numbers. It also returns `judge`, which makes the pair of the memory and one of these queries
 * (undefined if the memory surely does not answer it), and `searched`, the cost of the search by vectors as a number of
 * characters.
 */
function createCandidates(
  store: Store,
  index: StandingIndex,
  {
    least,
    memoryNos,
    liveModels,
  }: {
    readonly least: number;
    readonly memoryNos: readonly number[];
    readonly liveModels: SectorModels | null;
  },
) {
  const textOf = createTextReader(store);
  const owners = ownersOf(store, memoryNos);
  const scopes = createScopes(store);
  const provenance = readProvenance(store, memoryNos);
  const supersededBy = createSupersededFinder(store, memoryNos, 1 + COMPARED_CHARACTERS / CHARACTERS_PER_PAIR);
  const hasVectors = liveModels !== null;
  const strengthOf = createLeastStrength({ least, scopes, hasVectors });
  const nearOf = createNearFinder(store, index, { least, scopes, memoryNos, liveModels });
  return (memoryNo: number, afterQuery: number) => {
    const text = index.queries.size === 0 ? undefined : textOf([memoryNo], MAX_CHARACTERS).get(memoryNo);
    // The root memory of a document repeats its chunks, which are compared by themselves.
    const isOwn = text !== undefined && provenance.get(memoryNo)?.chunk !== null;
    const owner = owners.get(memoryNo) ?? '';
    const found = isOwn ? nearOf(memoryNo, owner) : { queries: [], characters: 0 };
    const near = new Set(found.queries);
    const byWords = new Set(isOwn ? index.candidatesFor(text, owner, strengthOf) : []);
    const answers = supersededBy(memoryNo, afterQuery);
    const older = [...answers.keys()].flatMap((queryNo) => index.queries.get(queryNo) ?? []);
    const candidates = [...new Set([...byWords, ...near, ...older])]
      .filter(({ queryNo }) => queryNo > afterQuery)
      .sort((a, b) => a.queryNo - b.queryNo);
    const judge = (query: PreparedQuery): { readonly pair: Pair | undefined; readonly characters: number } => {
      if (text === undefined) return { pair: undefined, characters: 0 };
      const scope = scopes(query.userId);
      const isScored =
        near.has(query) ||
        (byWords.has(query) && highestScore(store, query, { text, scope, hasVectors }) >= (query.minScore ?? least));
      const supersedes = answers.get(query.queryNo) ?? null;
      const pair = isScored || supersedes !== null ? { query, memoryNo, text, scope, isScored, supersedes } : undefined;
      return { pair, characters: text.content.length };
    };
    return { candidates, judge, searched: found.characters };
  };
}

/**
 * Least strength of a memory's words (0..1) for a query for which already some of its words may suffice: in a small
 * scope, and if the query has several sentences that ask.
 */
const SMALL_SCOPE_STRENGTH = 0.15;
/** Step in which the least strength is searched, from 0 up: the result is at most this much too high. */
const STEP = 0.02;

/**
 * Creates the function that returns the least strength of words (0..1) with which an answer could reach the query's
 * `min_score` in its scope, if its vector is no nearer than `NEAR_MOST`. It is `SMALL_SCOPE_STRENGTH` in a small scope,
 * and for a query with several sentences that ask.
 */
function createLeastStrength({
  least,
  scopes,
  hasVectors,
}: {
  readonly least: number;
  readonly scopes: (userId: string | null) => number;
  readonly hasVectors: boolean;
}): (query: PreparedQuery) => number {
  const known = new Map<string, number>();
  return ({ userId, minScore, forms, text }) => {
    const scope = scopes(userId);
    // A message of several sentences may be answered by the words of one, and a small scope asks for a share of words.
    if (enoughHeld(scope) < 1 || text.askingTerms.length > 1) return SMALL_SCOPE_STRENGTH;
    const key = `${scope} ${minScore ?? least} ${forms}`;
    let strength = known.get(key);
    if (strength !== undefined) return strength;
    for (strength = 0; strength < 1; strength += STEP) {
      const near = hasVectors ? strength + NEAR_WEIGHT * NEAR_MOST : 0;
      const evidence = [{ strength: near, wordsStrength: strength, speakerMatch: 1, held: 0 }];
      if (confidenceOf({ evidence }, { scope, forms }) >= (minScore ?? least)) break;
    }
    known.set(key, strength);
    return strength;
  };
}

/** Nearness that is assumed for the vector of a memory that is not known yet; few answers are nearer. */
const NEAR_MOST = 0.5;

/** Estimates the highest score that the memory can have: by its words and a vector of the nearness `NEAR_MOST`. */
function highestScore(
  store: Store,
  query: PreparedQuery,
  { text, scope, hasVectors }: { readonly text: OwnText; readonly scope: number; readonly hasVectors: boolean },
): number {
  return confidenceBy(store, query, { text, cosine: hasVectors ? NEAR_MOST : null, base: 0, scope });
}

/** Returns the confidence of a query whose best hit is this text: the score that `calibrate` gives the best hit. */
function confidenceBy(
  store: Store,
  { text: asked, forms }: PreparedQuery,
  {
    text,
    cosine,
    base,
    scope,
  }: { readonly text: OwnText; readonly cosine: number | null; readonly base: number; readonly scope: number },
): number {
  const measured = meterOf(store, asked, base).measure(text, cosine);
  const evidence = measured.map(({ strength, held }, place) => {
    const isCompared = place === 0 && cosine !== null;
    return { strength: isCompared ? strength : 0, wordsStrength: isCompared ? 0 : strength, speakerMatch: 1, held };
  });
  return confidenceOf({ evidence }, { scope, forms });
}

/** Returns a text that is equal for queries whose filters, the user included, are equal. */
function filterKeyOf({ userId, filter }: PreparedQuery): string {
  return JSON.stringify([userId, filter]);
}

/**
 * Creates the function that tells whether the memory of one of these pairs passes the filter of its query now. Queries
 * with equal filters share one statement, which checks only the memories of their pairs.
 */
function createFilters(store: Store, pairs: readonly Pair[], now: number) {
  const asked = Map.groupBy(pairs, ({ query }) => filterKeyOf(query));
  const passing = new Map<string, ReadonlySet<number>>();
  return (query: PreparedQuery, memoryNo: number): boolean => {
    const { userId, filter } = query;
    const key = filterKeyOf(query);
    let passed = passing.get(key);
    if (passed === undefined) {
      const whole = userId === null ? filter : { ...filter, userIds: [userId] };
      const compiled = compileFilter(whole, now, { orStillHolds: true });
      const memoryNos = [...new Set(asked.get(key)!.map((pair) => pair.memoryNo))];
      passing.set(key, (passed = new Set(listPassingOf(store, compiled, memoryNos))));
    }
    return passed.has(memoryNo);
  };
}

function ownersOf(store: Store, memoryNos: readonly number[]): ReadonlyMap<number, string> {
  const rows = listOwners(store, memoryNos);
  return new Map(rows.map(({ memoryNo, userId }) => [memoryNo, userId]));
}

/** Creates a function that counts the memories of a user, or of all users for null, and remembers the counts. */
function createScopes(store: Store): (userId: string | null) => number {
  const counted = new Map<string | null, number>();
  return (userId) => {
    let scope = counted.get(userId);
    if (scope === undefined) {
      scope = userId === null ? memoryCount(store) : (findUsers(store, [userId])[0]?.memories ?? 0);
      counted.set(userId, scope);
    }
    return scope;
  };
}

import { createEvidenceMeter, type EvidenceMeter, NEAR_WEIGHT } from '../retrieve/evidence-meter.ts';
import { enoughHeld } from '../retrieve/lenience.ts';
import { type Circumstances, confidenceOf } from '../retrieve/calibrate.ts';
import { type QueryVector, similaritiesOf } from '../retrieve/dense.ts';
import { createStandingIndex, type PreparedQuery, type StandingIndex } from '../retrieve/standing-index.ts';
import { bitsWithin, createStandingNeighbours, type StandingNeighbours } from '../retrieve/standing-neighbours.ts';
import { memoryCount } from '../retrieve/term-frequencies.ts';
import { readCosineBase } from '../store/calibrations.ts';
import { compileFilter } from '../store/filter.ts';
import { distinctModels, type SectorModels, type StoredModel } from '../store/live-model.ts';
import { findUsers } from '../store/memory-counts.ts';
import type { Store } from '../store/open-store.ts';
import { createTextReader, type OwnText } from '../store/own-texts.ts';
import { listPassingOf } from '../store/passing-memories.ts';
import { readProvenance } from '../store/provenance.ts';
import { findSupersededAnswers, listOwners, readComparedQueries, standingVersion } from '../store/standing.ts';
import { countStandingVectors, findStandingVector, readStandingVectors } from '../store/standing-vectors.ts';
import { readCodesOf } from '../store/vector-codes.ts';
import { signBits } from '../store/vector-encoding.ts';
import type { RetrievalOptions, StandingMatch } from '../types.ts';
import { spaceOf } from '../tenant-file/open-tenant.ts';
import type { ReadContext } from './read-context.ts';

/** The part of a memory's text that is compared, in characters: as much as a query reads of it. */
const MAX_CHARACTERS = 4_000;

/**
 * Compares memories with all standing queries. A memory answers a query if it passes its filter, and if by its own
 * words and vector it would get at least the query's `min_score` as the best hit: the calibration is that of queries.
 * What supersedes an answer answers, too, if it passes the filter.
 */
export async function compareStanding(
  context: ReadContext,
  { memoryNos, defaults }: { readonly memoryNos: readonly number[]; readonly defaults: RetrievalOptions },
): Promise<StandingMatch[]> {
  const least = defaults.minScore ?? context.config.OM_MIN_SCORE;
  const pairs = findPairs(context, memoryNos, least);
  const vectors = new Map<number, QueryVector | null>();
  for (const { query } of pairs) {
    if (!vectors.has(query.queryNo)) vectors.set(query.queryNo, await vectorOf(context, query));
  }
  const { store } = context.open();
  return store.read(() => {
    const queries = indexOf(store).queries;
    const passes = createFilters(store, memoryNos, context.clock.now());
    const superseding = findSupersededAnswers(store, memoryNos).flatMap(({ memoryNo, queryNo, supersedes }) => {
      const query = queries.get(queryNo);
      return query === undefined || !passes(query, memoryNo) ? [] : [{ queryNo, memoryNo, supersedes }];
    });
    const answers = pairs.flatMap(({ query, memoryNo, text, scope }) => {
      const { queryNo, minScore } = query;
      const vector = vectors.get(queryNo) ?? null;
      const score = scoreOf(store, query, { memoryNo, text, vector, scope });
      return score < (minScore ?? least) || !passes(query, memoryNo) ? [] : [{ queryNo, memoryNo, score }];
    });
    const byPair = new Map<string, StandingMatch>();
    for (const match of [...superseding, ...answers]) {
      const key = `${match.queryNo} ${match.memoryNo}`;
      byPair.set(key, { score: null, supersedes: null, ...byPair.get(key), ...match });
    }
    return [...byPair.values()];
  });
}

/** A query, and a memory that may answer it. */
interface Pair {
  readonly query: PreparedQuery;
  readonly memoryNo: number;
  readonly text: OwnText;
  /** Number of memories that the query would search. */
  readonly scope: number;
}

/** Finds the pairs that may reach the floor, whatever the vectors say. */
function findPairs({ open }: ReadContext, memoryNos: readonly number[], least: number): Pair[] {
  const { store, liveModels } = open();
  return store.read(() => {
    const index = indexOf(store);
    if (index.queries.size === 0) return [];
    const texts = createTextReader(store)(memoryNos, MAX_CHARACTERS);
    const owners = ownersOf(store, memoryNos);
    const scopes = createScopes(store);
    const provenance = readProvenance(store, memoryNos);
    // The root memory of a document is made of its parts, which answer by themselves.
    const own = [...texts].filter(([memoryNo]) => provenance.get(memoryNo)?.chunk !== null);
    const strengthOf = createLeastStrength({ least, scopes, hasVectors: liveModels !== null });
    const nearOf = createNearFinder(store, index, { least, scopes, memoryNos, liveModels });
    return own.flatMap(([memoryNo, text]) => {
      const owner = owners.get(memoryNo) ?? '';
      const byWords = index.candidatesFor(text, owner, strengthOf).filter((query) => {
        const scope = scopes(query.userId);
        return (
          highestScore(store, query, { text, scope, hasVectors: liveModels !== null }) >= (query.minScore ?? least)
        );
      });
      const found = new Set([...byWords, ...nearOf(memoryNo, owner)]);
      return [...found].map((query) => ({ query, memoryNo, text, scope: scopes(query.userId) }));
    });
  });
}

/** Whether vectors of a model find queries that words do not. Those of the offline embedder are made of the words. */
export function hasNeighbours({ encoding }: Pick<StoredModel, 'encoding'>): boolean {
  return encoding === 'float32';
}

/** Makes the function that finds the queries which a memory may answer for its vector alone. */
function createNearFinder(
  store: Store,
  { queries }: StandingIndex,
  {
    least,
    scopes,
    memoryNos,
    liveModels,
  }: {
    readonly least: number;
    readonly scopes: (userId: string | null) => number;
    readonly memoryNos: readonly number[];
    readonly liveModels: SectorModels | null;
  },
): (memoryNo: number, userId: string) => readonly PreparedQuery[] {
  const live = liveModels === null ? undefined : distinctModels(liveModels)[0];
  if (live === undefined || !hasNeighbours(live)) return () => [];
  const { near } = neighboursOf(store, queries, live);
  const codes = readCodesOf(store, spaceOf(live), memoryNos);
  const base = readCosineBase(store, live.modelNo);
  const known = new Map<string, number>();
  const reachOf = ({ userId, minScore, forms }: PreparedQuery) => {
    const scope = scopes(userId);
    const key = `${scope} ${minScore} ${forms}`;
    let reach = known.get(key);
    if (reach === undefined) {
      const nearness = leastNearness(minScore ?? least, { scope, forms });
      reach = nearness > 1 ? -1 : bitsWithin(base + nearness * (1 - base), live.dimensions);
      known.set(key, reach);
    }
    return reach;
  };
  return (memoryNo, userId) => near(codes.get(memoryNo) ?? [], userId, reachOf);
}

/** The nearness with which a memory that shares no word with a query reaches a score; above 1 where none does. */
function leastNearness(score: number, circumstances: Circumstances): number {
  for (let near = 0; near <= 1; near += STEP) {
    const evidence = [{ strength: NEAR_WEIGHT * near, wordsStrength: 0, voiced: 1, held: 0 }];
    if (confidenceOf({ evidence }, circumstances) >= score) return near;
  }
  return Infinity;
}

/** Strength that is asked for where a part of the words is enough, whatever their strength. */
const SMALL_SCOPE_STRENGTH = 0.15;
/** Step in which the least strength is looked for. */
const STEP = 0.02;

/**
 * Makes the function that says which strength of words an answer needs: the least with which it could reach the floor
 * in its scope, whatever its vector says.
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
      const evidence = [{ strength: near, wordsStrength: strength, voiced: 1, held: 0 }];
      if (confidenceOf({ evidence }, { scope, forms }) >= (minScore ?? least)) break;
    }
    known.set(key, strength);
    return strength;
  };
}

/** Nearness that the vector of a memory may add where it is not known yet; few answers are nearer. */
const NEAR_MOST = 0.5;

function highestScore(
  store: Store,
  query: PreparedQuery,
  { text, scope, hasVectors }: { readonly text: OwnText; readonly scope: number; readonly hasVectors: boolean },
): number {
  return confidenceBy(store, query, { text, cosine: hasVectors ? NEAR_MOST : null, base: 0, scope });
}

function scoreOf(
  store: Store,
  query: PreparedQuery,
  { memoryNo, text, vector, scope }: Omit<Pair, 'query'> & { readonly vector: QueryVector | null },
): number {
  const cosine = vector === null ? null : (similaritiesOf(store, vector, [memoryNo])[0]?.similarity ?? null);
  const base = readCosineBase(store, vector?.modelNo ?? null);
  return confidenceBy(store, query, { text, cosine, base, scope });
}

/** The confidence of a query whose best hit is this text: what `calibrate` gives the best hit as its score. */
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
    return { strength: isCompared ? strength : 0, wordsStrength: isCompared ? 0 : strength, voiced: 1, held };
  });
  return confidenceOf({ evidence }, { scope, forms });
}

/** Meters by query and base: one takes 20 µs to make, and the same few queries are compared again and again. */
const meters = new WeakMap<PreparedQuery['text'], { readonly base: number; readonly meter: EvidenceMeter }>();

function meterOf(store: Store, asked: PreparedQuery['text'], base: number): EvidenceMeter {
  const kept = meters.get(asked);
  if (kept?.base === base) return kept.meter;
  const meter = createEvidenceMeter(store, asked, base);
  meters.set(asked, { base, meter });
  return meter;
}

/**
 * Makes the function that tells whether one of these memories passes the filter of a query now. Queries of one filter
 * share one look into the file.
 */
function createFilters(store: Store, memoryNos: readonly number[], now: number) {
  const passing = new Map<string, ReadonlySet<number>>();
  return ({ userId, filter }: PreparedQuery, memoryNo: number): boolean => {
    const key = JSON.stringify([userId, filter]);
    let passed = passing.get(key);
    if (passed === undefined) {
      const whole = userId === null ? filter : { ...filter, userIds: [userId] };
      const compiled = compileFilter(whole, now, { orStillHolds: true });
      passing.set(key, (passed = new Set(listPassingOf(store, compiled, memoryNos))));
    }
    return passed.has(memoryNo);
  };
}

/**
 * Returns the vector of a query by the live model, the stored one or a new one; null where there is no model, or where
 * it cannot be asked: then words decide.
 */
async function vectorOf(
  { open, questionerOf }: ReadContext,
  { query, queryNo }: PreparedQuery,
): Promise<QueryVector | null> {
  const { store, liveModels } = open();
  const live: StoredModel | undefined = liveModels === null ? undefined : distinctModels(liveModels)[0];
  if (live === undefined) return null;
  const stored = findStandingVector(store, live.modelNo, queryNo);
  const embedding = stored ?? (await questionerOf(live)?.embedQuery(query, undefined));
  return embedding == null ? null : { ...spaceOf(live), embedding };
}

/** Indexes by the connection on which they were made, each for one set of queries. */
const indexes = new WeakMap<Store, { readonly version: string; readonly index: StandingIndex }>();

/** Returns the index of all queries, which is made anew when one came or went. Call inside a read. */
function indexOf(store: Store): StandingIndex {
  const version = standingVersion(store);
  const kept = indexes.get(store);
  if (kept?.version === version) return kept.index;
  const index = createStandingIndex(readComparedQueries(store));
  indexes.set(store, { version, index });
  return index;
}

/** Vectors by the connection on which they were read, each for one set of queries and one model. */
const neighbours = new WeakMap<Store, { readonly version: string; readonly neighbours: StandingNeighbours }>();

/** Returns the index of all queries that have a vector of a model. Call inside a read. */
function neighboursOf(
  store: Store,
  queries: StandingIndex['queries'],
  { modelNo, dimensions }: StoredModel,
): StandingNeighbours {
  const version = `${standingVersion(store)} ${modelNo} ${countStandingVectors(store, modelNo)}`;
  const kept = neighbours.get(store);
  if (kept?.version === version) return kept.neighbours;
  const placed = [...readStandingVectors(store, modelNo)].flatMap(({ queryNo, embedding }) => {
    const query = queries.get(queryNo);
    return query === undefined ? [] : { query, code: signBits(embedding) };
  });
  const made = createStandingNeighbours(placed, dimensions);
  neighbours.set(store, { version, neighbours: made });
  return made;
}

function ownersOf(store: Store, memoryNos: readonly number[]): ReadonlyMap<number, string> {
  const rows = listOwners(store, memoryNos);
  return new Map(rows.map(({ memoryNo, userId }) => [memoryNo, userId]));
}

/** Makes a function that counts the memories of a user, or of all users for null, once each. */
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

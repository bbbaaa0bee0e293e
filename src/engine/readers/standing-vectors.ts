/** What vectors decide in a comparison with standing queries: which queries are near a memory, and their cosines. */

import { type Circumstances, confidenceOf } from '../retrieve/calibrate.ts';
import { type QueryVector, similaritiesOf } from '../retrieve/dense.ts';
import { NEAR_WEIGHT } from '../retrieve/evidence-meter.ts';
import type { PreparedQuery, StandingIndex } from '../retrieve/standing-index.ts';
import { bitsWithin, createStandingNeighbours, type StandingNeighbours } from '../retrieve/standing-neighbours.ts';
import { readCosineBase } from '../store/calibrations.ts';
import { distinctModels, type SectorModels, type StoredModel } from '../store/live-model.ts';
import type { Store } from '../store/open-store.ts';
import { standingVersion } from '../store/standing.ts';
import { countStandingVectors, findStandingVectors, listPlacedQueryNos } from '../store/standing-vectors.ts';
import { readCodesOf } from '../store/vector-codes.ts';
import { signBits } from '../store/vector-encoding.ts';
import { spaceOf } from '../tenant-file/open-tenant.ts';
import type { ReadContext } from './read-context.ts';

/**
 * Greatest number of queries without a stored vector that one read embeds, all at the same time. The others are
 * compared by their words alone, since a claim soon embeds them.
 */
const EMBEDDED_IN_READ = 256;
/** Step in which `leastNearness` tries values from 0 up: its result is at most this much too high. */
const STEP = 0.02;
/** Greatest number of vectors that one read adds to those it knows: of 1,536 dimensions they have 12 MB. */
const PLACED_AT_ONCE = 2_048;
/** Number of bits of codes whose comparison takes as long as that of a character of texts. */
const BITS_PER_CHARACTER = 2_048;

/**
 * Tells whether a model's vectors can find queries that share no word with a memory. Those of the offline embedder
 * cannot, since they are computed from words.
 */
export function hasNeighbours({ encoding }: Pick<StoredModel, 'encoding'>): boolean {
  return encoding === 'float32';
}

/** The queries that a memory may answer because of its vector alone. */
interface NearQueries {
  readonly queries: readonly PreparedQuery[];
  /** Cost of the search for these queries, as the number of characters of text whose comparison takes equally long. */
  readonly characters: number;
}

/** Finds the queries that a memory of a user may answer because of its vector alone. */
type NearFinder = (memoryNo: number, userId: string) => NearQueries;

/**
 * Creates the function that finds the queries which a memory may answer because of its vector alone. It finds none if
 * there is no live model, or one whose vectors say no more than words (`hasNeighbours`). It must be called inside a
 * read, with an index that is whole.
 * @param options.least `min_score` of queries that state none
 */
export function createNearFinder(
  store: Store,
  index: StandingIndex,
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
): NearFinder {
  const live = liveModels === null ? undefined : distinctModels(liveModels)[0];
  if (live === undefined || !hasNeighbours(live)) return () => ({ queries: [], characters: 0 });
  const { near, countFor } = update(store, index, live, Infinity).neighbours;
  const codes = readCodesOf(store, spaceOf(live), memoryNos);
  const base = readCosineBase(store, live.modelNo);
  const reaches = new Map<string, number>();
  const reachOf = ({ userId, minScore, forms }: PreparedQuery) => {
    const scope = scopes(userId);
    const key = `${scope} ${minScore} ${forms}`;
    let reach = reaches.get(key);
    if (reach === undefined) {
      const nearness = leastNearness(minScore ?? least, { scope, forms });
      reach = nearness > 1 ? -1 : bitsWithin(base + nearness * (1 - base), live.dimensions);
      reaches.set(key, reach);
    }
    return reach;
  };
  return (memoryNo, userId) => {
    const own = codes.get(memoryNo) ?? [];
    const bits = own.length * countFor(userId) * live.dimensions;
    return { queries: near(own, userId, reachOf), characters: bits / BITS_PER_CHARACTER };
  };
}

/**
 * Returns the least nearness (0..1: cosine above that of unrelated texts, divided by the greatest that is possible)
 * with which a memory that has no word of the query reaches `score`; Infinity if none suffices.
 */
function leastNearness(score: number, circumstances: Circumstances): number {
  for (let near = 0; near <= 1; near += STEP) {
    const evidence = [{ strength: NEAR_WEIGHT * near, wordsStrength: 0, speakerMatch: 1, held: 0 }];
    if (confidenceOf({ evidence }, circumstances) >= score) return near;
  }
  return Infinity;
}

/** The queries that have a vector of one model, as a connection saw them last. */
interface KnownNeighbours {
  readonly modelNo: number;
  readonly neighbours: StandingNeighbours;
  /** State of the queries and vectors when all were placed; null if some were left for the next read. */
  version: string | null;
}

/** Cache of the vectors of queries by the connection on which they were read. */
const known = new WeakMap<Store, KnownNeighbours>();

/**
 * Forgets the vectors of a connection. Call it whenever `forgetIndex` is called, since they belong to the queries of
 * that index.
 */
export function forgetNeighbours(store: Store): void {
  known.delete(store);
}

/**
 * Brings the vectors of queries that this connection knows up to date, by what changed since the last time. With
 * `inSteps`, one call reads at most `PLACED_AT_ONCE` of them. It must be called inside a read, with an index that is
 * whole (`indexOf`).
 * @returns whether all vectors are known; if not, call it again in a later read
 */
export function keepNeighbours(
  store: Store,
  index: StandingIndex,
  { liveModels, inSteps }: { readonly liveModels: SectorModels | null; readonly inSteps: boolean },
): boolean {
  const live = liveModels === null ? undefined : distinctModels(liveModels)[0];
  return (
    live === undefined ||
    !hasNeighbours(live) ||
    update(store, index, live, inSteps ? PLACED_AT_ONCE : Infinity).version !== null
  );
}

function update(
  store: Store,
  { queries }: StandingIndex,
  { modelNo, dimensions }: Pick<StoredModel, 'modelNo' | 'dimensions'>,
  most: number,
): KnownNeighbours {
  const version = `${standingVersion(store)} ${countStandingVectors(store, modelNo)}`;
  let state = known.get(store);
  if (state?.modelNo === modelNo && state.version === version) return state;
  if (state?.modelNo !== modelNo) state = { modelNo, neighbours: createStandingNeighbours(dimensions), version: null };
  known.set(store, state);
  const { neighbours } = state;
  state.version = null;
  const stored = new Set(listPlacedQueryNos(store, modelNo));
  for (const [queryNo, query] of neighbours.queries)
    if (!stored.has(queryNo) || queries.get(queryNo) !== query) neighbours.remove(queryNo);
  const missing = [...stored].filter((queryNo) => queries.has(queryNo) && !neighbours.queries.has(queryNo));
  for (const { queryNo, embedding } of findStandingVectors(store, modelNo, missing.slice(0, most)))
    neighbours.place({ query: queries.get(queryNo)!, code: signBits(embedding) });
  state.version = missing.length <= most ? version : null;
  return state;
}

/** The vectors of some queries by the live model, by `queryNo`; empty without a model. */
export interface QueryVectors {
  readonly space: Omit<QueryVector, 'embedding'> | null;
  readonly embeddings: ReadonlyMap<number, Float32Array>;
}

/**
 * Returns the vectors of these queries by the live model: the stored ones, and new ones that are made now: for all
 * other queries with the offline embedder, for at most `EMBEDDED_IN_READ` of them with a provider, in few calls. A
 * query is left out, so that its words decide, if there is no model, if the model cannot be reached or fails, or if
 * there are more queries.
 */
export async function vectorsOf(
  { open, querySourceOf }: ReadContext,
  queries: readonly Pick<PreparedQuery, 'queryNo' | 'query'>[],
): Promise<QueryVectors> {
  const { store, liveModels } = open();
  const live = liveModels === null ? undefined : distinctModels(liveModels)[0];
  if (live === undefined || queries.length === 0) return { space: null, embeddings: new Map() };
  const embeddings = new Map<number, Float32Array>();
  const isPaid = hasNeighbours(live);
  if (isPaid) {
    const queryNos = queries.map(({ queryNo }) => queryNo);
    for (const { queryNo, embedding } of findStandingVectors(store, live.modelNo, queryNos))
      embeddings.set(queryNo, embedding);
  }
  const missing = queries.filter(({ queryNo }) => !embeddings.has(queryNo));
  const source = missing.length === 0 ? null : querySourceOf(live);
  const asked = source === null ? [] : missing.slice(0, isPaid ? EMBEDDED_IN_READ : missing.length);
  await Promise.all(
    asked.map(async ({ queryNo, query }) => {
      const embedding = await source!.embedQuery(query, undefined);
      if (embedding !== null) embeddings.set(queryNo, embedding);
    }),
  );
  return { space: spaceOf(live), embeddings };
}

/** Pairs of a query and a memory whose vectors are compared. */
interface ComparedPair {
  readonly query: Pick<PreparedQuery, 'queryNo'>;
  readonly memoryNo: number;
}

/**
 * Creates the function that returns the cosine of the query and the memory of one of these pairs; null if one of them
 * has no vector. All memories of a query are read by one statement.
 */
export function createCosines(store: Store, pairs: readonly ComparedPair[], { space, embeddings }: QueryVectors) {
  const memories = Map.groupBy(pairs, ({ query }) => query.queryNo);
  const cosines = new Map<number, ReadonlyMap<number, number>>();
  return ({ query: { queryNo }, memoryNo }: ComparedPair): number | null => {
    const embedding = embeddings.get(queryNo);
    if (space === null || embedding === undefined) return null;
    let own = cosines.get(queryNo);
    if (own === undefined) {
      const memoryNos = memories.get(queryNo)!.map((pair) => pair.memoryNo);
      const ranks = similaritiesOf(store, { ...space, embedding }, memoryNos);
      cosines.set(queryNo, (own = new Map(ranks.map((rank) => [rank.memoryNo, rank.similarity]))));
    }
    return own.get(memoryNo) ?? null;
  };
}

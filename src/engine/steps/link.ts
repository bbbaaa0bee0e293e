import { assert } from '../errors.ts';
import { failpoint } from '../failpoint.ts';
import type { VectorIndex } from '../ports.ts';
import { prefetchForLink, prefetchReadyStates } from '../store/prefetch.ts';
import { createGatheredTest } from '../store/consolidations.ts';
import { findPrimarySector, isReady, listPrimarySectors, setState } from '../store/dynamics.ts';
import { deleteWaypoint, findWaypoint, putWaypoint } from '../store/edges.ts';
import { finishJob, type Claim } from '../store/jobs.ts';
import { holdsLease } from '../store/job-leases.ts';
import { distinctModels, modelOfSector, type SectorModels, type StoredModel } from '../store/live-model.ts';
import type { Store } from '../store/open-store.ts';
import { relinkedUpTo } from '../store/reembed.ts';
import { compareStored } from '../store/vector-encoding.ts';
import {
  type EncodedVector,
  hasVector,
  type MemoryVector,
  readVectors,
  readWholeVectors,
  type VectorSpace,
} from '../store/vectors.ts';
import { type OpenTenant, spaceOf } from '../tenant-file/open-tenant.ts';
import type { Sector } from '../types.ts';
import { commitInSlices, isAlone } from './commit-in-slices.ts';
import { createYielder } from './create-yielder.ts';
import { observeReady } from './observe-ready.ts';
import { readTogether } from './read-together.ts';
import { findProposed, type Proposed, putProposed } from './propose-conflicts.ts';
import { settleLinkBases, waypointThreshold } from './settle-link-bases.ts';
import { liveSources, type StepContext } from './step-context.ts';

/** Greatest number of candidates of a memory, the nearest by an index; the exact cosine decides among them. */
const LINK_CANDIDATES = 12;
/**
 * Greatest number of vectors that one search of an index returns (k). A batch has at most 256 memories, and no index
 * takes a larger k than 4,096.
 */
const MAX_SEARCHED = 1_024;
/** Number of memories whose neighbours are searched in a file in one go, before the thread yields to other work. */
const SEARCHED_AT_ONCE = 16;
/**
 * Number of memories whose neighbours are searched and written before those of the next memories: in a file while
 * nobody else writes, and always in PostgreSQL, where all of them are searched in one go, since they share its round
 * trips.
 */
const LINKED_AT_ONCE = 64;

/** A memory that is near another one, by their mean vectors (means of the vectors of all windows of a text). */
export interface Neighbour {
  /** Number of the near memory. */
  readonly memoryNo: number;
  /** Cosine of the two vectors, -1..1. */
  readonly similarity: number;
  /** `vectorNo` of the two vectors that were compared. */
  readonly vectorNos: readonly [own: number, other: number];
}

/** Result of the search for the nearest neighbour of the memory `memoryNo`, in the space of the model `modelNo`. */
export interface Found {
  readonly memoryNo: number;
  readonly modelNo: number;
  /**
   * The nearest neighbour, which may be too far away to be linked; undefined if there is no candidate, or if the memory
   * has no vector of the model.
   */
  readonly nearest: Neighbour | undefined;
  /** `memoryNo` of each memory that was compared, the nearest neighbour among them; at most 12. */
  readonly compared: readonly number[];
}

/** Result of the link step for the memory of one job, before it is written. */
interface Linked extends Found {
  readonly claim: Claim;
  /** Highest `memoryNo` that the memory could be linked to; Infinity unless all memories are linked anew. */
  readonly upTo: number;
  /** Contradictions to propose, which were found by the form of the texts (`findProposed`); null if there are none. */
  readonly proposed: Proposed | null;
}

/**
 * Runs the link step of a batch. For each memory, in order of arrival, it finds the nearest other memory of the same
 * user by mean vector, in the space of its primary sector. If it is near enough, the memory gets one waypoint
 * (automatic link) to it. If the sectors of the two differ and share a model, a waypoint back is stored too, unless the
 * other memory has one at least as near. An earlier waypoint of the memory is removed. With `OM_CONTRADICTIONS=forms`,
 * contradictions with the compared memories are proposed too.
 *
 * Consolidated memories are no candidates, so that undoing a consolidation changes no waypoint.
 *
 * A memory that arrived later and is not linked yet is no candidate either, so links do not depend on how jobs are
 * batched. Interactive adds may be linked before bulk adds that arrived earlier. While all memories are linked anew
 * (`upkeep/reembed.ts`), a memory that this has not reached gets its waypoint later, from that. Call it only if
 * `liveSources` is not empty.
 * @returns number of jobs that are done, whose memories are ready now; those whose lease was lost are skipped and not
 *   counted
 */
export async function linkMemories(context: StepContext, claims: readonly Claim[]): Promise<number> {
  assert(liveSources(context).size > 0, 'only embedded memories are linked');
  const linked: Claim[] = [];
  let waiting: readonly Claim[] = claims.toSorted((a, b) => a.memoryNo - b.memoryNo);
  // In PostgreSQL, where it takes round trips of its own, once: the searches take over what is written meanwhile.
  if (context.open().store.ahead !== null) await loadIndexes(context.open);
  while (waiting.length > 0) {
    const { store } = context.open();
    const group = store.ahead !== null || isAlone(store) ? waiting.slice(0, LINKED_AT_ONCE) : waiting;
    await settleLinkBases(context);
    const neighbours = await findNeighbours(context, group);
    await failpoint('during-link');
    let sources: ReturnType<typeof liveSources> | undefined;
    const outdated: Claim[] = [];
    await commitInSlices(
      () => context.open().store,
      neighbours,
      (store, { claim, upTo, proposed, ...near }) => {
        if (!holdsLease(store, claim)) return false;
        const now = context.clock.now();
        // While all memories are linked anew, in order of their numbers, one that has not been reached gets its
        // waypoint later, and one that has been reached since the search has a better one.
        if (claim.memoryNo <= Math.min(upTo, relinkedUpTo(store))) {
          const models = liveModelsOf(context.open());
          // A similarity says nothing that was measured before another model went live, or by a vector that is gone
          // since: its memory was erased, or has another text.
          const isOfModel = linkModel({ store, liveModels: models }, claim.memoryNo).modelNo === near.modelNo;
          if (!isOfModel || (near.nearest !== undefined && !areThere(store, near.nearest))) {
            outdated.push(claim);
            return false;
          }
          // Read in the write, whose round trips it shares.
          sources ??= liveSources(context);
          const threshold = waypointThreshold(store, near.modelNo, sources);
          putNearest(store, claim.memoryNo, { nearest: near.nearest, threshold, now, models });
        }
        if (proposed !== null) putProposed(store, proposed, now);
        linked.push(claim);
        return true;
      },
      { begin: prefetch, end: (store, written) => finish(store, written, context.clock.now()) },
    );
    waiting = [...outdated, ...waiting.slice(group.length)];
  }
  observeReady(context, 'linked', linked);
  return linked.length;
}

/** Marks linked memories as ready and their jobs as done. */
function finish(store: Store, linked: readonly Linked[], now: number): void {
  for (const { claim } of linked) setState(store, claim.memoryNo, 'ready');
  for (const { claim } of linked) finishJob(store, claim, now);
}

function prefetch(store: Store, linked: readonly Linked[]): void {
  if (store.ahead === null) return;
  const claims = linked.map(({ claim }) => claim);
  prefetchForLink(
    store,
    claims,
    linked.map(({ nearest }) => nearest),
  );
}

async function findNeighbours(context: StepContext, claims: readonly Claim[]): Promise<Linked[]> {
  const { config, clock } = context;
  const yieldTurn = createYielder();
  const neighbours: Linked[] = [];
  const atOnce = context.open().store.ahead === null ? SEARCHED_AT_ONCE : LINKED_AT_ONCE;
  for (let at = 0; at < claims.length; at += atOnce) {
    if (context.open().store.ahead === null) await loadIndexes(context.open);
    const { store } = context.open();
    const group = claims.slice(at, at + atOnce);
    const search = (): Linked[] => {
      const { indexes, liveModels } = context.open();
      const upTo = relinkedUpTo(store);
      const isLinked = rememberLinked(store);
      const isGathered = createGatheredTest(store);
      const isCandidate = (other: number, memoryNo: number) =>
        other <= upTo && (other < memoryNo || (other > memoryNo && isLinked(other))) && !isGathered(other);
      const searched = group.map(({ memoryNo }) => ({ memoryNo, upTo }));
      const near = findNearest({ store, indexes, liveModels }, searched, isCandidate);
      const proposed = config.OM_CONTRADICTIONS === 'forms' ? findProposed(store, near, clock.now()) : null;
      return group.map((claim, place) => ({ claim, upTo, ...near[place]!, proposed: proposed?.[place] ?? null }));
    };
    neighbours.push(...readTogether(store, search));
    await yieldTurn();
  }
  return neighbours;
}

/**
 * Makes the indexes of the live models read what was written since their last read, so that the next search has little
 * left to read.
 */
export async function loadIndexes(open: () => OpenTenant): Promise<void> {
  const loaded = readTogether(open().store, () => {
    const { liveModels, indexes } = open();
    return liveModels === null ? [] : distinctModels(liveModels).map(({ modelNo }) => indexes.get(modelNo));
  });
  for (const index of loaded) await index?.load();
}

/**
 * Returns the live model of a memory's primary sector, by which the memory is linked; for a memory without a sector,
 * that of `semantic`. Call it only while there are live models.
 */
export function linkModel(
  tenant: Pick<OpenTenant, 'liveModels'> & { readonly store: Store },
  memoryNo: number,
): StoredModel {
  const models = liveModelsOf(tenant);
  return models.length === 1 ? models[0] : modelOfSector(models, primarySectorOf(tenant.store, memoryNo));
}

function liveModelsOf({ liveModels }: Pick<OpenTenant, 'liveModels'>): SectorModels {
  assert(liveModels !== null, 'linking needs vectors');
  return liveModels;
}

function primarySectorOf(store: Store, memoryNo: number): Sector {
  return findPrimarySector(store, memoryNo) ?? 'semantic';
}

type SearchedTenant = Pick<OpenTenant, 'store' | 'indexes' | 'liveModels'>;

/**
 * Finds the nearest neighbour of each of several memories among those of the same user, by the live model of its
 * primary sector. One pass over an index serves all of them; the result is that of separate searches. Call it only
 * while there are live models.
 * @param memories the `memoryNo` of each memory, and the highest `memoryNo` that it may be linked to, included (`upTo`)
 * @param isCandidate tells whether the memory `memoryNo` may be linked to the memory `other`
 * @returns results in the order of `memories`
 */
export function findNearest(
  tenant: SearchedTenant,
  memories: readonly { readonly memoryNo: number; readonly upTo: number }[],
  isCandidate: (other: number, memoryNo: number) => boolean,
): Found[] {
  const byModel = Map.groupBy(memories, ({ memoryNo }) => linkModel(tenant, memoryNo));
  const results = [...byModel].flatMap(([model, group]) => {
    const index = tenant.indexes.get(model.modelNo);
    assert(index !== undefined, 'linking needs vectors');
    const near = nearestIn({ store: tenant.store, space: spaceOf(model), index }, group, isCandidate);
    return group.map(({ memoryNo }) => ({
      memoryNo,
      modelNo: model.modelNo,
      nearest: near.get(memoryNo)?.nearest,
      compared: near.get(memoryNo)?.compared ?? [],
    }));
  });
  const byMemory = new Map(results.map((result) => [result.memoryNo, result]));
  return memories.map(({ memoryNo }) => byMemory.get(memoryNo)!);
}

function nearestIn(
  { store, space, index }: { readonly store: Store; readonly space: VectorSpace; readonly index: VectorIndex },
  memories: readonly { readonly memoryNo: number; readonly upTo: number }[],
  isCandidate: (other: number, memoryNo: number) => boolean,
): Map<number, Pick<Found, 'nearest' | 'compared'>> {
  const upTo = new Map(memories.map(({ memoryNo, upTo }) => [memoryNo, upTo]));
  const found = new Map<number, Pick<Found, 'nearest' | 'compared'>>();
  const vectors = new Map<number, EncodedVector>();
  const readMissing = (numbers: readonly number[]) => {
    const missing = [...new Set(numbers)].filter((vectorNo) => !vectors.has(vectorNo));
    if (missing.length === 0) return;
    for (const vector of readVectors(store, space, missing)) vectors.set(vector.vectorNo, vector);
  };
  let searched = readWholeVectors(store, space, [...upTo.keys()]);
  // Later memories of the same batch may crowd out the candidates: then the search is widened until it has seen enough.
  for (let k = LINK_CANDIDATES + 4; searched.length > 0; k = Math.min(MAX_SEARCHED, 4 * k)) {
    const near = index.searchAll(
      searched.map(({ embedding, userNo, memory }) => ({
        embedding,
        userNo,
        k,
        purpose: 'link',
        upTo: upTo.get(memory),
      })),
    );
    // A search finds the memory itself too, whose vector is known already.
    const others = searched.map((own, place) => near[place]!.filter((vectorNo) => vectorNo !== own.vectorNo));
    const candidatesOf = (place: number) =>
      others[place]!.map((vectorNo) => vectors.get(vectorNo))
        .filter((vector) => vector !== undefined)
        .filter((vector) => isCandidate(vector.memory, searched[place]!.memory))
        .slice(0, LINK_CANDIDATES);
    // Nearly always the first vectors are the candidates. Most reads of a vector read a page that is not in the cache.
    readMissing(others.flatMap((numbers) => numbers.slice(0, LINK_CANDIDATES)));
    askCandidates(store, vectors, searched);
    readMissing(others.filter((_, place) => candidatesOf(place).length < LINK_CANDIDATES).flat());
    askCandidates(store, vectors, searched);
    searched = searched.filter((own, place) => {
      const candidates = candidatesOf(place);
      if (candidates.length < LINK_CANDIDATES && near[place]!.length === k && k < MAX_SEARCHED) return true;
      found.set(own.memory, {
        nearest: nearestAmong(own, space, candidates),
        compared: [...new Set(candidates.map(({ memory }) => memory))],
      });
      return false;
    });
  }
  return found;
}

/**
 * In PostgreSQL, reads ahead whether candidates are linked that arrived later than one of the memories: only of these
 * `isCandidate` asks it. In a file it does nothing.
 */
function askCandidates(
  store: Store,
  vectors: ReadonlyMap<number, EncodedVector>,
  searched: readonly MemoryVector[],
): void {
  if (store.ahead === null) return;
  const first = searched.reduce((least, { memory }) => Math.min(least, memory), Infinity);
  const candidates = [...vectors.values()].map(({ memory }) => memory);
  prefetchReadyStates(
    store,
    candidates.filter((memory) => memory > first),
  );
}

/**
 * Replaces a memory's waypoint (automatic link to its nearest memory): removes the old one, and links to `nearest` if
 * their similarity is at least `threshold` (a cosine), with the waypoint back that `linkMemories` describes. Call it
 * inside a write transaction.
 */
export function putNearest(
  store: Store,
  memoryNo: number,
  {
    nearest,
    threshold,
    now,
    models,
  }: {
    readonly nearest: Neighbour | undefined;
    readonly threshold: number;
    readonly now: number;
    readonly models: SectorModels;
  },
): void {
  deleteWaypoint(store, memoryNo);
  if (nearest !== undefined && nearest.similarity >= threshold) drawWaypoint(store, memoryNo, nearest, { now, models });
}

/**
 * Whether both vectors by which a neighbour was found are still stored. A vector's number is never used again, so these
 * are then the vectors that were measured.
 */
export function areThere(store: Store, { vectorNos }: Neighbour): boolean {
  return vectorNos.every((vectorNo) => hasVector(store, vectorNo));
}

/**
 * Returns the candidate with the highest cosine, and of several with the same cosine the oldest; undefined if there are
 * no candidates.
 */
function nearestAmong(
  own: MemoryVector,
  { encoding }: VectorSpace,
  candidates: readonly EncodedVector[],
): Neighbour | undefined {
  const cosineWith = compareStored(own.embedding, encoding);
  let nearest: Neighbour | undefined;
  for (const { vectorNo, memory, blob, offset, form } of candidates) {
    const similarity = cosineWith(blob, offset, form);
    const isNearer =
      nearest === undefined ||
      similarity > nearest.similarity ||
      (similarity === nearest.similarity && memory < nearest.memoryNo);
    if (isNearer) nearest = { memoryNo: memory, similarity, vectorNos: [own.vectorNo, vectorNo] };
  }
  return nearest;
}

/**
 * Makes a function that tells whether the link step has run for a memory. It reads each memory's state once: the
 * memories of a batch are near each other, so the same memories are tested often.
 */
function rememberLinked(store: Store): (memoryNo: number) => boolean {
  const linked = new Map<number, boolean>();
  return (memoryNo) => {
    let isLinked = linked.get(memoryNo);
    if (isLinked === undefined) linked.set(memoryNo, (isLinked = isReady(store, memoryNo)));
    return isLinked;
  };
}

function drawWaypoint(
  store: Store,
  src: number,
  { memoryNo: dst, similarity }: Neighbour,
  { now, models }: { readonly now: number; readonly models: SectorModels },
): void {
  const [from, to] = listPrimarySectors(store, src, dst);
  if (from === undefined || to === undefined) return; // The neighbour was deleted since it was found.
  putWaypoint(store, { src, dst, similarity }, now);
  if (from === to) return;
  // The other memory's waypoint is measured by that memory's model, and similarities of two models are not compared.
  if (modelOfSector(models, from).modelNo !== modelOfSector(models, to).modelNo) return;
  const back = findWaypoint(store, dst);
  if (back === undefined || back.similarity < similarity) putWaypoint(store, { src: dst, dst: src, similarity }, now);
}

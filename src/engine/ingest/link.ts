import { assert } from '../errors.ts';
import { failpoint } from '../failpoint.ts';
import { type OpenTenant, spaceOf } from '../open-tenant.ts';
import type { VectorIndex } from '../ports.ts';
import { setState } from '../store/dynamics.ts';
import { deleteWaypoint, findWaypoint, putWaypoint } from '../store/edges.ts';
import { finishJob, holdsLease, type Claim } from '../store/jobs.ts';
import { modelOfSector, type SectorModels, type StoredModel } from '../store/live-model.ts';
import type { Store } from '../store/open-store.ts';
import { relinkedUpTo } from '../store/reembed.ts';
import { cosine } from '../store/vector-encoding.ts';
import { findWholeVector, readVectors, type MemoryVector, type VectorSpace } from '../store/vectors.ts';
import type { Sector } from '../types.ts';
import { commitInSlices } from './commit-in-slices.ts';
import { observeReady } from './observe-ready.ts';
import { liveSources, type StepContext } from './step-context.ts';

/** Neighbours taken from the index before the exact cosine decides. */
const CANDIDATES = 12;
/** A batch is at most 256 memories, and no index takes a larger k than 4,096. */
const SEARCHED_MOST = 1_024;

export interface Neighbour {
  readonly memory: number;
  readonly similarity: number;
  /** The two vectors that were compared. */
  readonly vectorNos: readonly [own: number, other: number];
}

/**
 * The link step of a batch: for each memory, in order of arrival, the nearest other memory of the same user by mean vector, in the space
 * of its primary sector. If it is near enough, one waypoint leads there; where the sectors differ and share a model the way back is
 * stored too, unless the other side has a nearer one already.
 *
 * A memory that came later and is not linked yet is no candidate, so the graph does not depend on how jobs fell into batches. Bulk
 * adds wait behind interactive ones; between the two the order of linking is that of the work, not of arrival.
 * @returns how many jobs are done
 */
export async function linkMemories(context: StepContext, claims: readonly Claim[]): Promise<number> {
  const sources = liveSources(context);
  assert(sources.size > 0, 'only embedded memories are linked');
  const inOrder = claims.toSorted((a, b) => a.memory - b.memory);
  const upTo = relinkedUpTo(context.open().store);
  const found = inOrder.map((claim) => ({ claim, ...nearestOf(context.open(), claim.memory, upTo) }));
  const linked: Claim[] = [];
  await failpoint('during-link');
  await commitInSlices(
    () => context.open().store,
    found,
    (store, { claim, nearest, modelNo }) => {
      if (!holdsLease(store, claim)) return;
      const now = context.clock.now();
      const upToNow = relinkedUpTo(store);
      // While all are linked anew, in order, its turn comes later. What was measured before another model went live says nothing.
      if (claim.memory <= upToNow) {
        const models = liveModelsOf(context.open());
        const isCurrent = linkModel({ store, liveModels: models }, claim.memory).modelNo === modelNo;
        const near = isCurrent ? { nearest, modelNo } : nearestOf(context.open(), claim.memory, upToNow);
        const source = sources.get(near.modelNo) ?? liveSources(context).get(near.modelNo);
        const threshold = source?.embedder.waypointThreshold ?? Infinity;
        putNearest(store, claim.memory, { nearest: near.nearest, threshold, now, models });
      }
      setState(store, claim.memory, 'ready');
      finishJob(store, claim, now);
      linked.push(claim);
    },
  );
  observeReady(context, 'linked', linked);
  return linked.length;
}

/** The nearest by the model of the memory's primary sector. */
function nearestOf(
  tenant: OpenTenant,
  memory: number,
  upTo: number,
): { readonly nearest: Neighbour | undefined; readonly modelNo: number } {
  const { store, indexes } = tenant;
  const model = linkModel(tenant, memory);
  const index = indexes.get(model.modelNo);
  assert(index !== undefined, 'linking needs vectors');
  const isCandidate = (other: number) => other < memory || (other > memory && isLinked(store, other));
  const space = spaceOf(model);
  const nearest = findNearest({ store, space, index }, memory, (other) => other <= upTo && isCandidate(other));
  return { nearest, modelNo: model.modelNo };
}

/** The live model of a memory's primary sector, by which it is linked. */
export function linkModel(tenant: Pick<OpenTenant, 'store' | 'liveModels'>, memory: number): StoredModel {
  const models = liveModelsOf(tenant);
  return models.length === 1 ? models[0] : modelOfSector(models, primarySectorOf(tenant.store, memory));
}

function liveModelsOf({ liveModels }: Pick<OpenTenant, 'liveModels'>): SectorModels {
  assert(liveModels !== null, 'linking needs vectors');
  return liveModels;
}

function primarySectorOf(store: Store, memory: number): Sector {
  const found = store.prepare('SELECT primary_sector FROM memory_dynamics WHERE seq = ?').pluck().get(memory);
  return (found as Sector | undefined) ?? 'semantic';
}

/** @param isCandidate which memories may be linked to */
export function findNearest(
  { store, space, index }: { readonly store: Store; readonly space: VectorSpace; readonly index: VectorIndex },
  memory: number,
  isCandidate: (other: number) => boolean,
): Neighbour | undefined {
  const own = findWholeVector(store, space, memory);
  const user = store.prepare('SELECT user_no AS userNo FROM memories WHERE seq = ?').get(memory) as
    { userNo: number } | undefined;
  if (own === undefined || user === undefined) return undefined;
  // Later memories of the same batch may crowd out the candidates: then the search is widened until it has seen enough.
  for (let k = CANDIDATES + 4; ; k = Math.min(SEARCHED_MOST, 4 * k)) {
    const near = index.search({ embedding: own.embedding, userNo: user.userNo, purpose: 'link', k });
    const rank = new Map(near.map((vectorNo, place) => [vectorNo, place]));
    const candidates = readVectors(store, space, near).filter((vector) => isCandidate(vector.memory));
    if (candidates.length < CANDIDATES && near.length === k && k < SEARCHED_MOST) continue;
    return candidates
      .sort((a, b) => rank.get(a.vectorNo)! - rank.get(b.vectorNo)!)
      .slice(0, CANDIDATES)
      .map((candidate) => neighbour(own, candidate))
      .sort((a, b) => b.similarity - a.similarity || a.memory - b.memory)[0];
  }
}

/** Replaces a memory's waypoint by one to its nearest, if that is near enough. Call inside a write. */
export function putNearest(
  store: Store,
  memory: number,
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
  deleteWaypoint(store, memory);
  if (nearest !== undefined && nearest.similarity >= threshold) drawWaypoint(store, memory, nearest, { now, models });
}

function neighbour(own: MemoryVector, other: MemoryVector): Neighbour {
  return {
    memory: other.memory,
    similarity: cosine(own.embedding, other.embedding),
    vectorNos: [own.vectorNo, other.vectorNo],
  };
}

function isLinked(store: Store, memory: number): boolean {
  return store.prepare(`SELECT 1 FROM memory_dynamics WHERE seq = ? AND state = 'ready'`).get(memory) !== undefined;
}

function drawWaypoint(
  store: Store,
  src: number,
  { memory: dst, similarity }: Neighbour,
  { now, models }: { readonly now: number; readonly models: SectorModels },
): void {
  const sectors = store
    .prepare('SELECT seq, primary_sector FROM memory_dynamics WHERE seq IN (?, ?)')
    .all(src, dst) as { seq: number; primary_sector: Sector }[];
  if (sectors.length < 2) return; // The neighbour was deleted since it was found.
  putWaypoint(store, { src, dst, similarity }, now);
  const [one, other] = sectors.map(({ primary_sector: sector }) => sector) as [Sector, Sector];
  if (one === other) return;
  // What leaves the other side is measured by its own model, and similarities of two models are not compared.
  if (modelOfSector(models, one).modelNo !== modelOfSector(models, other).modelNo) return;
  const back = findWaypoint(store, dst);
  if (back === undefined || back.similarity < similarity) putWaypoint(store, { src: dst, dst: src, similarity }, now);
}

import { assert } from '../errors.ts';
import { failpoint } from '../failpoint.ts';
import type { VectorIndex } from '../ports.ts';
import { findPrimarySector, isReady, listPrimarySectors, setState } from '../store/dynamics.ts';
import { deleteWaypoint, findWaypoint, putWaypoint } from '../store/edges.ts';
import { finishJob, holdsLease, type Claim } from '../store/jobs.ts';
import { distinctModels, modelOfSector, type SectorModels, type StoredModel } from '../store/live-model.ts';
import type { Store } from '../store/open-store.ts';
import { relinkedUpTo } from '../store/reembed.ts';
import { cosine } from '../store/vector-encoding.ts';
import { readVectors, readWholeVectors, type MemoryVector, type VectorSpace } from '../store/vectors.ts';
import { type OpenTenant, spaceOf } from '../tenant-file/open-tenant.ts';
import type { Sector } from '../types.ts';
import { commitInSlices, isAlone } from './commit-in-slices.ts';
import { createBreather } from './create-breather.ts';
import { observeReady } from './observe-ready.ts';
import { liveSources, type StepContext } from './step-context.ts';

/** Neighbours taken from the index before the exact cosine decides. */
const CANDIDATES = 12;
/** A batch is at most 256 memories, and no index takes a larger k than 4,096. */
const SEARCHED_MOST = 1_024;
/** Memories that are searched for at once, before others may have a turn. */
const SEARCHED_AT_ONCE = 16;
/** Memories that are written before others are searched for, while nobody else writes. */
const LINKED_AT_ONCE = 64;

export interface Neighbour {
  readonly memory: number;
  readonly similarity: number;
  /** The two vectors that were compared. */
  readonly vectorNos: readonly [own: number, other: number];
}

/** What was found for a memory, in the space of which model. */
export interface Found {
  readonly memory: number;
  readonly modelNo: number;
  readonly nearest: Neighbour | undefined;
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
  assert(liveSources(context).size > 0, 'only embedded memories are linked');
  const linked: Claim[] = [];
  let waiting: readonly Claim[] = claims.toSorted((a, b) => a.memory - b.memory);
  while (waiting.length > 0) {
    const group = isAlone(context.open().store) ? waiting.slice(0, LINKED_AT_ONCE) : waiting;
    const found = await findAll(context, group);
    await failpoint('during-link');
    const sources = liveSources(context);
    const outdated: Claim[] = [];
    await commitInSlices(
      () => context.open().store,
      found,
      (store, { claim, ...near }) => {
        if (!holdsLease(store, claim)) return;
        const now = context.clock.now();
        // While all are linked anew, in order, its turn comes later.
        if (claim.memory <= relinkedUpTo(store)) {
          const models = liveModelsOf(context.open());
          // What was measured before another model went live says nothing.
          if (linkModel({ store, liveModels: models }, claim.memory).modelNo !== near.modelNo) {
            outdated.push(claim);
            return;
          }
          const threshold = sources.get(near.modelNo)?.embedder.waypointThreshold ?? Infinity;
          putNearest(store, claim.memory, { nearest: near.nearest, threshold, now, models });
        }
        setState(store, claim.memory, 'ready');
        finishJob(store, claim, now);
        linked.push(claim);
      },
    );
    waiting = [...outdated, ...waiting.slice(group.length)];
  }
  observeReady(context, 'linked', linked);
  return linked.length;
}

async function findAll(context: StepContext, claims: readonly Claim[]): Promise<(Found & { readonly claim: Claim })[]> {
  const breathe = createBreather();
  const found: (Found & { readonly claim: Claim })[] = [];
  for (let at = 0; at < claims.length; at += SEARCHED_AT_ONCE) {
    await loadIndexes(context.open);
    const { store, indexes, liveModels } = context.open();
    const some = claims.slice(at, at + SEARCHED_AT_ONCE);
    const upTo = relinkedUpTo(store);
    const isLinked = rememberLinked(store);
    const isCandidate = (other: number, memory: number) =>
      other <= upTo && (other < memory || (other > memory && isLinked(other)));
    const searched = some.map(({ memory }) => ({ memory, upTo }));
    const near = findNearest({ store, indexes, liveModels }, searched, isCandidate);
    found.push(...some.map((claim, place) => ({ claim, ...near[place]! })));
    await breathe();
  }
  return found;
}

/** Lets the indexes of the live models take over what was written, so that a search has little left to do. */
export async function loadIndexes(open: () => OpenTenant): Promise<void> {
  const { liveModels, indexes } = open();
  for (const { modelNo } of liveModels === null ? [] : distinctModels(liveModels)) await indexes.get(modelNo)?.load();
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
  return findPrimarySector(store, memory) ?? 'semantic';
}

type Searched = Pick<OpenTenant, 'store' | 'indexes' | 'liveModels'>;

/**
 * The nearest neighbours of several memories, each by the model of its primary sector: in one pass over an index, and with the result of
 * one at a time.
 * @param memories each with the highest memory that may be linked to
 * @param isCandidate which memories below may be linked to
 * @returns in the same order
 */
export function findNearest(
  tenant: Searched,
  memories: readonly { readonly memory: number; readonly upTo: number }[],
  isCandidate: (other: number, memory: number) => boolean,
): Found[] {
  const byModel = Map.groupBy(memories, ({ memory }) => linkModel(tenant, memory));
  const found = [...byModel].flatMap(([model, some]) => {
    const index = tenant.indexes.get(model.modelNo);
    assert(index !== undefined, 'linking needs vectors');
    const near = nearestIn({ store: tenant.store, space: spaceOf(model), index }, some, isCandidate);
    return some.map(({ memory }) => ({ memory, modelNo: model.modelNo, nearest: near.get(memory) }));
  });
  const byMemory = new Map(found.map((one) => [one.memory, one]));
  return memories.map(({ memory }) => byMemory.get(memory)!);
}

function nearestIn(
  { store, space, index }: { readonly store: Store; readonly space: VectorSpace; readonly index: VectorIndex },
  memories: readonly { readonly memory: number; readonly upTo: number }[],
  isCandidate: (other: number, memory: number) => boolean,
): Map<number, Neighbour> {
  const upTo = new Map(memories.map((one) => [one.memory, one.upTo]));
  const nearest = new Map<number, Neighbour>();
  let searched = readWholeVectors(store, space, [...upTo.keys()]);
  // Later memories of the same batch may crowd out the candidates: then the search is widened until it has seen enough.
  for (let k = CANDIDATES + 4; searched.length > 0; k = Math.min(SEARCHED_MOST, 4 * k)) {
    const near = index.searchAll(
      searched.map(({ embedding, userNo, memory }) => ({
        ...{ embedding, userNo, k },
        purpose: 'link',
        upTo: upTo.get(memory),
      })),
    );
    const vectors = new Map(
      readVectors(store, space, [...new Set(near.flat())]).map((vector) => [vector.vectorNo, vector]),
    );
    searched = searched.filter((own, place) => {
      const numbers = near[place]!;
      const candidates = numbers
        .map((vectorNo) => vectors.get(vectorNo))
        .filter((vector) => vector !== undefined)
        .filter((vector) => isCandidate(vector.memory, own.memory));
      if (candidates.length < CANDIDATES && numbers.length === k && k < SEARCHED_MOST) return true;
      const [best] = candidates
        .slice(0, CANDIDATES)
        .map((candidate) => neighbour(own, candidate))
        .sort((a, b) => b.similarity - a.similarity || a.memory - b.memory);
      if (best !== undefined) nearest.set(own.memory, best);
      return false;
    });
  }
  return nearest;
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

/** Asked once about each memory, as those of a batch are near each other and come up again and again. */
function rememberLinked(store: Store): (memory: number) => boolean {
  const known = new Map<number, boolean>();
  return (memory) => {
    let isLinked = known.get(memory);
    if (isLinked === undefined) known.set(memory, (isLinked = isReady(store, memory)));
    return isLinked;
  };
}

function drawWaypoint(
  store: Store,
  src: number,
  { memory: dst, similarity }: Neighbour,
  { now, models }: { readonly now: number; readonly models: SectorModels },
): void {
  const [one, other] = listPrimarySectors(store, src, dst);
  if (one === undefined || other === undefined) return; // The neighbour was deleted since it was found.
  putWaypoint(store, { src, dst, similarity }, now);
  if (one === other) return;
  // What leaves the other side is measured by its own model, and similarities of two models are not compared.
  if (modelOfSector(models, one).modelNo !== modelOfSector(models, other).modelNo) return;
  const back = findWaypoint(store, dst);
  if (back === undefined || back.similarity < similarity) putWaypoint(store, { src: dst, dst: src, similarity }, now);
}

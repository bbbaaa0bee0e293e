import { assert } from '../errors.ts';
import { failpoint } from '../failpoint.ts';
import type { OpenTenant } from '../open-tenant.ts';
import { setState } from '../store/dynamics.ts';
import { deleteWaypoint, findWaypoint, putWaypoint } from '../store/edges.ts';
import { finishJob, holdsLease, type Claim } from '../store/jobs.ts';
import type { Store } from '../store/open-store.ts';
import { cosine } from '../store/vector-encoding.ts';
import { findWholeVector, readVectors, type MemoryVector } from '../store/vectors.ts';
import type { Sector } from '../types.ts';
import { commitInSlices } from './commit-in-slices.ts';
import type { StepContext } from './step-context.ts';

/** Neighbours taken from the index before the exact cosine decides. */
const CANDIDATES = 12;
/** A batch is at most 256 memories, and no index takes a larger k than 4,096. */
const SEARCHED_MOST = 1_024;

interface Neighbour {
  readonly memory: number;
  readonly similarity: number;
}

/**
 * The link step of a batch: for each memory, in order of arrival, the nearest other memory of the same user by mean vector. If it is
 * near enough, one waypoint leads there; where the sectors differ the way back is stored too, unless the other side has a nearer
 * one already.
 *
 * A memory that came later and is not linked yet is no candidate, so the graph does not depend on how jobs fell into batches. Bulk
 * adds wait behind interactive ones; between the two the order of linking is that of the work, not of arrival.
 * @returns how many jobs are done
 */
export async function linkMemories(context: StepContext, claims: readonly Claim[]): Promise<number> {
  const { embedder } = context;
  assert(embedder !== null, 'only embedded memories are linked');
  const inOrder = claims.toSorted((a, b) => a.memory - b.memory);
  const found = inOrder.map((claim) => ({ claim, nearest: findNearest(context.open(), claim.memory) }));
  let finished = 0;
  await failpoint('during-link');
  await commitInSlices(
    () => context.open().store,
    found,
    (store, { claim, nearest }) => {
      if (!holdsLease(store, claim)) return;
      const now = context.clock.now();
      deleteWaypoint(store, claim.memory);
      if (nearest !== undefined && nearest.similarity >= embedder.waypointThreshold) {
        drawWaypoint(store, claim.memory, nearest, now);
      }
      setState(store, claim.memory, 'ready');
      finishJob(store, claim, now);
      finished++;
    },
  );
  return finished;
}

function findNearest({ store, space, index }: OpenTenant, memory: number): Neighbour | undefined {
  assert(space !== null && index !== null, 'linking needs vectors');
  const own = findWholeVector(store, space, memory);
  const user = store.prepare('SELECT user_no AS userNo FROM memories WHERE seq = ?').get(memory) as
    { userNo: number } | undefined;
  if (own === undefined || user === undefined) return undefined;
  const isCandidate = (other: number) => other < memory || (other > memory && isLinked(store, other));
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

function neighbour(own: MemoryVector, other: MemoryVector): Neighbour {
  return { memory: other.memory, similarity: cosine(own.embedding, other.embedding) };
}

function isLinked(store: Store, memory: number): boolean {
  return store.prepare(`SELECT 1 FROM memory_dynamics WHERE seq = ? AND state = 'ready'`).get(memory) !== undefined;
}

function drawWaypoint(store: Store, src: number, { memory: dst, similarity }: Neighbour, now: number): void {
  const sectors = store
    .prepare('SELECT seq, primary_sector FROM memory_dynamics WHERE seq IN (?, ?)')
    .all(src, dst) as { seq: number; primary_sector: Sector }[];
  if (sectors.length < 2) return; // The neighbour was deleted since it was found.
  putWaypoint(store, { src, dst, similarity }, now);
  if (sectors[0]?.primary_sector === sectors[1]?.primary_sector) return;
  const back = findWaypoint(store, dst);
  if (back === undefined || back.similarity < similarity) putWaypoint(store, { src: dst, dst: src, similarity }, now);
}

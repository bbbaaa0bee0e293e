import { setTimeout as pause } from 'node:timers/promises';
import { baseOfCosines } from '../store/calibrations.ts';
import { lastMemory } from '../store/memory-counts.ts';
import { findLinkBase, listOldestEmbedded, putLinkBase, waitsForVectors } from '../store/link-bases.ts';
import { distinctModels, sectorsOfModel } from '../store/live-model.ts';
import type { Store } from '../store/open-store.ts';
import { cosine } from '../store/vector-encoding.ts';
import { readWholeVectors, type VectorSpace } from '../store/vectors.ts';
import { deleteDissimilar, listDissimilar, type WeakSimilarity } from '../store/weak-waypoints.ts';
import { spaceOf } from '../tenant-file/open-tenant.ts';
import { SECTORS } from '../types.ts';
import { readTogether } from './read-together.ts';
import { type EmbeddingSource, liveSources, type StepContext } from './step-context.ts';

/**
 * Number of memories whose vectors are compared with each other. While fewer memories have vectors of a model, nothing
 * is measured.
 */
const COMPARED = 50;
/** Number of the oldest memories among which the compared ones are searched. */
const WITHIN = 2_000;
/**
 * Smallest number of pairs of memories that are not of one session (two memories without a session never are). If there
 * are fewer, pairs of one session are compared too.
 */
const MIN_PAIRS = 20;
/** Greatest number of memories whose weak waypoints one write deletes. */
const DELETED_AT_ONCE = 200;
/** Pause after each write that deletes weak waypoints (ms), in which other connections can write. */
const BREATH_MS = 2;

/**
 * Measures and stores the base (`baseOfCosines`: how similar unrelated texts are) of each live model whose embedder is
 * anisotropic (gives unrelated texts cosines far above 0), once for each model: from the first 50 of the 2,000 oldest
 * memories that have vectors of it, as soon as no older one waits for its vector. Automatic waypoints that were made
 * before and are too weak by this measure are deleted first.
 *
 * So the base, and with it which waypoints are too weak, does not depend on whether the memories were stored before the
 * model was configured or after, in which order they were embedded, or when scores were calibrated.
 */
export async function settleLinkBases(context: StepContext): Promise<void> {
  for (const unsettled of readTogether(context.open().store, () => listUnsettled(context))) {
    const { model, liveModels, source } = unsettled;
    const { store } = context.open();
    const base = store.read(() => measure(store, spaceOf(model)));
    if (base === undefined) continue;
    await storeBase(
      context,
      { modelNo: model.modelNo, base },
      {
        below: thresholdFrom(base, source),
        sectors: liveModels.length === 1 ? SECTORS : sectorsOfModel(liveModels, model.modelNo),
      },
    );
  }
}

/**
 * Stores the base of a model once no waypoint is weak by it. Those that are, any number of them, are deleted before in
 * small commits with a pause after each.
 */
async function storeBase(
  { open }: StepContext,
  { modelNo, base }: { readonly modelNo: number; readonly base: number },
  weak: WeakSimilarity,
): Promise<void> {
  for (let after = 0; ;) {
    const { store } = open();
    const { found, newest } = store.read(() => ({
      found: listDissimilar(store, weak, { after, limit: DELETED_AT_ONCE }),
      newest: lastMemory(store),
    }));
    if (found.length > 0) {
      store.write(() => deleteDissimilar(store, found, weak.below));
      await pause(BREATH_MS);
    }
    if (found.length === DELETED_AT_ONCE) {
      after = found.at(-1)!;
      continue;
    }
    after = 0;
    if (found.length > 0) continue;
    // Others may have stored the base since the look, or linked memories that were new.
    const isSettled = store.write(() => {
      if (findLinkBase(store, modelNo) !== undefined) return true;
      if (listDissimilar(store, weak, { after: newest, limit: 1 }).length > 0) return false;
      putLinkBase(store, modelNo, base);
      return true;
    });
    if (isSettled) return;
  }
}

/** Lists the live models with an anisotropic embedder whose base is not stored yet. */
function listUnsettled(context: StepContext) {
  const { store, liveModels } = context.open();
  if (liveModels === null) return [];
  const sources = liveSources(context);
  return distinctModels(liveModels).flatMap((model) => {
    const source = sources.get(model.modelNo);
    if (source?.embedder.isAnisotropic !== true || findLinkBase(store, model.modelNo) !== undefined) return [];
    return [{ model, liveModels, source }];
  });
}

/**
 * Returns the lowest cosine, included, at which a waypoint (automatic link) is made in the space of a model; Infinity
 * for a model whose embedder cannot be reached. In an anisotropic space the embedder's threshold is a fraction of the
 * way from the base of the space (measured by `settleLinkBases`; 0 until then) to 1.
 * @param sources embedders of the live models, by `modelNo`
 */
export function waypointThreshold(
  store: Store,
  modelNo: number,
  sources: ReadonlyMap<number, EmbeddingSource>,
): number {
  const source = sources.get(modelNo);
  if (source === undefined) return Infinity;
  return thresholdFrom(source.embedder.isAnisotropic ? (findLinkBase(store, modelNo) ?? 0) : 0, source);
}

function thresholdFrom(base: number, { embedder }: EmbeddingSource): number {
  return base + (1 - base) * embedder.waypointThreshold;
}

/**
 * Measures the base of a space (`baseOfCosines`); undefined while fewer than 50 of the 2,000 oldest memories have
 * vectors of it, or while an older memory waits for its vector.
 */
function measure(store: Store, space: VectorSpace): number | undefined {
  const oldest = listOldestEmbedded(store, space.modelNo, { limit: COMPARED, within: WITHIN });
  if (oldest.length < COMPARED || waitsForVectors(store, space.modelNo, oldest.at(-1)!.memory)) return undefined;
  const numbers = oldest.map(({ memory }) => memory);
  const vectors = new Map(readWholeVectors(store, space, numbers).map((own) => [own.memory, own.embedding]));
  const pairs = oldest.flatMap((a, place) => oldest.slice(place + 1).map((b) => [a, b] as const));
  const apart = pairs.filter(([a, b]) => a.userNo !== b.userNo || a.sessionId !== b.sessionId || a.sessionId === '');
  return baseOfCosines(
    (apart.length < MIN_PAIRS ? pairs : apart).map(([a, b]) => cosine(vectors.get(a.memory)!, vectors.get(b.memory)!)),
  );
}

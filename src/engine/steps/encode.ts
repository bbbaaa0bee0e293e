import { enqueueStep } from '../commands/enqueue-step.ts';
import { decayLambdaOf, initialSalience } from '../dynamics.ts';
import type { EntityGraph } from '../entities/extract.ts';
import { EngineError } from '../errors.ts';
import { failpoint } from '../failpoint.ts';
import { embedTexts, type EmbeddedTexts } from '../providers/embed-texts.ts';
import { prefetchForEncode, prefetchRows } from '../store/prefetch.ts';
import { readSectorCorrection } from '../store/sector-corrections.ts';
import { putSectors, setState } from '../store/dynamics.ts';
import { listWaypointSources } from '../store/edges.ts';
import { putEntities } from '../store/put-entities.ts';
import { advanceJob, finishJob, type Claim } from '../store/jobs.ts';
import { holdsLease } from '../store/job-leases.ts';
import { distinctModels, type StoredModel } from '../store/live-model.ts';
import { readMemoryRows } from '../store/memories.ts';
import type { Store } from '../store/open-store.ts';
import { addCacheHits } from '../store/provider-usage.ts';
import { meanVector } from '../store/vector-encoding.ts';
import {
  deleteVectors,
  findWholeVector,
  hasVectors,
  insertVector,
  MEAN_WINDOW,
  roleOf,
  type VectorSpace,
} from '../store/vectors.ts';
import { type OpenTenant, spaceOf } from '../tenant-file/open-tenant.ts';
import type { Sector } from '../types.ts';
import { enqueueContradictionCheck } from './check-contradictions.ts';
import { commitInSlices, isAlone } from './commit-in-slices.ts';
import { createYielder } from './create-yielder.ts';
import { draftOf, type Draft } from './draft-encoding.ts';
import { extractEntities } from './extract-entities.ts';
import { observeReady } from './observe-ready.ts';
import { readTogether } from './read-together.ts';
import { sourceOfModel, type StepContext, type StepFailure } from './step-context.ts';

/**
 * Number of memories that are computed and then written as one group, in a file while nobody else writes, if this
 * thread computes everything itself. A group takes some 5 ms, so that no other pause is needed.
 */
const COMPUTED_AT_ONCE = 32;
/**
 * Number of memories that are computed and then written as one group in PostgreSQL, where a larger group saves round
 * trips. It also holds while others write.
 */
const COMPUTED_AT_ONCE_IN_DATABASE = 64;

/**
 * Result of the encode step. A claim whose memory no longer exists, or whose lease was lost before its memory was
 * written, is in none of its fields; one whose memory could not be embedded is among the failures in any case.
 */
export interface EncodeResult {
  /** Claims whose jobs have moved to the step `link`. They still hold their leases. */
  readonly advanced: readonly Claim[];
  /**
   * Number of jobs that are done: their memories have no vectors and so nothing to link, or an import brought the
   * links.
   */
  readonly finished: number;
  /** Jobs for which nothing was written; the caller records their failure. */
  readonly failures: readonly StepFailure[];
}

/**
 * Runs the encode step of a batch: classifies, extracts entities, cuts into windows, embeds, and only then writes, in
 * short slices. A claim whose memory no longer exists, or whose lease was lost meanwhile, writes nothing. If a memory
 * cannot be embedded, or `signal` aborts before it is done, an error is among the `failures` of the result; any other
 * error is thrown.
 */
export async function encodeMemories(
  context: StepContext,
  claims: readonly Claim[],
  signal?: AbortSignal,
): Promise<EncodeResult> {
  const results: EncodeResult[] = [];
  for (let at = 0; at < claims.length;) {
    const group = claims.slice(at, at + groupSize(context));
    results.push(await encodeGroup(context, group, signal));
    at += group.length;
  }
  return {
    advanced: results.flatMap(({ advanced }) => advanced),
    finished: results.reduce((sum, { finished }) => sum + finished, 0),
    failures: results.flatMap(({ failures }) => failures),
  };
}

/**
 * Whether this thread computes everything itself, so that nothing is gained by working on many memories at the same
 * time.
 */
function isComputedHere({ embedder, languageModel, config }: StepContext): boolean {
  const byPatterns = config.OM_ENTITY_EXTRACTION === 'patterns' || languageModel === null;
  return byPatterns && embedder?.cacheable !== true && config.OM_EMBED_MODE === 'simple';
}

/** Returns how many memories are computed before they are written; Infinity for the whole batch. */
function groupSize(context: StepContext): number {
  if (!isComputedHere(context)) return Infinity;
  const { store } = context.open();
  if (store.ahead !== null) return COMPUTED_AT_ONCE_IN_DATABASE;
  return isAlone(store) ? COMPUTED_AT_ONCE : Infinity;
}

async function encodeGroup(
  context: StepContext,
  claims: readonly Claim[],
  signal: AbortSignal | undefined,
): Promise<EncodeResult> {
  const { configuredModels, liveModels, rows, correction } = readSources(context, claims);
  const yieldTurn = createYielder();
  const drafts: Draft[] = [];
  for (const claim of claims) {
    const row = rows.get(claim.memoryNo);
    if (row !== undefined) drafts.push(draftOf(claim, row, context.config.OM_SECTOR_CLASSIFIER, correction));
    await yieldTurn();
  }
  await failpoint('before-embed');
  // Providers compute while names are looked for. All texts are handed over in one turn of the event loop, since texts
  // that come later would need a call of their own.
  const embedding: Promise<PromiseSettledResult<readonly EmbeddedIn[] | null>[]>[] = [];
  for (const draft of drafts) {
    embedding.push(Promise.allSettled([embedDraft(context, { ...draft, configuredModels, liveModels }, signal)]));
    if (context.embedder?.cacheable === false) await yieldTurn();
  }
  const graphs = await extractEntities(context, [...rows.values()], signal);
  const embedded = (await Promise.all(embedding)).flat();
  await failpoint('after-embed');
  const encoded: Encoded[] = [];
  const failures: StepFailure[] = [];
  for (const [position, draft] of drafts.entries()) {
    const result = embedded[position]!;
    const graph = graphs.get(draft.claim.memoryNo);
    if (graph === undefined) {
      failures.push({ jobNo: draft.claim.jobNo, error: new EngineError('unavailable', 'stopped before it was done') });
    } else if (result.status === 'fulfilled') {
      encoded.push({ ...draft, embedded: result.value, graph });
      for (const { texts, isConfigured } of result.value ?? []) if (isConfigured) countCached(context, texts);
    } else failures.push({ jobNo: draft.claim.jobNo, error: result.reason });
  }
  const advanced: Claim[] = [];
  let finished = 0;
  await failpoint('before-encode-commit');
  await commitInSlices(
    () => context.open().store,
    encoded,
    (current, draft) => {
      if (!holdsLease(current, draft.claim)) return false;
      writeEncoded(context, current, draft);
      if (draft.embedded === null || draft.claim.kind === 'import') {
        finishJob(current, draft.claim, context.clock.now());
        setState(current, draft.claim.memoryNo, 'ready');
        finished++;
      } else {
        advanced.push(advanceJob(current, draft.claim, 'link', context.clock.now()));
      }
      return true;
    },
    { begin: prefetch, end: putGraphs },
  );
  await failpoint('after-encode-commit');
  observeReady(context, 'encoded', advanced);
  return { advanced, finished, failures };
}

/** Reads what is known about the memories of claims before they are encoded. */
function readSources(context: StepContext, claims: readonly Claim[]) {
  const { store } = context.open();
  const memoryNos = claims.map((claim) => claim.memoryNo);
  return readTogether(store, () => {
    prefetchRows(store, memoryNos);
    const { configuredModels, liveModels } = context.open();
    const rows = new Map(readMemoryRows(store, memoryNos).map((row) => [row.memoryNo, row]));
    return { configuredModels, liveModels, rows, correction: readSectorCorrection(store) };
  });
}

function putGraphs(store: Store, written: readonly Encoded[]): void {
  putEntities(
    store,
    written.map(({ claim, userNo, graph }) => ({ memoryNo: claim.memoryNo, userNo, graph })),
  );
}

function prefetch(store: Store, drafts: readonly Draft[]): void {
  if (store.ahead === null) return;
  prefetchForEncode(
    store,
    drafts.map(({ claim }) => claim),
  );
}

/**
 * Counts in the metrics how many of a memory's windows the cache of embeddings held, how many had to be embedded, and
 * the tokens saved. It counts nothing for an embedder whose vectors are not cached.
 */
export function countCached({ embedder, metrics }: StepContext, embedded: EmbeddedTexts): void {
  if (embedder === null || embedded.textHashes === null) return;
  const { provider } = embedder;
  metrics.embeddedTexts.inc({ provider, source: 'cache' }, embedded.hits);
  metrics.embeddingCache.inc({ cache: 'document', outcome: 'hit' }, embedded.hits);
  metrics.embeddingCache.inc({ cache: 'document', outcome: 'miss' }, embedded.misses);
  metrics.savedTokens.inc({ cache: 'document' }, embedded.savedTokens);
}

/** Vectors of a text's windows in the vector space of one model. */
export interface EmbeddedIn {
  readonly space: VectorSpace;
  readonly texts: EmbeddedTexts;
  /** False for a model whose vectors answer queries only until those of the configured models do. */
  readonly isConfigured: boolean;
}

type Models = Pick<OpenTenant, 'liveModels' | 'configuredModels'>;

interface Encoded extends Draft {
  /** Vectors in each space, the configured spaces first; null if nothing is embedded. */
  readonly embedded: readonly EmbeddedIn[] | null;
  readonly graph: EntityGraph;
}

/**
 * Embeds a text once by each model of its sectors. While the models change, these are the configured models, whose
 * vectors the memory must get, and the live ones, which answer queries until then. A failure of a live model is
 * ignored, since its server may be gone for good. Models whose vectors an import has brought are left out.
 * @returns vectors by each model that answered, the configured models first; null if nothing is embedded: there is no
 *   embedder, or the text is empty
 * @throws EngineError if a configured model fails
 */
async function embedDraft(
  context: StepContext,
  { claim, windows, sectors, configuredModels, liveModels }: Draft & Models,
  signal?: AbortSignal,
): Promise<readonly EmbeddedIn[] | null> {
  if (context.embedder === null || context.gatherer === null || configuredModels === null) return null;
  // An item may have a value and no text; a value alone is not searched.
  if (windows.every((window) => window === '')) return null;
  const all = [sectors.primary, ...sectors.additional];
  const { store } = context.open();
  // An import may have brought vectors.
  const needsVector = (model: StoredModel) =>
    claim.kind !== 'import' || findWholeVector(store, model, claim.memoryNo) === undefined;
  const configured = distinctModels(configuredModels, all).filter(needsVector);
  const isNew = ({ modelNo }: StoredModel) => !configured.some((model) => model.modelNo === modelNo);
  const old = liveModels === null ? [] : distinctModels(liveModels, all).filter(isNew).filter(needsVector);
  const embedded = await allOrOneByOne(context, [
    ...configured.map((model) => () => embedBy(context, model, windows, signal)),
    ...old.map((model) => async () => {
      const isReachable = sourceOfModel(context, model) !== null;
      const made = isReachable ? await embedBy(context, model, windows, signal).catch(() => null) : null;
      return made && { ...made, isConfigured: false };
    }),
  ]);
  return embedded.filter((vectors) => vectors !== null);
}

/**
 * Embeds the windows of a text by one model. The result says `isConfigured: true`, whatever the model.
 * @throws EngineError `unavailable` if the settings do not say how to reach the model, and what the gatherer throws
 */
export async function embedBy(
  context: StepContext,
  model: StoredModel,
  windows: readonly string[],
  signal?: AbortSignal,
): Promise<EmbeddedIn> {
  const source = sourceOfModel(context, model);
  if (source === null) throw new EngineError('unavailable', `this worker has no embedder for ${model.model}`);
  const { store } = context.open();
  const texts = await embedTexts({ store, modelNo: model.modelNo, ...source }, windows, signal);
  return { space: spaceOf(model), texts, isConfigured: true };
}

/**
 * Calls several models for one memory: all at the same time if `OM_EMBED_MODE` is `simple` or `OM_ADV_EMBED_PARALLEL`
 * is on, else one after the other.
 * @returns the results in the order of `calls`
 * @throws the first error of a call
 */
export async function allOrOneByOne<T>(
  { config }: Pick<StepContext, 'config'>,
  calls: readonly (() => Promise<T>)[],
): Promise<T[]> {
  if (config.OM_EMBED_MODE === 'simple' || config.OM_ADV_EMBED_PARALLEL)
    return Promise.all(calls.map((call) => call()));
  const results: T[] = [];
  for (const call of calls) results.push(await call());
  return results;
}

function writeEncoded(context: StepContext, store: Store, { claim, userNo, sectors, embedded }: Encoded): void {
  const now = context.clock.now();
  const memoryNo = claim.memoryNo;
  putSectors(store, {
    memoryNo,
    sectors,
    decayLambda: decayLambdaOf(sectors.primary, context.config.OM_DECAY_LAMBDA),
    salienceGain: initialSalience(null, sectors.additional.length) - initialSalience(null, 0),
    now,
  });
  if (embedded === null) return;
  const isNew = !hasVectors(store, memoryNo);
  if (!isNew) eraseReplaced(context, store, memoryNo, [sectors.primary, ...sectors.additional]);
  for (const { space, texts } of embedded) writeVectors(context, { memory: memoryNo, userNo, isNew, space, texts });
  // An import brings vectors and links together, so there is nothing to compare.
  if (claim.kind === 'import') return;
  enqueueContradictionCheck(context, store, claim);
  // The similarity of a waypoint that leads to this memory was measured by the vectors that were replaced.
  for (const src of listWaypointSources(store, [memoryNo]))
    enqueueStep({ store, now, newId: context.newId }, src, 'link');
}

/** Erases the vectors of a replaced text by models that its new sectors do not use. */
function eraseReplaced({ open }: StepContext, store: Store, memoryNo: number, sectors: readonly Sector[]): void {
  const { indexes, liveModels, configuredModels } = open();
  for (const modelNo of surplusModels({ liveModels, configuredModels }, sectors)) {
    indexes.get(modelNo)?.remove(deleteVectors(store, memoryNo, modelNo));
  }
}

/** Lists the `modelNo` of models that are live or configured but embed none of these sectors. */
function surplusModels({ liveModels, configuredModels }: Models, sectors: readonly Sector[]): number[] {
  const used = [liveModels, configuredModels].filter((models) => models !== null);
  const numbers = (of?: readonly Sector[]) =>
    used.flatMap((models) => distinctModels(models, of).map(({ modelNo }) => modelNo));
  const wanted = numbers(sectors);
  return numbers().filter((modelNo) => !wanted.includes(modelNo));
}

/**
 * Replaces a memory's vectors in one space (windows and mean) in the file and in the index, and notes cache hits as
 * usage. It writes nothing if the space's model is no longer live or configured. Call it inside a write transaction.
 */
export function writeVectors(
  { open, clock, config }: Pick<StepContext, 'open' | 'clock' | 'config'>,
  {
    memory,
    userNo,
    isNew = false,
    space,
    texts,
  }: Pick<EmbeddedIn, 'space' | 'texts'> & {
    readonly memory: number;
    readonly userNo: number;
    /** Whether the memory is known to have no vectors; false by default. */
    readonly isNew?: boolean;
  },
): void {
  const { store, liveModels, configuredModels, indexes } = open();
  const index = indexes.get(space.modelNo);
  const isWanted = [...(liveModels ?? []), ...(configuredModels ?? [])].some(
    ({ modelNo }) => modelNo === space.modelNo,
  );
  if (index === undefined || !isWanted) return;
  const { embeddings, textHashes } = texts;
  if (!isNew) index.remove(deleteVectors(store, memory, space.modelNo));
  if (textHashes !== null) addCacheHits(store, { ...texts, modelNo: space.modelNo, at: clock.now() });
  const vectors = embeddings.map((embedding, windowNo) => ({
    windowNo,
    embedding,
    textHash: textHashes?.[windowNo] ?? null,
  }));
  if (embeddings.length > 1) vectors.push({ windowNo: MEAN_WINDOW, embedding: meanVector(embeddings), textHash: null });
  index.add(
    vectors.map((vector) => {
      const added = { ...vector, memory, userNo, role: roleOf(vector.windowNo, embeddings.length) };
      return { ...added, vectorNo: insertVector(store, space, added, config.OM_VECTOR_PRECISION) };
    }),
  );
}

import { oweStep } from '../commands/owe-step.ts';
import { decayLambdaOf, initialSalience } from '../dynamics.ts';
import type { EntityGraph } from '../entities/extract.ts';
import { EngineError } from '../errors.ts';
import { failpoint } from '../failpoint.ts';
import { embedTexts, type EmbeddedTexts } from '../providers/embed-texts.ts';
import { classify } from '../sectors/classify.ts';
import { putSectors, setState, type Classified } from '../store/dynamics.ts';
import { listWaypointSources } from '../store/edges.ts';
import { eraseCachedEmbeddingsOf, putCachedEmbeddings } from '../store/embeddings.ts';
import { putEntities } from '../store/entities.ts';
import { advanceJob, finishJob, holdsLease, type Claim } from '../store/jobs.ts';
import { distinctModels, type StoredModel } from '../store/live-model.ts';
import { readMemoryRows, type MemoryRow } from '../store/memories.ts';
import type { Store } from '../store/open-store.ts';
import { addCacheHits } from '../store/provider-usage.ts';
import { meanVector } from '../store/vector-encoding.ts';
import { deleteVectors, hasVectors, insertVector, MEAN_WINDOW, roleOf, type VectorSpace } from '../store/vectors.ts';
import { type OpenTenant, spaceOf } from '../tenant-file/open-tenant.ts';
import { windowsOf } from '../text/windows.ts';
import { SECTORS, type Sector } from '../types.ts';
import { oweContradictionCheck } from './check-contradictions.ts';
import { commitInSlices, isAlone } from './commit-in-slices.ts';
import { createBreather } from './create-breather.ts';
import { extractEntities } from './extract-entities.ts';
import { observeReady } from './observe-ready.ts';
import { sourceOfModel, type StepContext, type StepFailure } from './step-context.ts';

export const WINDOW_TOKENS = 512;
export const WINDOW_OVERLAP_TOKENS = 50;
/** Memories that are computed before they are written while nobody else writes: some 5 ms, in which no other pause is needed. */
const COMPUTED_AT_ONCE = 32;

/** What the classifier says where no pattern matched. */
const UNRECOGNISED = classify('');

export interface EncodeResult {
  /** Claims that wait for their link now; they still hold their leases. */
  readonly advanced: readonly Claim[];
  /** Jobs that are done, since there is nothing to link without vectors. */
  readonly finished: number;
  readonly failures: readonly StepFailure[];
}

/**
 * The encode step of a batch: classify, find names, cut into windows, embed, and only then write, in short slices. A claim whose
 * memory is gone or whose lease was lost meanwhile writes nothing.
 */
export async function encodeMemories(
  context: StepContext,
  claims: readonly Claim[],
  signal?: AbortSignal,
): Promise<EncodeResult> {
  const results: EncodeResult[] = [];
  for (let at = 0; at < claims.length;) {
    const isInParts = isComputedHere(context) && isAlone(context.open().store);
    const group = claims.slice(at, isInParts ? at + COMPUTED_AT_ONCE : undefined);
    results.push(await encodeGroup(context, group, signal));
    at += group.length;
  }
  return {
    advanced: results.flatMap(({ advanced }) => advanced),
    finished: results.reduce((sum, { finished }) => sum + finished, 0),
    failures: results.flatMap(({ failures }) => failures),
  };
}

/** Whether nobody else is asked for anything, so that nothing is gained by asking for many memories at once. */
function isComputedHere({ embedder, languageModel, config }: StepContext): boolean {
  const byPatterns = config.OM_ENTITY_EXTRACTION === 'patterns' || languageModel === null;
  return byPatterns && embedder?.cacheable !== true && config.OM_EMBED_MODE === 'simple';
}

async function encodeGroup(
  context: StepContext,
  claims: readonly Claim[],
  signal: AbortSignal | undefined,
): Promise<EncodeResult> {
  const { store, configuredModels, liveModels } = context.open();
  const rows = new Map(
    readMemoryRows(
      store,
      claims.map((claim) => claim.memory),
    ).map((row) => [row.seq, row]),
  );
  const breathe = createBreather();
  const drafts: Draft[] = [];
  for (const claim of claims) {
    const row = rows.get(claim.memory);
    if (row !== undefined) drafts.push(draftOf(claim, row));
    await breathe();
  }
  await failpoint('before-embed');
  // A provider answers while names are looked for. What it is asked is begun in one turn, or fewer texts would share a call.
  const embedding: Promise<PromiseSettledResult<readonly EmbeddedIn[] | null>[]>[] = [];
  for (const draft of drafts) {
    embedding.push(Promise.allSettled([embedDraft(context, { ...draft, configuredModels, liveModels }, signal)]));
    if (context.embedder?.cacheable === false) await breathe();
  }
  const graphs = await extractEntities(context, [...rows.values()], signal);
  const embedded = (await Promise.all(embedding)).flat();
  await failpoint('after-embed');
  const encoded: Encoded[] = [];
  const failures: StepFailure[] = [];
  for (const [position, draft] of drafts.entries()) {
    const result = embedded[position]!;
    const graph = graphs.get(draft.claim.memory);
    if (graph === undefined) {
      failures.push({ claimSeq: draft.claim.seq, error: new EngineError('unavailable', 'stopped before it was done') });
    } else if (result.status === 'fulfilled') {
      encoded.push({ ...draft, embedded: result.value, graph });
      for (const { texts, isConfigured } of result.value ?? []) if (isConfigured) countCached(context, texts);
    } else failures.push({ claimSeq: draft.claim.seq, error: result.reason });
  }
  const advanced: Claim[] = [];
  let finished = 0;
  await failpoint('before-encode-commit');
  await commitInSlices(
    () => context.open().store,
    encoded,
    (current, draft) => {
      if (!holdsLease(current, draft.claim)) return;
      writeEncoded(context, current, draft);
      if (draft.embedded === null) {
        finishJob(current, draft.claim, context.clock.now());
        setState(current, draft.claim.memory, 'ready');
        finished++;
      } else {
        advanced.push(advanceJob(current, draft.claim, 'link', context.clock.now()));
      }
    },
  );
  await failpoint('after-encode-commit');
  observeReady(context, 'encoded', advanced);
  return { advanced, finished, failures };
}

export function countCached({ embedder, metrics }: StepContext, embedded: EmbeddedTexts): void {
  if (embedder === null || embedded.textHashes === null) return;
  const { provider } = embedder;
  metrics.embeddedTexts.inc({ provider, source: 'cache' }, embedded.hits);
  metrics.embeddingCache.inc({ cache: 'document', outcome: 'hit' }, embedded.hits);
  metrics.embeddingCache.inc({ cache: 'document', outcome: 'miss' }, embedded.misses.length);
  metrics.savedTokens.inc({ cache: 'document' }, embedded.savedTokens);
}

interface Draft {
  readonly claim: Claim;
  readonly userNo: number;
  readonly sectors: Classified;
  readonly windows: readonly string[];
}

/** The vectors of a text's windows in one space. */
export interface EmbeddedIn {
  readonly space: VectorSpace;
  readonly texts: EmbeddedTexts;
  /** False for a model that is live only until the configured ones are. */
  readonly isConfigured: boolean;
}

type Models = Pick<OpenTenant, 'liveModels' | 'configuredModels'>;

interface Encoded extends Draft {
  /** The configured spaces first. */
  readonly embedded: readonly EmbeddedIn[] | null;
  readonly graph: EntityGraph;
}

function draftOf(claim: Claim, row: MemoryRow): Draft {
  const text = textOf(row);
  const found = classify(text);
  const forced = forcedSector(row.metadata);
  return {
    claim,
    userNo: row.user_no,
    sectors: forced
      ? {
          primary: forced,
          additional: sectorsBeside(forced, [found.primary, ...found.additional], found.confidence),
          confidence: 1,
        }
      : found,
    windows: cutWindows(text),
  };
}

/** What of a memory is embedded. */
export function textOf({ title, content }: Pick<MemoryRow, 'title' | 'content'>): string {
  return title === '' ? content : `${title}\n${content}`;
}

export function cutWindows(text: string): string[] {
  return windowsOf(text, { sizeTokens: WINDOW_TOKENS, overlapTokens: WINDOW_OVERLAP_TOKENS }).map((window) =>
    text.slice(window.start, window.end),
  );
}

/** `metadata.sector` wins; the API lets only the five names in. */
function forcedSector(metadata: string): Sector | undefined {
  if (!metadata.includes('"sector"')) return undefined;
  const { sector } = JSON.parse(metadata) as { sector?: unknown };
  return SECTORS.find((name) => name === sector);
}

/** What the text shows besides the forced sector; the fallback for "no pattern matched" shows nothing. */
function sectorsBeside(forced: Sector, found: readonly Sector[], confidence: number): Sector[] {
  return confidence > UNRECOGNISED.confidence ? found.filter((sector) => sector !== forced) : [];
}

/**
 * A text is embedded once by each model of its sectors. While the models change, that is by the configured ones, which are owed their
 * vectors, and by the live ones, which answer queries until then. The latter may be gone for good, so their failure holds nobody up.
 */
async function embedDraft(
  context: StepContext,
  { windows, sectors, configuredModels, liveModels }: Draft & Models,
  signal?: AbortSignal,
): Promise<readonly EmbeddedIn[] | null> {
  if (context.embedder === null || context.gatherer === null || configuredModels === null) return null;
  const all = [sectors.primary, ...sectors.additional];
  const configured = distinctModels(configuredModels, all);
  const isNew = ({ modelNo }: StoredModel) => !configured.some((model) => model.modelNo === modelNo);
  const old = liveModels === null ? [] : distinctModels(liveModels, all).filter(isNew);
  const embedded = await allOrOneByOne(context, [
    ...configured.map((model) => () => embedBy(context, model, windows, signal)),
    ...old.map((model) => async () => {
      const known = sourceOfModel(context, model) !== null;
      const made = known ? await embedBy(context, model, windows, signal).catch(() => null) : null;
      return made && { ...made, isConfigured: false };
    }),
  ]);
  return embedded.filter((one) => one !== null);
}

/** Throws `unavailable` where the settings do not say how to reach the model, and as the gatherer does. */
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

/** Calls of several models for one memory. */
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

function writeEncoded(context: StepContext, store: Store, { claim, userNo, sectors, embedded, graph }: Encoded): void {
  const now = context.clock.now();
  const seq = claim.memory;
  putSectors(store, {
    seq,
    sectors,
    decayLambda: decayLambdaOf(sectors.primary, context.config.OM_DECAY_LAMBDA),
    salienceGain: initialSalience(null, sectors.additional.length) - initialSalience(null, 0),
    now,
  });
  putEntities(store, { memory: seq, userNo }, graph);
  if (embedded === null) return;
  const isNew = !hasVectors(store, seq);
  if (!isNew) eraseReplaced(context, store, seq, [sectors.primary, ...sectors.additional]);
  for (const one of embedded) writeVectors(context, { memory: seq, userNo, isNew, ...one });
  oweContradictionCheck(context, store, claim);
  // A waypoint that leads here was measured on the vectors before.
  for (const src of listWaypointSources(store, seq)) oweStep({ store, now, newId: context.newId }, src, 'link');
}

/** A text that was replaced leaves the cache with its vectors, so that a later erasure has nothing to look for. */
function eraseReplaced({ open }: StepContext, store: Store, memory: number, sectors: readonly Sector[]): void {
  eraseCachedEmbeddingsOf(store, memory);
  const { indexes, liveModels, configuredModels } = open();
  for (const modelNo of surplusModels({ liveModels, configuredModels }, sectors)) {
    indexes.get(modelNo)?.remove(deleteVectors(store, memory, modelNo));
  }
}

/** Models that are in use, but not for these sectors. */
function surplusModels({ liveModels, configuredModels }: Models, sectors: readonly Sector[]): number[] {
  const used = [liveModels, configuredModels].filter((models) => models !== null);
  const numbers = (of?: readonly Sector[]) =>
    used.flatMap((models) => distinctModels(models, of).map(({ modelNo }) => modelNo));
  const wanted = numbers(sectors);
  return numbers().filter((modelNo) => !wanted.includes(modelNo));
}

/** Replaces a memory's vectors in one space, unless nobody wants that space any more. Call inside a write. */
export function writeVectors(
  { open, clock }: Pick<StepContext, 'open' | 'clock'>,
  {
    memory,
    userNo,
    isNew = false,
    space,
    texts,
  }: Pick<EmbeddedIn, 'space' | 'texts'> & {
    readonly memory: number;
    readonly userNo: number;
    /** Known to have no vectors. */
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
  if (textHashes !== null) {
    const cached = textHashes.map((textHash, at) => ({ textHash, embedding: embeddings[at] as Float32Array }));
    putCachedEmbeddings(store, space.modelNo, cached, clock.now());
    addCacheHits(store, { ...texts, modelNo: space.modelNo, at: clock.now() });
  }
  const vectors = embeddings.map((embedding, windowNo) => ({
    windowNo,
    embedding,
    textHash: textHashes?.[windowNo] ?? null,
  }));
  if (embeddings.length > 1) vectors.push({ windowNo: MEAN_WINDOW, embedding: meanVector(embeddings), textHash: null });
  index.add(
    vectors.map((vector) => {
      const added = { ...vector, memory, userNo, role: roleOf(vector.windowNo, embeddings.length) };
      return { ...added, vectorNo: insertVector(store, space, added) };
    }),
  );
}

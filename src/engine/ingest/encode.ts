import { decayLambdaOf, initialSalience } from '../dynamics.ts';
import type { EntityGraph } from '../entities/extract.ts';
import { assert, EngineError } from '../errors.ts';
import { failpoint } from '../failpoint.ts';
import { classify } from '../sectors/classify.ts';
import { putSectors, setState, type Classified } from '../store/dynamics.ts';
import { eraseCachedEmbeddingsOf, putCachedEmbeddings } from '../store/embeddings.ts';
import { listWaypointSources } from '../store/edges.ts';
import { putEntities } from '../store/entities.ts';
import { advanceJob, finishJob, holdsLease, type Claim } from '../store/jobs.ts';
import { readMemoryRows, type MemoryRow } from '../store/memories.ts';
import type { Store } from '../store/open-store.ts';
import { meanVector } from '../store/vector-encoding.ts';
import { deleteVectors, insertVector, MEAN_WINDOW, roleOf } from '../store/vectors.ts';
import { windowsOf } from '../text/windows.ts';
import { SECTORS, type Sector } from '../types.ts';
import { commitInSlices } from './commit-in-slices.ts';
import { embedTexts, type EmbeddedTexts } from './embed-texts.ts';
import { extractEntities } from './extract-entities.ts';
import { oweStep } from './owe-step.ts';
import type { StepContext, StepFailure } from './step-context.ts';

export const WINDOW_TOKENS = 512;
export const WINDOW_OVERLAP_TOKENS = 50;

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
  const { store } = context.open();
  const rows = new Map(
    readMemoryRows(
      store,
      claims.map((claim) => claim.memory),
    ).map((row) => [row.seq, row]),
  );
  const drafts = claims.flatMap((claim) => {
    const row = rows.get(claim.memory);
    return row === undefined ? [] : [draftOf(claim, row)];
  });
  await failpoint('before-embed');
  const [embedded, graphs] = await Promise.all([
    Promise.allSettled(drafts.map((draft) => embedDraft(context, draft, signal))),
    extractEntities(context, [...rows.values()], signal),
  ]);
  await failpoint('after-embed');
  const encoded: Encoded[] = [];
  const failures: StepFailure[] = [];
  for (const [position, draft] of drafts.entries()) {
    const result = embedded[position] as PromiseSettledResult<EmbeddedTexts | null>;
    const graph = graphs.get(draft.claim.memory);
    if (graph === undefined) {
      failures.push({ claimSeq: draft.claim.seq, error: new EngineError('unavailable', 'stopped before it was done') });
    } else if (result.status === 'fulfilled') {
      encoded.push({ ...draft, embedded: result.value, graph });
      countCached(context, result.value);
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
  return { advanced, finished, failures };
}

function countCached({ embedder, metrics }: StepContext, embedded: EmbeddedTexts | null): void {
  if (embedder === null || embedded === null || embedded.textHashes === null) return;
  const { provider } = embedder;
  metrics.embeddedTexts.inc({ provider, source: 'cache' }, embedded.embeddings.length - embedded.misses.length);
}

interface Draft {
  readonly claim: Claim;
  readonly userNo: number;
  readonly sectors: Classified;
  readonly windows: readonly string[];
}

interface Encoded extends Draft {
  readonly embedded: EmbeddedTexts | null;
  readonly graph: EntityGraph;
}

function draftOf(claim: Claim, row: MemoryRow): Draft {
  const text = row.title === '' ? row.content : `${row.title}\n${row.content}`;
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
    windows: windowsOf(text, { sizeTokens: WINDOW_TOKENS, overlapTokens: WINDOW_OVERLAP_TOKENS }).map((window) =>
      text.slice(window.start, window.end),
    ),
  };
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

async function embedDraft(context: StepContext, draft: Draft, signal?: AbortSignal): Promise<EmbeddedTexts | null> {
  const { embedder, gatherer } = context;
  const { store, space } = context.open();
  if (embedder === null || gatherer === null || space === null) return null;
  return embedTexts({ store, modelNo: space.modelNo, embedder, gatherer }, draft.windows, signal);
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
  const { space, index } = context.open();
  assert(space !== null && index !== null, 'embedded texts have a space to live in');
  const { embeddings, textHashes } = embedded;
  // A text that was replaced leaves the cache with its vectors, so that a later erasure has nothing to look for.
  eraseCachedEmbeddingsOf(store, seq);
  index.remove(deleteVectors(store, seq, space.modelNo));
  if (textHashes !== null) {
    const cached = textHashes.map((textHash, at) => ({ textHash, embedding: embeddings[at] as Float32Array }));
    putCachedEmbeddings(store, space.modelNo, cached, now);
  }
  const vectors = embeddings.map((embedding, windowNo) => ({
    memory: seq,
    windowNo,
    embedding,
    textHash: textHashes?.[windowNo] ?? null,
  }));
  if (embeddings.length > 1)
    vectors.push({ memory: seq, windowNo: MEAN_WINDOW, embedding: meanVector(embeddings), textHash: null });
  index.add(
    vectors.map((vector) => ({
      vectorNo: insertVector(store, space, vector),
      userNo,
      role: roleOf(vector.windowNo, embeddings.length),
      embedding: vector.embedding,
    })),
  );
  // A waypoint that leads here was measured on the vectors before.
  for (const src of listWaypointSources(store, seq)) oweStep({ store, now, newId: context.newId }, src, 'link');
}

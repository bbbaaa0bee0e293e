import { createRandom } from '../random.ts';
import { isUnfinished } from '../store/jobs.ts';
import { areSameModels, type SectorModelNumbers, type SectorModels } from '../store/live-model.ts';
import type { Store } from '../store/open-store.ts';
import {
  countLacking,
  countReembedJobs,
  countUpTo,
  findReembedController,
  findReembed,
  type ReembedRecord,
} from '../store/reembed.ts';
import { countGivenUp } from '../store/refused-memories.ts';
import { sampleMemories } from '../store/sample-memories.ts';
import { estimateTokens } from '../text/tokens.ts';
import type { EmbeddingState, ReembedStatus } from '../types.ts';

/** Greatest number of memories that are read to estimate tokens. */
const SAMPLED = 200;
/** Greatest number of characters that are read of each sampled memory. */
const CHARACTERS = 20_000;
/**
 * Describes how far a change of the embedding model has come, or whether one is needed. Call it inside a read
 * transaction.
 * @param options.target `modelNo` of each of `configuredModels`; null with `OM_EMBEDDINGS=none`
 */
export function describeReembed(
  store: Store,
  {
    live,
    configured,
    configuredModels,
    target,
    now,
  }: EmbeddingState & {
    readonly configuredModels: SectorModels | null;
    readonly target: SectorModelNumbers | null;
    readonly now: number;
  },
): ReembedStatus {
  const record = findReembed(store);
  if (record === undefined) return describeRest(store, { live, configured, configuredModels });
  const controller = findReembedController(store);
  const state = stateOf(controller?.state);
  const { done, total, failed } = progressOf(store, record);
  const elapsedMs = now - record.since.at;
  const rate = state === 'running' && elapsedMs > 0 ? Math.max(0, done - record.since.done) / elapsedMs : 0;
  const embeds = record.phase === 'embed' && target !== null && areSameModels(record.target, target);
  return {
    state,
    phase: record.phase,
    live,
    configured,
    done,
    total,
    failed,
    ratePerSecond: rate > 0 ? rate * 1_000 : null,
    remainingMs: rate > 0 && record.phase !== 'drop' ? Math.round((total - done) / rate) : null,
    estimate: embeds ? estimate(store, total - done - failed) : null,
    error: state === 'failed' ? (controller?.error ?? null) : null,
  };
}

/** Describes a file in which no change of the model runs: whether every memory has vectors of the configured models. */
function describeRest(
  store: Store,
  {
    live,
    configured,
    configuredModels,
  }: Pick<EmbeddingState, 'live' | 'configured'> & { readonly configuredModels: SectorModels | null },
): ReembedStatus {
  const total = countUpTo(store);
  const { lacking, owed } = configuredModels === null ? { lacking: 0, owed: 0 } : countLacking(store, configuredModels);
  const isOther = configured !== null && JSON.stringify(live) !== JSON.stringify(configured);
  const isNeeded = isOther || owed > 0;
  return {
    state: isNeeded ? 'needed' : 'current',
    phase: null,
    live,
    configured,
    done: total - lacking,
    total,
    failed: countGivenUp(store).givenUp,
    ratePerSecond: null,
    remainingMs: null,
    error: null,
    estimate: isNeeded ? estimate(store, owed) : null,
  };
}

function stateOf(controller: string | undefined): ReembedStatus['state'] {
  if (controller === 'dead') return 'failed';
  return controller !== undefined && isUnfinished(controller) ? 'running' : 'paused';
}

function progressOf(store: Store, record: ReembedRecord) {
  const total = countUpTo(store);
  const failed = countGivenUp(store).givenUp;
  const isLaterPass = record.phase === 'embed' && record.pass > 1;
  const passed = record.phase === 'drop' || isLaterPass ? total : countUpTo(store, record.cursor);
  const undone = record.phase === 'embed' ? countReembedJobs(store) + failed : 0;
  return { done: Math.max(0, passed - undone), total, failed };
}

function estimate(store: Store, memories: number): { memories: number; tokens: number } {
  const sample = sampleMemories(store, { count: SAMPLED, characters: CHARACTERS, random: createRandom(1) });
  const tokens = sample.reduce((sum, { content }) => sum + estimateTokens(content), 0);
  return { memories, tokens: sample.length === 0 ? 0 : Math.round((memories * tokens) / sample.length) };
}

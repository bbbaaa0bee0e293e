import type { Tenant } from './engine.ts';
import { EngineError } from './errors.ts';
import { createRandom } from './random.ts';
import {
  areSameModels,
  distinctModels,
  modelOfSector,
  numbersOf,
  type SectorModelNumbers,
  type SectorModels,
} from './store/live-model.ts';
import { countReembedJobs, countUpTo, findDirector, findReembed, type ReembedRecord } from './store/reembed.ts';
import type { Store } from './store/open-store.ts';
import { sampleMemories } from './store/search.ts';
import type { TenantOptions } from './tenant.ts';
import { estimateTokens } from './text/tokens.ts';
import { SECTORS, type EmbeddingModel, type EmbeddingState, type ReembedStatus, type Sector } from './types.ts';

type ReembedMethods = Pick<Tenant, 'embedding' | 'reembedStatus' | 'startReembed' | 'pauseReembed' | 'cancelReembed'>;

/** Memories that an estimate reads, and how much of each. */
const SAMPLED = 200;
const CHARACTERS = 20_000;
const UNFINISHED: ReadonlySet<string> = new Set(['queued', 'active', 'failed']);

/** What a tenant says of its embedding models, and how it changes from one to another. */
export function createReembedMethods({
  path,
  open,
  writer,
  dispatcher,
  clock,
  config,
  questionerOf,
}: TenantOptions): ReembedMethods {
  const status = () => {
    const { store, configuredModels } = open();
    const target = configuredModels && numbersOf(configuredModels);
    return store.read(() => describe(store, { ...embedding(), target, now: clock.now() }));
  };
  return {
    embedding,
    reembedStatus: status,
    async startReembed() {
      const { configuredModels } = open();
      const target = configuredModels && numbersOf(configuredModels);
      if (target === null) throw new EngineError('invalid', 'OM_EMBEDDINGS=none: there is no model to embed by');
      await writer.write(path, 'startReembed', { target });
      dispatcher.dispatch(path, 'link');
      return status();
    },
    async pauseReembed() {
      await writer.write(path, 'pauseReembed', {});
      return status();
    },
    async cancelReembed() {
      await writer.write(path, 'cancelReembed', {});
      return status();
    },
  };

  function embedding(): EmbeddingState {
    const { liveModels, configuredModels } = open();
    const unreached = liveModels && distinctModels(liveModels).find((model) => questionerOf(model) === null);
    const reason =
      unreached != null
        ? `the vectors are by ${unreached.provider} ${unreached.model} (${unreached.dimensions} dimensions), which OM_EMBEDDINGS=${config.OM_EMBEDDINGS} does not reach: words only until everything is embedded anew`
        : null;
    return {
      live: liveModels && described(liveModels),
      configured: configuredModels && described(configuredModels),
      degraded: reason,
    };
  }
}

function described(models: SectorModels): EmbeddingModel {
  const { provider, model, dimensions } = models[0];
  if (models.length === 1) return { provider, model, dimensions };
  const named = (sector: Sector) => {
    const used = modelOfSector(models, sector);
    return `${used.model}@${used.dimensions}`;
  };
  const sectors = Object.fromEntries(SECTORS.map((sector) => [sector, named(sector)])) as Record<Sector, string>;
  return { provider, model, dimensions, sectors };
}

function describe(
  store: Store,
  {
    live,
    configured,
    target,
    now,
  }: EmbeddingState & { readonly target: SectorModelNumbers | null; readonly now: number },
): ReembedStatus {
  const record = findReembed(store);
  const director = record && findDirector(store);
  const isNeeded = JSON.stringify(live) !== JSON.stringify(configured) && configured !== null;
  const state = record === undefined ? (isNeeded ? 'needed' : 'current') : stateOf(director?.state);
  const { done, total, failed } = progressOf(store, record, isNeeded);
  const elapsedMs = record === undefined ? 0 : now - record.since.at;
  const rate = record && state === 'running' && elapsedMs > 0 ? Math.max(0, done - record.since.done) / elapsedMs : 0;
  const embeds =
    isNeeded &&
    (record === undefined || (record.phase === 'embed' && target !== null && areSameModels(record.target, target)));
  return {
    ...{ state, phase: record?.phase ?? null, live, configured, done, total, failed },
    ratePerSecond: rate > 0 ? rate * 1_000 : null,
    remainingMs: rate > 0 && record?.phase !== 'drop' ? Math.round((total - done) / rate) : null,
    estimate: embeds ? estimate(store, total - done) : null,
    error: state === 'failed' ? (director?.error ?? null) : null,
  };
}

function stateOf(director: string | undefined): ReembedStatus['state'] {
  if (director === 'dead') return 'failed';
  return director !== undefined && UNFINISHED.has(director) ? 'running' : 'paused';
}

function progressOf(store: Store, record: ReembedRecord | undefined, isNeeded: boolean) {
  const total = countUpTo(store);
  const { waiting, dead } = countReembedJobs(store);
  if (record === undefined) return { done: isNeeded ? 0 : total, total, failed: dead };
  const passed = record.phase === 'drop' || record.pass > 1 ? total : countUpTo(store, record.cursor);
  return { done: Math.max(0, passed - (record.phase === 'embed' ? waiting : 0)), total, failed: dead };
}

function estimate(store: Store, memories: number): { memories: number; tokens: number } {
  const sample = sampleMemories(store, { count: SAMPLED, characters: CHARACTERS, random: createRandom(1) });
  const tokens = sample.reduce((sum, { content }) => sum + estimateTokens(content), 0);
  return { memories, tokens: sample.length === 0 ? 0 : Math.round((memories * tokens) / sample.length) };
}

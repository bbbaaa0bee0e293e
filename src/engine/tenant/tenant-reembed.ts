import type { Tenant } from '../engine.ts';
import { EngineError } from '../errors.ts';
import { createRandom } from '../random.ts';
import {
  areSameModels,
  distinctModels,
  modelOfSector,
  numbersOf,
  type SectorModelNumbers,
  type SectorModels,
} from '../store/live-model.ts';
import type { Store } from '../store/open-store.ts';
import {
  countGivenUp,
  countLacking,
  countReembedJobs,
  countUpTo,
  findDirector,
  findReembed,
  type ReembedRecord,
} from '../store/reembed.ts';
import { sampleMemories } from '../store/search.ts';
import { estimateTokens } from '../text/tokens.ts';
import { SECTORS, type EmbeddingModel, type EmbeddingState, type ReembedStatus, type Sector } from '../types.ts';
import type { TenantOptions } from './tenant.ts';

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
    return store.read(() => describe(store, { ...embedding(), configuredModels, target, now: clock.now() }));
  };
  return {
    embedding,
    reembedStatus: status,
    async startReembed({ withoutRefused = false } = {}) {
      const { configuredModels } = open();
      const target = configuredModels && numbersOf(configuredModels);
      if (target === null) throw new EngineError('invalid', 'OM_EMBEDDINGS=none: there is no model to embed by');
      await writer.write(path, 'startReembed', { target, withoutRefused });
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
  const director = findDirector(store);
  const state = stateOf(director?.state);
  const { done, total, failed } = progressOf(store, record);
  const elapsedMs = now - record.since.at;
  const rate = state === 'running' && elapsedMs > 0 ? Math.max(0, done - record.since.done) / elapsedMs : 0;
  const embeds = record.phase === 'embed' && target !== null && areSameModels(record.target, target);
  return {
    ...{ state, phase: record.phase, live, configured, done, total, failed },
    ratePerSecond: rate > 0 ? rate * 1_000 : null,
    remainingMs: rate > 0 && record.phase !== 'drop' ? Math.round((total - done) / rate) : null,
    estimate: embeds ? estimate(store, total - done - failed) : null,
    error: state === 'failed' ? (director?.error ?? null) : null,
  };
}

/** While nothing is under way: whether every memory has what queries and links would use. */
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
    ...{ state: isNeeded ? 'needed' : 'current', phase: null, live, configured },
    ...{ done: total - lacking, total, failed: countGivenUp(store).givenUp },
    ...{ ratePerSecond: null, remainingMs: null, error: null },
    estimate: isNeeded ? estimate(store, owed) : null,
  };
}

function stateOf(director: string | undefined): ReembedStatus['state'] {
  if (director === 'dead') return 'failed';
  return director !== undefined && UNFINISHED.has(director) ? 'running' : 'paused';
}

function progressOf(store: Store, record: ReembedRecord) {
  const total = countUpTo(store);
  const failed = countGivenUp(store).givenUp;
  const passed = record.phase === 'drop' || record.pass > 1 ? total : countUpTo(store, record.cursor);
  const undone = record.phase === 'embed' ? countReembedJobs(store) + failed : 0;
  return { done: Math.max(0, passed - undone), total, failed };
}

function estimate(store: Store, memories: number): { memories: number; tokens: number } {
  const sample = sampleMemories(store, { count: SAMPLED, characters: CHARACTERS, random: createRandom(1) });
  const tokens = sample.reduce((sum, { content }) => sum + estimateTokens(content), 0);
  return { memories, tokens: sample.length === 0 ? 0 : Math.round((memories * tokens) / sample.length) };
}

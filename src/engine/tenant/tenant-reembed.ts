import type { ClearedRefusals } from '../commands/reembed.ts';
import type { Tenant } from '../engine.ts';
import { EngineError } from '../errors.ts';
import { distinctModels, modelOfSector, numbersOf, type SectorModels } from '../store/live-model.ts';
import { SECTORS, type EmbeddingModel, type EmbeddingState, type Sector } from '../types.ts';
import type { TenantOptions } from './tenant-options.ts';

type ReembedMethods = Pick<Tenant, 'embedding' | 'reembedStatus' | 'startReembed' | 'pauseReembed' | 'cancelReembed'>;

/** Makes the methods by which a tenant returns its embedding models and changes from one model to another. */
export function createReembedMethods({
  path,
  open,
  clock,
  readers,
  writer,
  dispatcher,
  config,
  querySourceOf,
}: TenantOptions): ReembedMethods {
  const status = () => readers.read(path, 'reembedStatus', embedding());
  return {
    embedding: async () => embedding(),
    reembedStatus: async () => status(),
    async startReembed({ withoutRefused = false, force = false } = {}) {
      const { configuredModels } = open();
      const target = configuredModels && numbersOf(configuredModels);
      if (target === null) throw new EngineError('invalid', 'OM_EMBEDDINGS=none: there is no model to embed by');
      const since = clock.now();
      const start = { target, withoutRefused, force };
      for (let cleared: ClearedRefusals = { isDone: false, after: null }; !cleared.isDone;)
        cleared = await writer.write(path, 'clearRefusals', { ...start, since, after: cleared.after });
      await writer.write(path, 'startReembed', start);
      dispatcher.dispatch(path, 'link');
      return status();
    },
    async pauseReembed() {
      await writer.write(path, 'pauseReembed', {});
      return status();
    },
    async cancelReembed() {
      while (!(await writer.write(path, 'stopReembed', {})));
      await writer.write(path, 'cancelReembed', {});
      return status();
    },
  };

  function embedding(): EmbeddingState {
    const { liveModels, configuredModels } = open();
    const unreached = liveModels && distinctModels(liveModels).find((model) => querySourceOf(model) === null);
    const reason =
      unreached != null
        ? `the vectors are by ${unreached.provider} ${unreached.model} (${unreached.dimensions} dimensions), which ` +
          `OM_EMBEDDINGS=${config.OM_EMBEDDINGS} does not reach: words only until everything is embedded anew`
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

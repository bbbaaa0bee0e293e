import { createEmbedder } from '../adapters/create-embedder.ts';
import { recreateEmbedder } from '../adapters/recreate-embedder.ts';
import type { Config } from '../config.ts';
import { type NamedModel, withModel } from '../named-model.ts';
import type { Embedder } from '../ports.ts';
import type { EmbeddingGatherer } from '../providers/embedding-gatherer.ts';
import { openLimitedEmbedder, type EmbedderUse, type ProviderOptions } from '../providers/open-providers.ts';
import type { EmbeddingSource } from '../steps/step-context.ts';
import { isSameSpace, type SpaceIdentity } from '../tenant-file/open-tenant.ts';
import { SECTORS, type Sector } from '../types.ts';

/**
 * The configured embedder of a thread, and the embedders of other models: models of sectors, and models whose vectors
 * files still have.
 */
export interface EmbeddingSources {
  /** Embedder that the settings name; null with `OM_EMBEDDINGS=none`. */
  readonly embedder: Embedder | null;
  /** Gathers the calls of `embedder` into batches and keeps them within its limits; null with `OM_EMBEDDINGS=none`. */
  readonly gatherer: EmbeddingGatherer | null;
  /**
   * The vector spaces that the settings ask for: a single one, or one for each sector in the order of `SECTORS`; null
   * without vectors.
   */
  readonly identity: SpaceIdentity | readonly SpaceIdentity[] | null;
  /**
   * Finds the source for another model than that of `embedder`: the model of a sector, or a model whose vectors a file
   * still has. Sources of sectors are opened with this object, others at the first call for the model. The result is
   * null if the settings do not say how to reach the model.
   */
  readonly sourceOf: (model: SpaceIdentity) => EmbeddingSource | null;
  /** Closes the budgets and the embedders of all sources that were opened. */
  close(): void;
}

/**
 * Opens the configured embedder and, if sectors have models of their own, the embedders of all sectors. `sourceOf`
 * opens the sources of other models on demand. The caller closes the sources.
 */
export function openEmbeddingSources(options: ProviderOptions): EmbeddingSources {
  const { config } = options;
  const opened: { close?(): void }[] = [];
  const openGatherer = (embedder: Embedder, standIns: readonly Embedder[], use: EmbedderUse): EmbeddingGatherer => {
    const limited = openLimitedEmbedder(embedder, standIns, use, options);
    opened.push(limited, embedder);
    return limited.gatherer;
  };
  const embedder = createEmbedder(config);
  const gatherer =
    embedder &&
    openGatherer(embedder, createStandIns(config), { ownLimits: false, sectors: sectorsOf(config, embedder) });
  const identity = embedder && identitiesOf(config, embedder);
  const sources = new Map<string, EmbeddingSource | null>();
  const sourceOf = (model: SpaceIdentity): EmbeddingSource | null => {
    const key = JSON.stringify(identityOf(model));
    const known = sources.get(key);
    if (known !== undefined) return known;
    const other = recreateEmbedder(config, model);
    const sectors = sectorsOf(config, model) ?? [];
    const ownLimits = sectors.length > 0;
    const standIns = ownLimits ? createStandIns(withModel(config, model)) : [];
    const source = other && { embedder: other, gatherer: openGatherer(other, standIns, { ownLimits, sectors }) };
    sources.set(key, source);
    return source;
  };
  // All models are opened now and not at their first call, so that the metrics show the breaker of each one at once.
  if (embedder !== null && Array.isArray(identity)) {
    for (const model of identity) if (!isSameSpace(model, embedder)) sourceOf(model);
  }
  return { embedder, gatherer, identity, sourceOf, close: () => opened.forEach((part) => part.close?.()) };
}

function identitiesOf(config: Config, embedder: Embedder): SpaceIdentity | SpaceIdentity[] {
  const { sectorModels } = config;
  if (sectorModels === null) return identityOf(embedder);
  return sectorModels.map((model) => identityOf(createEmbedder(withModel(config, model))!));
}

/** Copies the fields that identify a vector space, so that they can be sent to another thread without the embedder. */
function identityOf({ provider, model, dimensions, encoding }: SpaceIdentity): SpaceIdentity {
  return { provider, model, dimensions, encoding };
}

/**
 * Returns the sectors that the model is configured for; an empty list if it is configured for none, and null if one
 * model embeds all sectors.
 */
function sectorsOf({ sectorModels }: Config, { model, dimensions }: NamedModel): Sector[] | null {
  if (sectorModels === null) return null;
  return SECTORS.filter((_, place) => {
    const named = sectorModels[place];
    return named?.model === model && named.dimensions === dimensions;
  });
}

/**
 * Creates the embedders that stand in if the configured provider fails: the configured model at each address of
 * `OM_EMBED_FALLBACK`, so that the vector space is the same.
 */
function createStandIns(config: Config): Embedder[] {
  return config.fallbacks.flatMap(
    ({ baseUrl, apiKey }) => createEmbedder({ ...config, OM_OPENAI_BASE_URL: baseUrl, OPENAI_API_KEY: apiKey }) ?? [],
  );
}

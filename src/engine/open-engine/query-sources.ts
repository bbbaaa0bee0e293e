import type { Config } from '../config.ts';
import type { Metrics } from '../metrics.ts';
import type { Logger } from '../ports.ts';
import { createQueryEmbedder, type QueryEmbedder, type QueryEmbeddingSource } from '../providers/query-embedder.ts';
import type { EmbeddingSource } from '../steps/step-context.ts';
import { isSameSpace, type SpaceIdentity } from '../tenant-file/open-tenant.ts';
import { estimateTokens } from '../text/tokens.ts';
import type { EngineParts } from '../parts/engine-parts.ts';

/**
 * Makes the function that returns the embedding source for a tenant's queries of a model, or null if the settings do
 * not say how to reach the model. Each model has one cache of query vectors, in which a tenant finds only the vectors
 * of its own queries.
 */
export function createQuerySources(
  { embedder, gatherer, sourceOf }: Pick<EngineParts, 'embedder' | 'gatherer' | 'sourceOf'>,
  { config, logger, metrics }: { readonly config: Config; readonly logger: Logger; readonly metrics: Metrics },
): (model: SpaceIdentity, tenant: string) => QueryEmbeddingSource | null {
  const queryEmbedders = new Map<EmbeddingSource, (tenant: string) => QueryEmbedder>();
  const configuredSource = embedder && gatherer && { embedder, gatherer };
  return (model, tenant) => {
    const source = embedder !== null && isSameSpace(model, embedder) ? configuredSource : sourceOf(model);
    if (source === null) return null;
    let embedderOf = queryEmbedders.get(source);
    if (embedderOf === undefined) {
      embedderOf = createQueryEmbedder({
        embedder: source.embedder,
        ...(source.embedder.cacheable
          ? { provider: { gatherer: source.gatherer, timeoutMs: config.OM_QUERY_EMBED_TIMEOUT_MS } }
          : {}),
        logger,
        maxCached: config.OM_QUERY_CACHE,
        onLookup: (outcome, text) => countLookup(metrics, outcome, text),
      });
      queryEmbedders.set(source, embedderOf);
    }
    return { embedder: source.embedder, embedQuery: embedderOf(tenant) };
  };
}

function countLookup(metrics: Metrics, outcome: 'hit' | 'miss', text: string): void {
  metrics.embeddingCache.inc({ cache: 'query', outcome });
  if (outcome === 'hit') metrics.savedTokens.inc({ cache: 'query' }, estimateTokens(text));
}

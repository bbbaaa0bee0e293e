import type { Config } from '../config.ts';
import type { Metrics } from '../metrics.ts';
import type { Logger } from '../ports.ts';
import { createQueryEmbedder, type QueryEmbeddingSource } from '../providers/query-embedder.ts';
import type { EmbeddingSource } from '../steps/step-context.ts';
import { isSameSpace, type SpaceIdentity } from '../tenant-file/open-tenant.ts';
import { estimateTokens } from '../text/tokens.ts';
import type { EngineParts } from '../parts/engine-parts.ts';

/**
 * Makes the function that returns the embedding source for the queries of a model, or null if the settings do not say
 * how to reach the model. The function keeps one source for each model, and each source keeps a cache of query vectors
 * that all tenants share.
 */
export function createQuerySources(
  { embedder, gatherer, sourceOf }: Pick<EngineParts, 'embedder' | 'gatherer' | 'sourceOf'>,
  { config, logger, metrics }: { readonly config: Config; readonly logger: Logger; readonly metrics: Metrics },
): (model: SpaceIdentity) => QueryEmbeddingSource | null {
  const querySources = new Map<EmbeddingSource, QueryEmbeddingSource>();
  const configuredSource = embedder && gatherer && { embedder, gatherer };
  return (model) => {
    const source = embedder !== null && isSameSpace(model, embedder) ? configuredSource : sourceOf(model);
    if (source === null) return null;
    let querySource = querySources.get(source);
    if (querySource === undefined) {
      const embedQuery = createQueryEmbedder({
        embedder: source.embedder,
        ...(source.embedder.cacheable
          ? { provider: { gatherer: source.gatherer, timeoutMs: config.OM_QUERY_EMBED_TIMEOUT_MS } }
          : {}),
        logger,
        maxCached: config.OM_QUERY_CACHE,
        onLookup: (outcome, text) => countLookup(metrics, outcome, text),
      });
      querySources.set(source, (querySource = { embedder: source.embedder, embedQuery }));
    }
    return querySource;
  };
}

function countLookup(metrics: Metrics, outcome: 'hit' | 'miss', text: string): void {
  metrics.embeddingCache.inc({ cache: 'query', outcome });
  if (outcome === 'hit') metrics.savedTokens.inc({ cache: 'query' }, estimateTokens(text));
}

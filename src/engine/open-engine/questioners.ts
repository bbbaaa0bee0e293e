import type { Config } from '../config.ts';
import type { Metrics } from '../metrics.ts';
import type { Logger } from '../ports.ts';
import { createQueryEmbedder, type Questioner } from '../providers/query-embedder.ts';
import type { EmbeddingSource } from '../steps/step-context.ts';
import { isSameSpace, type SpaceIdentity } from '../tenant-file/open-tenant.ts';
import { estimateTokens } from '../text/tokens.ts';
import type { EngineParts } from '../parts/engine-parts.ts';

/**
 * Makes the function that finds what embeds queries for a model. It keeps one questioner for each source, with a cache
 * of queries' vectors that all tenants share, and returns null if the settings do not say how to reach the model.
 */
export function createQuestioners(
  { embedder, gatherer, sourceOf }: Pick<EngineParts, 'embedder' | 'gatherer' | 'sourceOf'>,
  { config, logger, metrics }: { readonly config: Config; readonly logger: Logger; readonly metrics: Metrics },
): (model: SpaceIdentity) => Questioner | null {
  const questioners = new Map<EmbeddingSource, Questioner>();
  const configuredSource = embedder && gatherer && { embedder, gatherer };
  return (model) => {
    const source = embedder !== null && isSameSpace(model, embedder) ? configuredSource : sourceOf(model);
    if (source === null) return null;
    let questioner = questioners.get(source);
    if (questioner === undefined) {
      const embedQuery = createQueryEmbedder({
        embedder: source.embedder,
        ...(source.embedder.cacheable
          ? { provider: { gatherer: source.gatherer, timeoutMs: config.OM_QUERY_EMBED_TIMEOUT_MS } }
          : {}),
        logger,
        cached: config.OM_QUERY_CACHE,
        onLookup: (outcome, text) => countLookup(metrics, outcome, text),
      });
      questioners.set(source, (questioner = { embedder: source.embedder, embedQuery }));
    }
    return questioner;
  };
}

function countLookup(metrics: Metrics, outcome: 'hit' | 'miss', text: string): void {
  metrics.embeddingCache.inc({ cache: 'query', outcome });
  if (outcome === 'hit') metrics.savedTokens.inc({ cache: 'query' }, estimateTokens(text));
}

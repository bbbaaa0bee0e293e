import { createEmbedder } from '../adapters/create-embedder.ts';
import { recreateEmbedder } from '../adapters/recreate-embedder.ts';
import type { Config } from '../config.ts';
import type { Embedder, Logger } from '../ports.ts';
import { createQueryEmbedder, type QueryEmbedder, type QueryEmbeddingSource } from '../providers/query-embedder.ts';
import { isSameSpace, type SpaceIdentity } from '../tenant-file/open-tenant.ts';

/** Asks the process of a thread to embed a query; resolves to null if the provider failed. */
type AskProcess = (space: SpaceIdentity, text: string) => Promise<Float32Array | null>;

/** The embedder of a model, with what embeds a tenant's queries on this thread; null if the process embeds them. */
interface Found {
  readonly embedder: Embedder;
  readonly embedHere: ((tenant: string) => QueryEmbedder) | null;
}

/**
 * Makes the function that a reader thread calls for each read, with the path of the tenant's file and with `ask`, which
 * calls the process in the name of that read. The function returns another one, which finds the embedding source for
 * the queries of a model, or null if the settings do not say how to reach the model. An embedder whose vectors need no
 * cache (`cacheable`) embeds on the thread itself. All others embed in the process, whose limits and cache all threads
 * share.
 */
export function createThreadQuerySources(
  config: Config,
  logger: Logger,
): (tenant: string, ask: AskProcess) => (model: SpaceIdentity) => QueryEmbeddingSource | null {
  const configured = createEmbedder(config);
  const embedders = new Map<string, Found | null>();
  const embedderOf = ({ provider, model, dimensions, encoding }: SpaceIdentity) => {
    const space = { provider, model, dimensions, encoding };
    const key = JSON.stringify(space);
    let found = embedders.get(key);
    if (found === undefined) {
      const isConfigured = configured !== null && isSameSpace(space, configured);
      const embedder = isConfigured ? configured : recreateEmbedder(config, space);
      found = embedder && {
        embedder,
        embedHere: embedder.cacheable
          ? null
          : createQueryEmbedder({ embedder, logger, maxCached: config.OM_QUERY_CACHE }),
      };
      embedders.set(key, found);
    }
    return found;
  };
  return (tenant, ask) => (model) => {
    const found = embedderOf(model);
    if (found === null) return null;
    const { embedder, embedHere } = found;
    return { embedder, embedQuery: embedHere?.(tenant) ?? ((text) => ask(model, text)) };
  };
}

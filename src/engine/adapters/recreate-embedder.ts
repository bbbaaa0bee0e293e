import type { Config } from '../config.ts';
import { withModel } from '../named-model.ts';
import type { Embedder } from '../ports.ts';
import { createEmbedder } from './create-embedder.ts';

/**
 * Creates the embedder of a model that a file has vectors of, although the settings name another model now. The offline
 * embedder can always be created again; a provider that the settings still name is asked for the file's model.
 * @returns null if the settings name another provider (unless the model is offline), or if they make other vectors
 * @throws EngineError `invalid` as `createEmbedder` does
 */
export function recreateEmbedder(
  config: Config,
  identity: Pick<Embedder, 'provider' | 'model' | 'dimensions' | 'encoding'>,
): Embedder | null {
  const { provider, model, dimensions, encoding } = identity;
  if (provider !== 'synthetic' && provider !== config.OM_EMBEDDINGS) return null;
  const embedder = createEmbedder(withModel({ ...config, OM_EMBEDDINGS: provider }, { model, dimensions }));
  const isSame =
    embedder?.provider === provider &&
    embedder.model === model &&
    embedder.dimensions === dimensions &&
    embedder.encoding === encoding;
  return isSame ? embedder : null;
}

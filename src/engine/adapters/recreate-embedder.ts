import type { Config } from '../config.ts';
import { withModel } from '../named-model.ts';
import type { Embedder } from '../ports.ts';
import { createEmbedder } from './create-embedder.ts';

/**
 * Creates the embedder of a model whose vectors a file has although the settings now name another model. This is
 * possible for the offline embedder, and for any model of the provider that the settings name.
 * @returns null for any other model, and if the embedder would make vectors of another space
 * @throws EngineError `invalid` if the embedder cannot be created (`createEmbedder`)
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

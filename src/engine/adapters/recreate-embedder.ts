import { type Config, withModel } from '../config.ts';
import type { Embedder } from '../ports.ts';
import { createEmbedder } from './create-embedder.ts';

/**
 * The embedder of a model that a file has vectors of, though the settings ask for another by now: what computes can always be made
 * again, and a provider that the settings still name is asked for its other model.
 * @returns null where the settings do not say how to reach it, or what they say makes other vectors
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

import type { Config } from '../config.ts';
import type { Embedder } from '../ports.ts';
import { createEmbedder } from './create-embedder.ts';

/** The setting that names each provider's model. A local one is its folder, which is not known for another than the configured. */
const MODEL_SETTINGS = {
  openai: 'OM_OPENAI_MODEL',
  gemini: 'OM_GEMINI_MODEL',
  ollama: 'OM_OLLAMA_MODEL',
  bedrock: 'OM_BEDROCK_MODEL',
} as const;

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
  const setting = MODEL_SETTINGS[provider as keyof typeof MODEL_SETTINGS] as string | undefined;
  const embedder = createEmbedder({
    ...config,
    OM_EMBEDDINGS: provider,
    OM_VEC_DIM: dimensions,
    ...(setting === undefined ? {} : { [setting]: model }),
  });
  const isSame =
    embedder?.provider === provider &&
    embedder.model === model &&
    embedder.dimensions === dimensions &&
    embedder.encoding === encoding;
  return isSame ? embedder : null;
}

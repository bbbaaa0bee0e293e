import type { Config } from '../config.ts';
import type { Embedder } from '../ports.ts';
import { createHashedEmbedder } from './hashed-embedder.ts';
import { createOpenAiEmbedder } from './openai-embedder.ts';

/** The embedder that `OM_EMBEDDINGS` names; null for `none`, where words alone are searched. */
export function createEmbedder(config: Config): Embedder | null {
  switch (config.OM_EMBEDDINGS) {
    case 'synthetic':
      return createHashedEmbedder({ dimensions: config.OM_VEC_DIM });
    case 'openai':
      return createOpenAiEmbedder(config);
    case 'none':
      return null;
  }
}

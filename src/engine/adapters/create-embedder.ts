import type { Config } from '../config.ts';
import type { Embedder } from '../ports.ts';
import { createBedrockEmbedder } from './bedrock-embedder.ts';
import { createGeminiEmbedder } from './gemini-embedder.ts';
import { createHashedEmbedder } from './hashed-embedder.ts';
import { createLocalEmbedder } from './local-embedder.ts';
import { createOllamaEmbedder } from './ollama-embedder.ts';
import { createOpenAiEmbedder } from './openai-embedder.ts';

/**
 * Creates the embedder that `OM_EMBEDDINGS` names; null for `none`, with which only words are searched. The packages
 * that the embedder needs are loaded by its first call.
 * @throws EngineError `invalid` if a local model or a package that runs it is missing, or if the offline embedder or
 *   the local model cannot make `OM_VEC_DIM` dimensions
 */
export function createEmbedder(config: Config): Embedder | null {
  switch (config.OM_EMBEDDINGS) {
    case 'synthetic':
      return createHashedEmbedder({ dimensions: config.OM_VEC_DIM });
    case 'openai':
      return createOpenAiEmbedder(config);
    case 'gemini':
      return createGeminiEmbedder(config);
    case 'ollama':
      return createOllamaEmbedder(config);
    case 'bedrock':
      return createBedrockEmbedder(config);
    case 'local':
      return createLocalEmbedder(config);
    case 'none':
      return null;
  }
}

import type { Config } from '../config.ts';
import type { Embedder } from '../ports.ts';
import { createOpenAiClient, isOpenAiItself } from './openai-client.ts';
import { MODEL_VECTORS, readVectors, maxReplyBytesOf } from './read-vectors.ts';
import { familyOf } from './model-families.ts';

/**
 * Creates an embedder that calls any server with OpenAI's `/embeddings`. One call of `embed` is one request without
 * retries, since the job ledger counts attempts and retries. `OM_EMBED_TIMEOUT_MS` limits the time of a call from
 * connecting to the last byte.
 */
export function createOpenAiEmbedder(config: Config): Embedder {
  const { OM_OPENAI_MODEL: model, OM_VEC_DIM: dimensions, OM_EMBED_BATCH_TEXTS: maxBatchTexts } = config;
  const options = requestOptions(config);
  const { prefixes } = familyOf(model);
  const client = createOpenAiClient({
    role: 'embedding provider',
    baseUrl: config.OM_OPENAI_BASE_URL,
    apiKey: config.OPENAI_API_KEY,
    timeoutMs: config.OM_EMBED_TIMEOUT_MS,
    maxReplyBytes: maxReplyBytesOf(maxBatchTexts, dimensions),
    settings: {
      baseUrl: 'OM_OPENAI_BASE_URL',
      apiKey: 'OPENAI_API_KEY',
      model: 'OM_OPENAI_MODEL',
      timeout: 'OM_EMBED_TIMEOUT_MS',
    },
    badRequest: (status, param) =>
      // These parameters come from settings, so an error about them is not the text's fault.
      param === 'model' || param === 'dimensions' || param === 'encoding_format'
        ? client.misconfigured(status, 'OM_OPENAI_MODEL and OM_VEC_DIM')
        : client.badText(status),
  });

  return {
    provider: 'openai',
    model,
    dimensions,
    ...MODEL_VECTORS,
    maxBatchTexts,
    maxBatchTokens: config.OM_EMBED_BATCH_TOKENS,
    prepare: () => client.prepare(),
    async embed(texts, { purpose, signal, onReply }) {
      if (texts.length === 0) return [];
      const input = texts.map((text) => prefixes[purpose] + text);
      const reply = await client.call(
        ({ embeddings }) => embeddings.create({ model, input, ...options }, { signal: signal ?? null }),
        onReply,
      );
      const items = (reply as { data?: unknown } | null)?.data;
      return readVectors(items, { count: texts.length, dimensions, refused: client.refused }, openItem);
    },
  };
}

function requestOptions(config: Config): { encoding_format: 'base64' | 'float'; dimensions?: number } {
  return {
    // Base64 has a quarter of the length. OpenAI's own servers send it; some compatible ones refuse it or send nothing.
    encoding_format: isOpenAiItself(config.OM_OPENAI_BASE_URL) ? 'base64' : 'float',
    // Other models have one size, and servers refuse a parameter that they do not know.
    ...(config.OM_OPENAI_MODEL.includes('text-embedding-3') ? { dimensions: config.OM_VEC_DIM } : {}),
  };
}

/** Reads the vector and its index from an item of the reply's list; a field that is missing is undefined. */
function openItem(item: unknown): { numbers: unknown; index?: unknown } {
  const { embedding, index } = (item ?? {}) as { embedding?: unknown; index?: unknown };
  return { numbers: embedding, index };
}

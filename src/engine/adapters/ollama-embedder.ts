import type { Config } from '../config.ts';
import type { EngineError } from '../errors.ts';
import type { Embedder } from '../ports.ts';
import { createProviderClient, type FailedReply } from './provider-client.ts';
import type { ProviderErrors } from './provider-errors.ts';
import { MODEL_VECTORS, readVectors, maxReplyBytesOf } from './read-vectors.ts';
import { familyOf } from './model-families.ts';

/**
 * Time for which Ollama keeps the model loaded after a request. Its default is five minutes, and loading a model takes
 * longer than a query waits.
 */
const KEEP_ALIVE = '30m';

/**
 * Creates an embedder that calls Ollama's own API. Unlike the OpenAI-compatible one, this API can be told to refuse a
 * text that is too long instead of cutting it.
 */
export function createOllamaEmbedder(config: Config): Embedder {
  const { OM_OLLAMA_MODEL: model, OM_VEC_DIM: dimensions, OM_EMBED_BATCH_TEXTS: maxBatchTexts } = config;
  const { prefixes } = familyOf(model);
  const url = `${config.OLLAMA_URL.replace(/\/+$/, '')}/api/embed`;
  const client = createProviderClient({
    role: 'embedding provider',
    timeoutMs: config.OM_EMBED_TIMEOUT_MS,
    maxReplyBytes: maxReplyBytesOf(maxBatchTexts, dimensions),
    settings: {
      baseUrl: 'OLLAMA_URL',
      apiKey: 'OLLAMA_URL',
      model: 'OM_OLLAMA_MODEL',
      timeout: 'OM_EMBED_TIMEOUT_MS',
    },
    tokensOf: ({ json }) => (json as { prompt_eval_count?: unknown } | null)?.prompt_eval_count,
    explain: (reply, errors) => explain(reply, model, errors),
  });

  return {
    provider: 'ollama',
    model,
    dimensions,
    ...MODEL_VECTORS,
    maxBatchTexts,
    maxBatchTokens: config.OM_EMBED_BATCH_TOKENS,
    async embed(texts, { purpose, ...options }) {
      if (texts.length === 0) return [];
      const input = texts.map((text) => prefixes[purpose] + text);
      const body = JSON.stringify({ model, input, truncate: false, keep_alive: KEEP_ALIVE });
      const reply = await client.post({ url, body }, options);
      const items = (reply as { embeddings?: unknown } | null)?.embeddings;
      return readVectors(items, { count: texts.length, dimensions, refused: client.errors.refused });
    },
  };
}

/**
 * Returns the error for a failed reply that has a message of Ollama: a text that is too long, an unknown model (404),
 * or another refusal (400). Returns undefined for any other reply; its status then determines the error. Only the
 * message tells that a text is too long, since the status is then 400, or 500 in older versions.
 */
function explain({ status, json }: FailedReply, model: string, errors: ProviderErrors): EngineError | undefined {
  const said = (json as { error?: unknown } | null | undefined)?.error;
  if (typeof said !== 'string') return undefined;
  if (/exceeds (the |maximum )*context length/i.test(said)) return errors.badText(status, 'as too long');
  if (status === 404) return errors.failed(`found no such model: run "ollama pull ${model}" or check OM_OLLAMA_MODEL`);
  return status === 400 ? errors.misconfigured(status, 'OM_OLLAMA_MODEL') : undefined;
}

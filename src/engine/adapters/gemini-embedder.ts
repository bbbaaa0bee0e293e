import type { Config } from '../config.ts';
import type { EngineError } from '../errors.ts';
import type { Embedder } from '../ports.ts';
import { createProviderClient, type FailedReply } from './provider-client.ts';
import type { ProviderErrors } from './provider-errors.ts';
import { MODEL_VECTORS, readVectors, maxReplyBytesOf } from './read-vectors.ts';

/** Greatest number of texts in a batch; Gemini refuses more. */
const MAX_TEXTS = 100;
const TASK_TYPES = { document: 'RETRIEVAL_DOCUMENT', query: 'RETRIEVAL_QUERY' } as const;

/**
 * Creates an embedder that calls Google's Gemini API in its own format. Unlike Gemini's OpenAI-compatible API, it
 * distinguishes questions from documents. Gemini does not normalise vectors that it shortens, so the embedder does.
 */
export function createGeminiEmbedder(config: Config): Embedder {
  const { OM_VEC_DIM: dimensions } = config;
  const model = config.OM_GEMINI_MODEL.replace(/^models\//, '');
  const maxBatchTexts = Math.min(config.OM_EMBED_BATCH_TEXTS, MAX_TEXTS);
  const baseUrl = config.OM_GEMINI_BASE_URL.replace(/\/+$/, '');
  const url = `${baseUrl}/models/${encodeURIComponent(model)}:batchEmbedContents`;
  const client = createProviderClient({
    role: 'embedding provider',
    timeoutMs: config.OM_EMBED_TIMEOUT_MS,
    maxReplyBytes: maxReplyBytesOf(maxBatchTexts, dimensions),
    settings: {
      baseUrl: 'OM_GEMINI_BASE_URL',
      apiKey: 'GEMINI_API_KEY',
      model: 'OM_GEMINI_MODEL',
      timeout: 'OM_EMBED_TIMEOUT_MS',
    },
    tokensOf: ({ json }) =>
      (json as { usageMetadata?: { promptTokenCount?: unknown } } | null)?.usageMetadata?.promptTokenCount,
    explain,
  });

  return {
    provider: 'gemini',
    model,
    dimensions,
    ...MODEL_VECTORS,
    maxBatchTexts,
    maxBatchTokens: config.OM_EMBED_BATCH_TOKENS,
    async embed(texts, { purpose, ...options }) {
      if (texts.length === 0) return [];
      const requests = texts.map((text) => ({
        model: `models/${model}`,
        content: { parts: [{ text }] },
        taskType: TASK_TYPES[purpose],
        outputDimensionality: dimensions,
      }));
      const headers = { 'x-goog-api-key': config.GEMINI_API_KEY ?? '' };
      const reply = await client.post({ url, headers, body: JSON.stringify({ requests }) }, options);
      const items = (reply as { embeddings?: unknown } | null)?.embeddings;
      return readVectors(items, { count: texts.length, dimensions, refused: client.errors.refused }, (item) => ({
        numbers: (item as { values?: unknown } | null)?.values,
      }));
    },
  };
}

interface GeminiError {
  readonly status: string;
  readonly message: string;
  readonly details: readonly { readonly reason: string; readonly retryDelay: string }[];
}

/**
 * Reads the error in a reply of Gemini. A field that is missing or malformed becomes ''. It is read without zod, which
 * would take 3 MB in each thread that answers queries.
 * @returns undefined for a reply without an error
 */
function readError(json: unknown): GeminiError | undefined {
  const error = fieldsOf(fieldsOf(json)?.['error']);
  if (error === undefined) return undefined;
  const details = Array.isArray(error['details']) ? error['details'].map(fieldsOf) : [];
  return {
    status: textOf(error['status']),
    message: textOf(error['message']),
    details: details.map((detail) => ({
      reason: textOf(detail?.['reason']),
      retryDelay: textOf(detail?.['retryDelay']),
    })),
  };
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> | undefined {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : undefined;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/**
 * Returns the error for a failed reply; undefined if its status alone determines the error. Gemini answers 400 also for
 * a wrong key and for an account that is not set up, and states in the body how long to wait.
 */
function explain({ status, json }: FailedReply, errors: ProviderErrors): EngineError | undefined {
  const error = readError(json);
  if (error === undefined) return undefined;
  if (status === 429) {
    const seconds = error.details.map(({ retryDelay }) => parseFloat(retryDelay)).find((delay) => delay > 0);
    return seconds === undefined ? undefined : errors.limited(Math.ceil(seconds * 1_000));
  }
  if (status !== 400) return undefined;
  if (error.status !== 'INVALID_ARGUMENT' || error.details.some(({ reason }) => reason.startsWith('API_KEY_')))
    return errors.misconfigured(status, 'GEMINI_API_KEY and its account');
  if (/output_?dimensionality|task_?type/i.test(error.message))
    return errors.misconfigured(status, 'OM_GEMINI_MODEL and OM_VEC_DIM');
  return undefined;
}

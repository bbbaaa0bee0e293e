import type OpenAI from 'openai';
import type { Config } from '../config.ts';
import { EngineError } from '../errors.ts';
import type { Embedder } from '../ports.ts';

const DEFAULT_RETRY_MS = 1_000;
/** A provider that asks for a longer pause is asked again after this one: a wrong header must not stop a queue for days. */
const MAX_RETRY_MS = 3_600_000;
/** JSON spells a float64 in at most 25 characters; the rest is for servers that indent. */
const BYTES_PER_NUMBER = 48;
const REPLY_OVERHEAD_BYTES = 65_536;

type Sdk = typeof import('openai');
type ApiError = InstanceType<Sdk['APIError']>;

/**
 * Embeds by any server that speaks OpenAI's `/embeddings`. One call is one request: retries belong to the ledger, which
 * knows how often a job was tried. `OM_EMBED_TIMEOUT_MS` bounds a call from connect to the last byte.
 */
export function createOpenAiEmbedder(config: Config): Embedder {
  const { OM_OPENAI_MODEL: model, OM_VEC_DIM: dimensions, OM_EMBED_BATCH_TEXTS: maxBatchTexts } = config;
  const maxReplyBytes = maxBatchTexts * dimensions * BYTES_PER_NUMBER + REPLY_OVERHEAD_BYTES;
  const options = requestOptions(config);
  let connection: Promise<{ sdk: Sdk; client: OpenAI }> | undefined;

  return {
    provider: 'openai',
    model,
    dimensions,
    encoding: 'float32',
    waypointThreshold: 0.75,
    vectorWeight: 0.5,
    cacheable: true,
    maxBatchTexts,
    maxBatchTokens: config.OM_EMBED_BATCH_TOKENS,
    async embed(texts, { signal }) {
      if (texts.length === 0) return [];
      const { sdk, client } = await (connection ??= connect(config, maxReplyBytes));
      const reply = await client.embeddings
        .create({ model, input: [...texts], ...options }, { signal: signal ?? null })
        .catch((error: unknown) => {
          throw providerError(error, sdk);
        });
      return readVectors(reply, texts.length, dimensions);
    },
  };
}

/** The SDK takes 0.2 s to load, so it is loaded by the first call. */
async function connect(config: Config, maxReplyBytes: number): Promise<{ sdk: Sdk; client: OpenAI }> {
  const sdk = await import('openai');
  const key = config.OPENAI_API_KEY;
  const client = new sdk.OpenAI({
    baseURL: config.OM_OPENAI_BASE_URL,
    // Left out, these would be taken from the environment, past Config.
    apiKey: key ?? 'none',
    adminAPIKey: null,
    organization: null,
    project: null,
    webhookSecret: null,
    logLevel: 'off',
    maxRetries: 0,
    timeout: config.OM_EMBED_TIMEOUT_MS,
    fetch: boundedFetch(maxReplyBytes),
    ...(key === undefined ? { defaultHeaders: { authorization: null } } : {}),
  });
  return { sdk, client };
}

function requestOptions(config: Config): { encoding_format?: 'float'; dimensions?: number } {
  const isOpenAi = new URL(config.OM_OPENAI_BASE_URL).hostname === 'api.openai.com';
  return {
    // The SDK asks for base64 by default. OpenAI's own servers send it; some compatible ones refuse it or send nothing.
    ...(isOpenAi ? {} : { encoding_format: 'float' }),
    // Other models have one size, and servers refuse a parameter they do not know.
    ...(config.OM_OPENAI_MODEL.includes('text-embedding-3') ? { dimensions: config.OM_VEC_DIM } : {}),
  };
}

/**
 * A `fetch` that returns once the body is here. So the SDK's time limit covers the body of an error too, and a reply that never
 * ends costs at most `maxBytes`. Redirects are not followed: texts go to the configured host only.
 */
function boundedFetch(maxBytes: number): typeof fetch {
  return async (input, init) => {
    const response = await fetch(input, { ...init, redirect: 'manual' });
    const parts: Uint8Array[] = [];
    let bytes = 0;
    // Leaving the loop early cancels the body, which closes the connection.
    for await (const part of (response.body ?? []) as AsyncIterable<Uint8Array>) {
      bytes += part.byteLength;
      if (bytes > maxBytes) throw refused(`is longer than ${maxBytes} bytes`);
      parts.push(part);
    }
    const { status, statusText, headers } = response;
    return new Response(bytes === 0 ? null : Buffer.concat(parts), { status, statusText, headers });
  };
}

/**
 * What a failed call means. The SDK's own errors quote replies, which may quote texts and keys: neither their messages nor
 * they themselves, as `cause`, are passed on.
 */
function providerError(error: unknown, sdk: Sdk): EngineError {
  if (error instanceof sdk.APIUserAbortError) return unavailable('was given up by its caller');
  if (error instanceof sdk.APIConnectionTimeoutError) return unavailable('took longer than OM_EMBED_TIMEOUT_MS');
  if (error instanceof sdk.APIConnectionError) {
    return error.cause instanceof EngineError
      ? error.cause
      : unavailable(`failed to connect or was cut off${networkCode(error)}`);
  }
  if (error instanceof sdk.APIError && error.status !== undefined) return statusError(error as ApiError);
  return refused('is not the JSON it should be');
}

function statusError({ status, headers, param }: ApiError): EngineError {
  const retryAfterMs = readRetryAfter(headers);
  switch (status) {
    case 429:
      return new EngineError('rate_limited', 'the embedding provider asked for a pause', {
        retryAfterMs: retryAfterMs ?? DEFAULT_RETRY_MS,
      });
    case 401:
    case 403:
      return unavailable(`was refused (HTTP ${status}): check OPENAI_API_KEY`);
    case 404:
      return unavailable('found no such model or path: check OM_OPENAI_BASE_URL and OM_OPENAI_MODEL');
    case 400:
    case 413:
    case 422:
      // These come from settings: a complaint about them is no text's fault.
      return param === 'model' || param === 'dimensions' || param === 'encoding_format'
        ? unavailable(`was refused (HTTP ${status}): check OM_OPENAI_MODEL and OM_VEC_DIM`)
        : new EngineError('invalid', `the embedding provider refused a text (HTTP ${status})`);
    default:
      return unavailable(`was answered with HTTP ${status}`, retryAfterMs);
  }
}

/** `retry-after-ms`, or `retry-after` in seconds or as a date, as milliseconds from now; undefined if absent or senseless. */
function readRetryAfter(headers: Headers | undefined): number | undefined {
  const [precise, standard] = [headers?.get('retry-after-ms'), headers?.get('retry-after')];
  const candidates = [
    precise ? Number(precise) : NaN,
    standard ? Number(standard) * 1_000 : NaN,
    standard ? Date.parse(standard) - Date.now() : NaN,
  ];
  const ms = candidates.find((candidate) => Number.isFinite(candidate) && candidate >= 0);
  return ms === undefined ? undefined : Math.min(Math.ceil(ms), MAX_RETRY_MS);
}

function networkCode(error: Error): string {
  const { cause } = error as { cause?: { code?: unknown; cause?: { code?: unknown } } };
  const code = cause?.cause?.code ?? cause?.code;
  return typeof code === 'string' ? ` (${code})` : '';
}

/** Checks a reply from end to end before any of it is used. */
function readVectors(reply: unknown, count: number, dimensions: number): Float32Array[] {
  const items = (reply as { data?: unknown } | null)?.data;
  if (!Array.isArray(items)) throw refused('holds no list of vectors');
  if (items.length !== count) throw refused(`holds ${items.length} vectors for ${count} texts`);
  const vectors = new Array<Float32Array | undefined>(count).fill(undefined);
  items.forEach((item: { index?: unknown; embedding?: unknown } | null, position) => {
    // Servers that write JSON from protobuf leave out an index of 0.
    const index = item?.index ?? position;
    if (typeof index !== 'number' || !(index in vectors) || vectors[index] !== undefined) {
      throw refused('does not say which vector belongs to which text');
    }
    vectors[index] = readVector(item?.embedding, dimensions);
  });
  return vectors as Float32Array[];
}

function readVector(numbers: unknown, dimensions: number): Float32Array {
  if (!Array.isArray(numbers)) throw refused('holds something that is no vector');
  if (numbers.length !== dimensions) {
    throw refused(`holds a vector of ${numbers.length} dimensions where OM_VEC_DIM is ${dimensions}`);
  }
  if (!numbers.every((value) => typeof value === 'number'))
    throw refused('holds a vector with something that is no number');
  const vector = Float32Array.from(numbers);
  const norm = Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0));
  // One NaN or infinity makes the norm one, a vector of zeros makes it 0.
  if (!Number.isFinite(norm) || norm === 0) throw refused('holds a vector of zeros, or a number too large for float32');
  return vector.map((value) => value / norm);
}

function unavailable(what: string, retryAfterMs?: number): EngineError {
  return new EngineError(
    'unavailable',
    `the call to the embedding provider ${what}`,
    retryAfterMs === undefined ? {} : { retryAfterMs },
  );
}

function refused(what: string): EngineError {
  return new EngineError('unavailable', `the embedding provider's reply ${what}`);
}

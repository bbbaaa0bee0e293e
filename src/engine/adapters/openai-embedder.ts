import type { Config } from '../config.ts';
import { EngineError } from '../errors.ts';
import type { Embedder } from '../ports.ts';
import { createOpenAiClient, isOpenAiItself, type OpenAiClient } from './openai-client.ts';

/** JSON spells a float64 in at most 25 characters; the rest is for servers that indent. */
const BYTES_PER_NUMBER = 48;
const REPLY_OVERHEAD_BYTES = 65_536;

/**
 * Embeds by any server that speaks OpenAI's `/embeddings`. One call is one request: retries belong to the ledger, which
 * knows how often a job was tried. `OM_EMBED_TIMEOUT_MS` bounds a call from connect to the last byte.
 */
export function createOpenAiEmbedder(config: Config): Embedder {
  const { OM_OPENAI_MODEL: model, OM_VEC_DIM: dimensions, OM_EMBED_BATCH_TEXTS: maxBatchTexts } = config;
  const options = requestOptions(config);
  const client = createOpenAiClient({
    role: 'embedding provider',
    baseUrl: config.OM_OPENAI_BASE_URL,
    apiKey: config.OPENAI_API_KEY,
    timeoutMs: config.OM_EMBED_TIMEOUT_MS,
    maxReplyBytes: maxBatchTexts * dimensions * BYTES_PER_NUMBER + REPLY_OVERHEAD_BYTES,
    settings: {
      baseUrl: 'OM_OPENAI_BASE_URL',
      apiKey: 'OPENAI_API_KEY',
      model: 'OM_OPENAI_MODEL',
      timeout: 'OM_EMBED_TIMEOUT_MS',
    },
    badRequest: (status, param) =>
      // These come from settings: a complaint about them is no text's fault.
      param === 'model' || param === 'dimensions' || param === 'encoding_format'
        ? client.failed(`was refused (HTTP ${status}): check OM_OPENAI_MODEL and OM_VEC_DIM`)
        : new EngineError('invalid', `the embedding provider refused a text (HTTP ${status})`),
  });

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
      const reply = await client.call(({ embeddings }) =>
        embeddings.create({ model, input: [...texts], ...options }, { signal: signal ?? null }),
      );
      return readVectors(reply, { count: texts.length, dimensions, client });
    },
  };
}

function requestOptions(config: Config): { encoding_format?: 'float'; dimensions?: number } {
  return {
    // The SDK asks for base64 by default. OpenAI's own servers send it; some compatible ones refuse it or send nothing.
    ...(isOpenAiItself(config.OM_OPENAI_BASE_URL) ? {} : { encoding_format: 'float' }),
    // Other models have one size, and servers refuse a parameter they do not know.
    ...(config.OM_OPENAI_MODEL.includes('text-embedding-3') ? { dimensions: config.OM_VEC_DIM } : {}),
  };
}

interface Expected {
  readonly count: number;
  readonly dimensions: number;
  readonly client: OpenAiClient;
}

/** Checks a reply from end to end before any of it is used. */
function readVectors(reply: unknown, { count, dimensions, client }: Expected): Float32Array[] {
  const { refused } = client;
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
    vectors[index] = readVector(item?.embedding, dimensions, client);
  });
  return vectors as Float32Array[];
}

function readVector(numbers: unknown, dimensions: number, { refused }: OpenAiClient): Float32Array {
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

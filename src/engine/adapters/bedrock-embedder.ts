import pLimit from 'p-limit';
import type { Config } from '../config.ts';
import type { EngineError } from '../errors.ts';
import type { Embedder } from '../ports.ts';
import { createProviderClient, type FailedReply } from './provider-client.ts';
import type { ProviderErrors } from './provider-errors.ts';
import { MODEL_VECTORS, readVectors, maxReplyBytesOf } from './read-vectors.ts';

/** Greatest number of requests that one call of `embed` sends at the same time. */
const REQUESTS_AT_ONCE = 4;
/** Greatest length of a text that Titan accepts, in tokens. */
const MAX_TOKENS = 8_192;
/** Names of the settings with credentials, for error messages. */
const CREDENTIALS = 'AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_BEARER_TOKEN_BEDROCK';

/**
 * Creates an embedder that calls Amazon's Titan Text Embeddings V2 on Bedrock. Titan takes one text in a request, so
 * `maxBatchTexts` is 1, and a refused text does not make others fail. If `embed` gets several texts, it sends up to
 * four requests at a time; after a failure, it sends no more.
 */
export function createBedrockEmbedder(config: Config): Embedder {
  const { OM_BEDROCK_MODEL: model, OM_VEC_DIM: dimensions } = config;
  const baseUrl = config.OM_BEDROCK_BASE_URL ?? `https://bedrock-runtime.${config.AWS_REGION}.amazonaws.com`;
  const url = `${baseUrl.replace(/\/+$/, '')}/model/${encodeURIComponent(model)}/invoke`;
  const client = createProviderClient({
    role: 'embedding provider',
    timeoutMs: config.OM_EMBED_TIMEOUT_MS,
    // A reply holds the vector twice, the second time in a list by type.
    maxReplyBytes: maxReplyBytesOf(2, dimensions),
    settings: {
      baseUrl: 'OM_BEDROCK_BASE_URL',
      apiKey: `${CREDENTIALS}, and whether they may use OM_BEDROCK_MODEL`,
      model: 'OM_BEDROCK_MODEL',
      timeout: 'OM_EMBED_TIMEOUT_MS',
    },
    tokensOf: ({ json }) => (json as { inputTextTokenCount?: unknown } | null)?.inputTextTokenCount,
    explain,
  });

  async function embedOne(text: string, options: Parameters<typeof client.post>[1]): Promise<Float32Array> {
    const body = JSON.stringify({ inputText: text, dimensions, normalize: true });
    const reply = await client.post({ url, headers: () => authorise(config, url, body), body }, options);
    const items = [(reply as { embedding?: unknown } | null)?.embedding];
    return readVectors(items, { count: 1, dimensions, refused: client.errors.refused })[0]!;
  }

  return {
    provider: 'bedrock',
    model,
    dimensions,
    ...MODEL_VECTORS,
    maxBatchTexts: 1,
    maxBatchTokens: MAX_TOKENS,
    prepare: async () => void (config.AWS_BEARER_TOKEN_BEDROCK ?? (await loadSigner())),
    async embed(texts, options) {
      const limit = pLimit(REQUESTS_AT_ONCE);
      try {
        return await Promise.all(texts.map((text) => limit(() => embedOne(text, options))));
      } finally {
        // After a failure the other texts are not sent any more.
        limit.clearQueue();
      }
    },
  };
}

const loadSigner = () => import('aws4fetch');

/**
 * Returns the headers that authorise a POST request: a Bedrock API key if one is set, else a signature of the request
 * (Signature Version 4).
 */
async function authorise(config: Config, url: string, body: string): Promise<Record<string, string>> {
  const { AWS_BEARER_TOKEN_BEDROCK: bearer, AWS_SESSION_TOKEN: sessionToken } = config;
  if (bearer !== undefined) return { authorization: `Bearer ${bearer}` };
  const { AwsV4Signer } = await loadSigner();
  const { headers } = await new AwsV4Signer({
    url,
    method: 'POST',
    body,
    service: 'bedrock',
    region: config.AWS_REGION ?? '',
    accessKeyId: config.AWS_ACCESS_KEY_ID ?? '',
    secretAccessKey: config.AWS_SECRET_ACCESS_KEY ?? '',
    ...(sessionToken === undefined ? {} : { sessionToken }),
  }).sign();
  return Object.fromEntries(headers);
}

/** Types of AWS errors after which the caller must wait: too many requests were sent, or the model is not ready yet. */
const LIMITS = new Set([
  'ThrottlingException',
  'TooManyRequestsException',
  'ServiceQuotaExceededException',
  'ModelNotReadyException',
]);

/**
 * Returns the error for a failed reply; undefined if its status alone determines the error. AWS names the type of the
 * error in a header or in the body, since several errors have one status.
 */
function explain({ status, headers, json }: FailedReply, errors: ProviderErrors): EngineError | undefined {
  const { message, __type: named } = (json ?? {}) as { message?: unknown; __type?: unknown };
  const type = (headers.get('x-amzn-errortype') ?? (typeof named === 'string' ? named : '')).replace(/:.*|.*#/g, '');
  if (LIMITS.has(type)) return errors.limited(errors.retryAfterOf(headers));
  if (status !== 400) return undefined;
  // Of the errors of status 400, only a `ValidationException` may be about the text.
  if (type !== 'ValidationException') return errors.misconfigured(status, CREDENTIALS);
  return typeof message === 'string' && /model id|on-demand throughput|dimensions/i.test(message)
    ? errors.misconfigured(status, 'OM_BEDROCK_MODEL, AWS_REGION and OM_VEC_DIM')
    : undefined;
}

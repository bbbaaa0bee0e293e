import type OpenAI from 'openai';
import type { APIPromise } from 'openai';
import { EngineError } from '../errors.ts';
import type { EmbedOptions } from '../ports.ts';
import { boundedFetch } from './bounded-fetch.ts';
import { createProviderErrors, type CalledProvider, type ProviderErrors } from './provider-errors.ts';

type Sdk = typeof import('openai');
type ApiError = InstanceType<Sdk['APIError']>;

/** A server that speaks OpenAI's API. */
export interface OpenAiServer extends CalledProvider {
  readonly baseUrl: string;
  /** None is sent where it is undefined. */
  readonly apiKey: string | undefined;
  /** Bounds a call from connect to the last byte. */
  readonly timeoutMs: number;
  /** A longer reply is refused. */
  readonly maxReplyBytes: number;
  /** What a reply of status 400 or 422 in JSON, or of 413, means; `param` is what it complains about, if it says so. */
  badRequest(status: number, param: string | null | undefined): EngineError;
}

export interface OpenAiClient extends Pick<
  ProviderErrors,
  'refused' | 'declined' | 'failed' | 'misconfigured' | 'badText'
> {
  /** Loads the SDK. */
  prepare(): Promise<void>;
  /**
   * Makes one request: retries are the caller's business.
   * @throws EngineError `rate_limited` with `retryAfterMs`, `unavailable`, or what `badRequest` says
   */
  call<T>(request: (client: OpenAI) => APIPromise<T>, onReply?: EmbedOptions['onReply']): Promise<T>;
}

/** The SDK with bounds on time and size, whose errors are ours. */
export function createOpenAiClient(server: OpenAiServer): OpenAiClient {
  let connection: Promise<{ sdk: Sdk; client: OpenAI }> | undefined;
  const errors = createProviderErrors(server);
  const { refused, failed } = errors;
  const connected = () => (connection ??= connect(server, refused));
  return {
    ...errors,
    prepare: async () => void (await connected()),
    async call(request, onReply) {
      const { sdk, client } = await connected();
      try {
        const { data, response } = await request(client).withResponse();
        onReply?.({ headers: response.headers, tokens: tokensOf(data) });
        return data;
      } catch (error) {
        if (error instanceof sdk.APIError && error.headers !== undefined) onReply?.({ headers: error.headers });
        throw meaningOf(error, sdk);
      }
    },
  };

  /**
   * What a failed call means. The SDK's own errors quote replies, which may quote texts and keys: neither their messages nor
   * they themselves, as `cause`, are passed on.
   */
  function meaningOf(error: unknown, sdk: Sdk): EngineError {
    if (error instanceof sdk.APIUserAbortError) return failed('was given up by its caller');
    if (error instanceof sdk.APIConnectionTimeoutError) return failed(`took longer than ${server.settings.timeout}`);
    if (error instanceof sdk.APIConnectionError) {
      return error.cause instanceof EngineError ? error.cause : errors.ofConnection(error);
    }
    if (error instanceof sdk.APIError && error.status !== undefined) return meaningOfStatus(error as ApiError);
    return refused('is not the JSON it should be');
  }

  function meaningOfStatus({ status, headers, param }: ApiError): EngineError {
    const isJson = /\bjson\b/i.test(headers?.get('content-type') ?? '');
    return status === 413 || (isJson && (status === 400 || status === 422))
      ? server.badRequest(status, param)
      : errors.ofStatus(status as number, headers, isJson);
  }
}

/** What the call is billed for; not all servers count. */
function tokensOf(reply: unknown): number | undefined {
  const { total_tokens: tokens } = (reply as { usage?: { total_tokens?: unknown } } | null)?.usage ?? {};
  return Number.isSafeInteger(tokens) && (tokens as number) > 0 ? (tokens as number) : undefined;
}

/** True for OpenAI's own server, which knows parameters that compatible ones refuse, and the other way round. */
export function isOpenAiItself(baseUrl: string): boolean {
  return new URL(baseUrl).hostname === 'api.openai.com';
}

/** The SDK takes 0.2 s to load, so it is loaded when it is needed. */
async function connect(
  { baseUrl, apiKey, timeoutMs, maxReplyBytes }: OpenAiServer,
  refused: (what: string) => EngineError,
): Promise<{ sdk: Sdk; client: OpenAI }> {
  const sdk = await import('openai');
  const client = new sdk.OpenAI({
    baseURL: baseUrl,
    // Left out, these would be taken from the environment, past Config.
    apiKey: apiKey ?? 'none',
    adminAPIKey: null,
    organization: null,
    project: null,
    webhookSecret: null,
    logLevel: 'off',
    maxRetries: 0,
    timeout: timeoutMs,
    fetch: boundedFetch(maxReplyBytes, refused),
    ...(apiKey === undefined ? { defaultHeaders: { authorization: null } } : {}),
  });
  return { sdk, client };
}

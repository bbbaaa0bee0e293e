import type OpenAI from 'openai';
import type { APIPromise } from 'openai';
import { EngineError } from '../errors.ts';
import type { EmbedOptions } from '../ports.ts';
import { boundedFetch } from './bounded-fetch.ts';
import { longestTime } from '../limit-time.ts';
import { createProviderErrors, type CalledProvider, type ProviderErrors } from './provider-errors.ts';

type Sdk = typeof import('openai');
type ApiError = InstanceType<Sdk['APIError']>;

/** How to call a server that has OpenAI's API. */
export interface OpenAiServer extends CalledProvider {
  /** Address of the API with its path, such as `https://api.openai.com/v1`. */
  readonly baseUrl: string;
  /** API key; undefined for a server that needs none. */
  readonly apiKey: string | undefined;
  /** Time limit of a call, from connecting to the last byte (ms). Time without a processor does not count. */
  readonly timeoutMs: number;
  /** Greatest size of a reply (bytes); a larger one is refused. */
  readonly maxReplyBytes: number;
  /**
   * Returns the error for a reply of status 413, or of status 400 or 422 in JSON. `param` is the request's parameter
   * that the reply names; null or undefined if it names none.
   */
  badRequest(status: number, param: string | null | undefined): EngineError;
}

/** Sends requests to one server, and creates the errors of its calls. */
export interface OpenAiClient extends Pick<
  ProviderErrors,
  'refused' | 'declined' | 'failed' | 'misconfigured' | 'badText'
> {
  /** Loads OpenAI's SDK in advance, so that the first `call` need not wait for it. */
  prepare(): Promise<void>;
  /**
   * Makes one request without retries. `onReply` is called for a successful reply and for a failed one.
   * @param request makes the request with the SDK's client, and passes the caller's abort signal to it
   * @returns the body of the reply, which the SDK does not check
   * @throws EngineError `rate_limited` with `retryAfterMs`; `unavailable`, also on abort; the result of `badRequest`
   */
  call<T>(request: (client: OpenAI) => APIPromise<T>, onReply?: EmbedOptions['onReply']): Promise<T>;
}

/** Wraps OpenAI's SDK: limits the time and the size of a call, and converts the SDK's errors to EngineErrors. */
export function createOpenAiClient(server: OpenAiServer): OpenAiClient {
  let connection: Promise<{ sdk: Sdk; client: OpenAI }> | undefined;
  const errors = createProviderErrors(server);
  const { refused, failed } = errors;
  const connected = () => (connection ??= connect(server, errors));
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
   * Returns the EngineError for a failed call. The SDK's own errors quote replies, which may quote texts and keys; so
   * neither their messages nor the errors themselves (as `cause`) are passed on.
   */
  function meaningOf(error: unknown, sdk: Sdk): EngineError {
    if (error instanceof sdk.APIUserAbortError) return failed('was given up by its caller');
    if (error instanceof sdk.APIConnectionTimeoutError) return tookTooLong(server, errors);
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

/** Reads the number of tokens that a call was billed for; undefined if the server states none or 0. */
function tokensOf(reply: unknown): number | undefined {
  const { total_tokens: tokens } = (reply as { usage?: { total_tokens?: unknown } } | null)?.usage ?? {};
  return Number.isSafeInteger(tokens) && (tokens as number) > 0 ? (tokens as number) : undefined;
}

/**
 * Tells whether an address is that of OpenAI's own server, by its host name. That server accepts parameters that
 * compatible servers refuse, and refuses some that they accept.
 */
export function isOpenAiItself(baseUrl: string): boolean {
  return new URL(baseUrl).hostname === 'api.openai.com';
}

function tookTooLong({ settings }: OpenAiServer, { failed }: ProviderErrors): EngineError {
  return failed(`took longer than ${settings.timeout}`);
}

/** Loads the SDK and creates a client. Loading takes 0.2 s, so it is done at the first call or by `prepare`. */
async function connect(server: OpenAiServer, errors: ProviderErrors): Promise<{ sdk: Sdk; client: OpenAI }> {
  const sdk = await import('openai');
  const { baseUrl, apiKey, timeoutMs, maxReplyBytes } = server;
  const client = new sdk.OpenAI({
    baseURL: baseUrl,
    // If these were left out, the SDK would read them from the environment and bypass Config.
    apiKey: apiKey ?? 'none',
    adminAPIKey: null,
    organization: null,
    project: null,
    webhookSecret: null,
    logLevel: 'off',
    maxRetries: 0,
    // The SDK's own limit counts time without a processor, so it only has to lie beyond that of `fetch`.
    timeout: 2 * longestTime(timeoutMs),
    fetch: boundedFetch({
      maxBytes: maxReplyBytes,
      refused: errors.refused,
      timeLimit: { ms: timeoutMs, tooLong: () => tookTooLong(server, errors) },
    }),
    ...(apiKey === undefined ? { defaultHeaders: { authorization: null } } : {}),
  });
  return { sdk, client };
}

import type OpenAI from 'openai';
import { EngineError } from '../errors.ts';

const DEFAULT_RETRY_MS = 1_000;
/** A provider that asks for a longer pause is asked again after this one: a wrong header must not stop a queue for days. */
const MAX_RETRY_MS = 3_600_000;

type Sdk = typeof import('openai');
type ApiError = InstanceType<Sdk['APIError']>;

/** A server that speaks OpenAI's API. The settings are named in errors, so that whoever reads one knows what to change. */
export interface OpenAiServer {
  /** What it is to us: 'embedding provider'. */
  readonly role: string;
  readonly baseUrl: string;
  /** None is sent where it is undefined. */
  readonly apiKey: string | undefined;
  /** Bounds a call from connect to the last byte. */
  readonly timeoutMs: number;
  /** A longer reply is refused. */
  readonly maxReplyBytes: number;
  readonly settings: {
    readonly baseUrl: string;
    readonly apiKey: string;
    readonly model: string;
    readonly timeout: string;
  };
  /** What a reply of status 400, 413 or 422 means; `param` is what it complains about, if it says so. */
  badRequest(status: number, param: string | null | undefined): EngineError;
}

export interface OpenAiClient {
  /**
   * Makes one request: retries are the caller's business.
   * @throws EngineError `rate_limited` with `retryAfterMs`, `unavailable`, or what `badRequest` says
   */
  call<T>(request: (client: OpenAI) => PromiseLike<T>): Promise<T>;
  /** The error for a reply that is not what it should be: `the embedding provider's reply holds no list`. */
  refused(what: string): EngineError;
  /** The error for a call that failed: `the call to the embedding provider took too long`. */
  failed(what: string, retryAfterMs?: number): EngineError;
}

/** The SDK with bounds on time and size, whose errors are ours. */
export function createOpenAiClient(server: OpenAiServer): OpenAiClient {
  let connection: Promise<{ sdk: Sdk; client: OpenAI }> | undefined;
  const refused = (what: string) => new EngineError('unavailable', `the ${server.role}'s reply ${what}`);
  const failed = (what: string, retryAfterMs?: number) =>
    new EngineError(
      'unavailable',
      `the call to the ${server.role} ${what}`,
      retryAfterMs === undefined ? {} : { retryAfterMs },
    );
  return {
    refused,
    failed,
    async call(request) {
      const { sdk, client } = await (connection ??= connect(server, refused));
      try {
        return await request(client);
      } catch (error) {
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
      return error.cause instanceof EngineError
        ? error.cause
        : failed(`failed to connect or was cut off${networkCode(error)}`);
    }
    if (error instanceof sdk.APIError && error.status !== undefined) return meaningOfStatus(error as ApiError);
    return refused('is not the JSON it should be');
  }

  function meaningOfStatus({ status, headers, param }: ApiError): EngineError {
    const retryAfterMs = readRetryAfter(headers);
    const { apiKey, baseUrl, model } = server.settings;
    switch (status) {
      case 429:
        return new EngineError('rate_limited', `the ${server.role} asked for a pause`, {
          retryAfterMs: retryAfterMs ?? DEFAULT_RETRY_MS,
        });
      case 401:
      case 403:
        return failed(`was refused (HTTP ${status}): check ${apiKey}`);
      case 404:
        return failed(`found no such model or path: check ${baseUrl} and ${model}`);
      case 400:
      case 413:
      case 422:
        return server.badRequest(status, param);
      default:
        return failed(`was answered with HTTP ${status}`, retryAfterMs);
    }
  }
}

/** True for OpenAI's own server, which knows parameters that compatible ones refuse, and the other way round. */
export function isOpenAiItself(baseUrl: string): boolean {
  return new URL(baseUrl).hostname === 'api.openai.com';
}

/** The SDK takes 0.2 s to load, so it is loaded by the first call. */
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

/**
 * A `fetch` that returns once the body is here. So the SDK's time limit covers the body of an error too, and a reply that never
 * ends costs at most `maxBytes`. Redirects are not followed: texts go to the configured host only.
 */
function boundedFetch(maxBytes: number, refused: (what: string) => EngineError): typeof fetch {
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

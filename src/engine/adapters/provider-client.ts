import type { EmbedOptions } from '../ports.ts';
import { boundedFetch } from './bounded-fetch.ts';
import { createProviderErrors, type CalledProvider, type ProviderErrors } from './provider-errors.ts';
import { EngineError } from '../errors.ts';

/** A provider that takes JSON over HTTP and has a wire format of its own. */
export interface JsonProvider extends CalledProvider {
  /** Bounds a call from connect to the last byte. */
  readonly timeoutMs: number;
  /** A longer reply is refused. */
  readonly maxReplyBytes: number;
  /** How many tokens a reply says that it was asked for. */
  tokensOf(reply: JsonReply): unknown;
  /** What a failed reply means where that is more than its status says; undefined leaves it at that. */
  explain(reply: FailedReply, errors: ProviderErrors): EngineError | undefined;
}

export interface FailedReply {
  readonly status: number;
  readonly headers: Headers;
  /** undefined where it is no JSON. To be looked at and never quoted. */
  readonly json: unknown;
}

export interface JsonRequest {
  readonly url: string;
  /** A function makes them when the request is about to be sent; what it throws is a failure of the call. */
  readonly headers?: RequestHeaders | (() => Promise<RequestHeaders>);
  /** JSON. */
  readonly body: string;
}

type RequestHeaders = Readonly<Record<string, string>>;

interface JsonReply {
  readonly json: unknown;
  readonly headers: Headers;
}

export interface ProviderClient {
  readonly errors: ProviderErrors;
  /**
   * Makes one request: retries are the caller's business.
   * @returns the JSON of the reply
   * @throws EngineError `rate_limited` with `retryAfterMs`, `unavailable`, `invalid` where the provider refuses a text
   */
  post(request: JsonRequest, options: Pick<EmbedOptions, 'signal' | 'onReply'>): Promise<unknown>;
}

export function createProviderClient(provider: JsonProvider): ProviderClient {
  const { timeoutMs, maxReplyBytes, settings } = provider;
  const errors = createProviderErrors(provider);
  const fetchBounded = boundedFetch(maxReplyBytes, errors.refused);

  async function send({ url, headers, body }: JsonRequest, signal: AbortSignal | undefined): Promise<Response> {
    const timeout = AbortSignal.timeout(timeoutMs);
    try {
      return await fetchBounded(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...(typeof headers === 'function' ? await headers() : headers) },
        body,
        signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
      });
    } catch (error) {
      if (error instanceof EngineError) throw error;
      if (signal?.aborted) throw errors.failed('was given up by its caller');
      if (timeout.aborted) throw errors.failed(`took longer than ${settings.timeout}`);
      throw errors.ofConnection(error);
    }
  }

  return {
    errors,
    async post(request, { signal, onReply }) {
      const response = await send(request, signal);
      const { status, headers } = response;
      const json = await parse(response);
      const tokens = response.ok ? provider.tokensOf({ json, headers }) : undefined;
      onReply?.({ headers, ...(isCount(tokens) ? { tokens } : {}) });
      if (!response.ok) {
        const explained = provider.explain({ status, headers, json }, errors);
        throw explained ?? errors.ofStatus(status, headers, json !== undefined);
      }
      if (json === undefined) throw errors.refused('is not the JSON it should be');
      return json;
    },
  };
}

function isCount(tokens: unknown): tokens is number {
  return Number.isSafeInteger(tokens) && (tokens as number) >= 0;
}

/** @returns undefined for what is no JSON */
async function parse(response: Response): Promise<unknown> {
  try {
    return await response.json();
  } catch {
    return undefined;
  }
}

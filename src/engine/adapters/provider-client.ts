import type { EmbedOptions } from '../ports.ts';
import { boundedFetch } from './bounded-fetch.ts';
import { createProviderErrors, type CalledProvider, type ProviderErrors } from './provider-errors.ts';
import { EngineError } from '../errors.ts';

/** How to call a provider that takes JSON over HTTP in its own wire format. */
export interface JsonProvider extends CalledProvider {
  /** Time limit of a call, from connecting to the last byte (ms). Time without a processor does not count. */
  readonly timeoutMs: number;
  /** Greatest size of a reply (bytes); a larger one is refused. */
  readonly maxReplyBytes: number;
  /**
   * Returns the number of tokens that the request was billed for, as a reply of status 2xx states it. A value that is
   * not a whole number of 0 or more is ignored.
   */
  tokensOf(reply: JsonReply): unknown;
  /**
   * Returns the error for a failed reply whose body says more than its status; undefined if the status alone determines
   * it.
   */
  explain(reply: FailedReply, errors: ProviderErrors): EngineError | undefined;
}

/** A reply with a status other than 2xx. */
export interface FailedReply {
  readonly status: number;
  readonly headers: Headers;
  /** Body of the reply; undefined if it is not JSON. Error messages must not quote it. */
  readonly json: unknown;
}

interface JsonRequest {
  readonly url: string;
  /** Headers, or a function that creates them just before the request is sent; if it throws, the call fails. */
  readonly headers?: RequestHeaders | (() => Promise<RequestHeaders>);
  /** Body of the request, as JSON text. */
  readonly body: string;
}

type RequestHeaders = Readonly<Record<string, string>>;

interface JsonReply {
  /** Body of the reply; undefined if it is not JSON. */
  readonly json: unknown;
  readonly headers: Headers;
}

/** Sends requests to one provider. */
export interface ProviderClient {
  readonly errors: ProviderErrors;
  /**
   * Makes one request without retries. `onReply` is called for a successful reply and for a failed one.
   * @returns the JSON of a reply of status 2xx; its content is not checked
   * @throws EngineError `rate_limited` with `retryAfterMs`; `unavailable`, also on abort; `invalid` if the provider
   *   refuses a text
   */
  post(request: JsonRequest, options: Pick<EmbedOptions, 'signal' | 'onReply'>): Promise<unknown>;
}

/** Creates a client that sends requests to one provider, and the errors of its calls. */
export function createProviderClient(provider: JsonProvider): ProviderClient {
  const { timeoutMs, maxReplyBytes, settings } = provider;
  const errors = createProviderErrors(provider);
  const fetchBounded = boundedFetch({
    maxBytes: maxReplyBytes,
    refused: errors.refused,
    timeLimit: { ms: timeoutMs, tooLong: () => errors.failed(`took longer than ${settings.timeout}`) },
  });

  async function send({ url, headers, body }: JsonRequest, signal: AbortSignal | undefined): Promise<Response> {
    try {
      return await fetchBounded(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...(typeof headers === 'function' ? await headers() : headers) },
        body,
        signal: signal ?? null,
      });
    } catch (error) {
      if (error instanceof EngineError) throw error;
      if (signal?.aborted) throw errors.failed('was given up by its caller');
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

/** Parses the body of a reply; returns undefined if it is not JSON. */
async function parse(response: Response): Promise<unknown> {
  try {
    return await response.json();
  } catch {
    return undefined;
  }
}

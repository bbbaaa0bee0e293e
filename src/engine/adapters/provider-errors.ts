import { EngineError } from '../errors.ts';

/** Pause after a reply that asks for one without a length (ms). */
const DEFAULT_RETRY_MS = 1_000;
/** Least pause (ms), even if the provider asks for less: otherwise queries would call again as fast as they arrive. */
const MIN_RETRY_MS = 100;
/** Greatest pause (ms), even if the provider asks for more: a wrong header must not stop a queue for days. */
const MAX_RETRY_MS = 3_600_000;

/** The provider that is called. Error messages name its settings, so that their readers know what to change. */
export interface CalledProvider {
  /** Role of the provider in error messages, without an article, such as `embedding provider`. */
  readonly role: string;
  /** Names (not values) of the settings that configure the provider, for error messages. */
  readonly settings: {
    readonly baseUrl: string;
    readonly apiKey: string;
    readonly model: string;
    readonly timeout: string;
  };
}

/**
 * Creates the errors of calls to one provider, which the caller throws. None of them quotes a reply, which may quote
 * texts and keys, and none has a `cause`. `what` ends the sentence of the message.
 */
export interface ProviderErrors {
  /** Error `unavailable` for a reply of the wrong form: `the embedding provider's reply` + `holds no list`. */
  refused(what: string): EngineError;
  /** Error `invalid` for a well-formed reply that does not answer: `the language model's reply` + `is a refusal`. */
  declined(what: string): EngineError;
  /** Error `unavailable` for a call that failed: `the call to the embedding provider` + `took too long`. */
  failed(what: string, retryAfterMs?: number): EngineError;
  /**
   * Error `rate_limited` for a reply that asks for a pause. Its `retryAfterMs` is at least 100 ms and at most an hour;
   * it is a second if the provider states no length.
   */
  limited(retryAfterMs: number | undefined): EngineError;
  /** Error `unavailable` for a request that failed because of a setting. `settings` names the settings to check. */
  misconfigured(status: number, settings: string): EngineError;
  /** Error `invalid` for a text that the provider refuses; `reason` is a phrase such as `as too long`. */
  badText(status: number, reason?: string): EngineError;
  /** Reads the pause that a reply asks for (ms), at most an hour; undefined if it asks for none. */
  retryAfterOf(headers: Headers | undefined): number | undefined;
  /**
   * Returns the error for a failed status about which the reply says nothing more: `rate_limited` for 429; `invalid`
   * for 413, and for 400 and 422 in JSON; else `unavailable`.
   * @param isJson whether the reply is JSON; a bad request with another reply reached a proxy or another server
   */
  ofStatus(status: number, headers: Headers | undefined, isJson: boolean): EngineError;
  /** Error `unavailable` for a request without a reply. It names only the code of a network error. */
  ofConnection(error: unknown): EngineError;
}

export function createProviderErrors({ role, settings }: CalledProvider): ProviderErrors {
  const refused = (what: string) => new EngineError('unavailable', `the ${role}'s reply ${what}`);
  const declined = (what: string) => new EngineError('invalid', `the ${role}'s reply ${what}`);
  const failed = (what: string, retryAfterMs?: number) =>
    new EngineError('unavailable', `the call to the ${role} ${what}`, optional(retryAfterMs));
  const limited = (retryAfterMs: number | undefined) =>
    new EngineError('rate_limited', `the ${role} asked for a pause`, {
      retryAfterMs: Math.min(Math.max(retryAfterMs ?? DEFAULT_RETRY_MS, MIN_RETRY_MS), MAX_RETRY_MS),
    });
  const badText = (status: number, reason?: string) =>
    new EngineError('invalid', `the ${role} refused a text${reason ? ` ${reason}` : ''} (HTTP ${status})`);
  const misconfigured = (status: number, names: string) => failed(`was refused (HTTP ${status}): check ${names}`);

  function ofStatus(status: number, headers: Headers | undefined, isJson: boolean): EngineError {
    const retryAfterMs = readRetryAfter(headers);
    switch (status) {
      case 429:
        return limited(retryAfterMs);
      case 401:
      case 403:
        return misconfigured(status, settings.apiKey);
      case 404:
        return failed(`found no such model or path: check ${settings.baseUrl} and ${settings.model}`);
      case 400:
      case 422:
        return isJson ? badText(status) : misconfigured(status, settings.baseUrl);
      case 413:
        return badText(status);
      default:
        return failed(`was answered with HTTP ${status}`, retryAfterMs);
    }
  }

  return {
    refused,
    declined,
    failed,
    limited,
    misconfigured,
    badText,
    ofStatus,
    retryAfterOf: readRetryAfter,
    ofConnection: (error) => failed(`failed to connect or was cut off${networkCode(error)}`),
  };
}

function optional(retryAfterMs: number | undefined): { retryAfterMs?: number } {
  return retryAfterMs === undefined ? {} : { retryAfterMs };
}

/**
 * Reads `retry-after-ms`, or `retry-after` in seconds or as a date, as milliseconds from now, at most an hour. Returns
 * undefined if both are absent, malformed or not above 0.
 */
function readRetryAfter(headers: Headers | undefined): number | undefined {
  const [precise, standard] = [headers?.get('retry-after-ms'), headers?.get('retry-after')];
  const candidates = [
    precise ? Number(precise) : NaN,
    standard ? Number(standard) * 1_000 : NaN,
    standard ? Date.parse(standard) - Date.now() : NaN,
  ];
  const ms = candidates.find((candidate) => Number.isFinite(candidate) && candidate > 0);
  return ms === undefined ? undefined : Math.min(Math.ceil(ms), MAX_RETRY_MS);
}

function networkCode(error: unknown): string {
  const { cause } = error as { cause?: { code?: unknown; cause?: { code?: unknown } } };
  const code = cause?.cause?.code ?? cause?.code;
  return typeof code === 'string' ? ` (${code})` : '';
}

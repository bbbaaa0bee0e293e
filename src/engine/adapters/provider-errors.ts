import { EngineError } from '../errors.ts';

/** Pause before the next call if a reply asks for a pause without saying how long (ms). */
const DEFAULT_RETRY_MS = 1_000;
/**
 * Least pause before the next call (ms), even if the provider asks for less: otherwise each query would call a provider
 * that is overloaded.
 */
const MIN_RETRY_MS = 100;
/**
 * Greatest pause before the next call (ms), even if the provider asks for more: a wrong header must not stop a queue
 * for days.
 */
const MAX_RETRY_MS = 3_600_000;

/**
 * The provider that is called, as error messages name it. The messages also name the provider's settings, so that the
 * reader knows what to change.
 */
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
 * texts and keys, and none has a `cause`. The argument `what` is the predicate of the message, which is a sentence.
 */
export interface ProviderErrors {
  /**
   * Returns the error `unavailable` for a reply of the wrong form. Its message is `the embedding provider's reply` and
   * `what`, such as `holds no list`.
   */
  refused(what: string): EngineError;
  /**
   * Returns the error `invalid` for a well-formed reply without an answer. Its message is `the language model's reply`
   * and `what`, such as `is a refusal`.
   */
  declined(what: string): EngineError;
  /**
   * Returns the error `unavailable` for a failed call. Its message is `the call to the embedding provider` and `what`,
   * such as `took too long`.
   */
  failed(what: string, retryAfterMs?: number): EngineError;
  /**
   * Returns the error `rate_limited` for a reply that asks for a pause. Its `retryAfterMs` is at least 100 ms and at
   * most an hour; it is a second if the provider does not say how long.
   */
  limited(retryAfterMs: number | undefined): EngineError;
  /**
   * Returns the error `unavailable` for a request that failed because of a wrong setting. `settings` names the settings
   * to check.
   */
  misconfigured(status: number, settings: string): EngineError;
  /** Returns the error `invalid` for a text that the provider refuses; `reason` is a phrase such as `as too long`. */
  badText(status: number, reason?: string): EngineError;
  /** Returns the pause that a reply's headers ask for (ms), at most an hour; undefined if they ask for none. */
  retryAfterOf(headers: Headers | undefined): number | undefined;
  /**
   * Returns the error for a failed reply by its status alone: `rate_limited` for 429; `invalid` for 413, and for 400
   * and 422 with JSON; else `unavailable`.
   * @param isJson whether the reply is JSON; if not, a proxy or another server probably sent it
   */
  ofStatus(status: number, headers: Headers | undefined, isJson: boolean): EngineError;
  /**
   * Returns the error `unavailable` for a request without a reply. Its message has only the code of a network error.
   */
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

import { EngineError } from '../errors.ts';

const DEFAULT_RETRY_MS = 1_000;
/** One that asks for less is asked again after this: it refused just now, and queries would call as fast as they come. */
const MIN_RETRY_MS = 100;
/** A provider that asks for a longer pause is asked again after this one: a wrong header must not stop a queue for days. */
const MAX_RETRY_MS = 3_600_000;

/** Whom a call went to. The settings are named in errors, so that whoever reads one knows what to change. */
export interface CalledProvider {
  /** What it is to us: 'embedding provider'. */
  readonly role: string;
  readonly settings: {
    readonly baseUrl: string;
    readonly apiKey: string;
    readonly model: string;
    readonly timeout: string;
  };
}

/** The errors of calls to one provider. None quotes a reply, which may quote texts and keys, nor has what failed as its `cause`. */
export interface ProviderErrors {
  /** For a reply that is not what it should be: `the embedding provider's reply holds no list`. */
  refused(what: string): EngineError;
  /** `invalid` for a reply that is sound but no answer to this text: `the language model's reply is a refusal`. */
  declined(what: string): EngineError;
  /** For a call that failed: `the call to the embedding provider took too long`. */
  failed(what: string, retryAfterMs?: number): EngineError;
  /** For a call that asks for a pause; of a second where the provider does not say how long. */
  limited(retryAfterMs: number | undefined): EngineError;
  /** `unavailable` for a request that a setting is to blame for. */
  misconfigured(status: number, settings: string): EngineError;
  /** `invalid` for a text that the provider does not take: `as too long`, where it says why. */
  badText(status: number, reason?: string): EngineError;
  /** Milliseconds that a reply asks to wait, if it does; of no more than an hour. */
  retryAfterOf(headers: Headers | undefined): number | undefined;
  /**
   * What a failed status means where a provider says nothing more exact.
   * @param isJson whether the reply is: what answers a bad request in another way is no API, but a proxy or another server in its place
   */
  ofStatus(status: number, headers: Headers | undefined, isJson: boolean): EngineError;
  /** For a request without a reply. */
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
    ...{ refused, declined, failed, limited, misconfigured, badText, ofStatus, retryAfterOf: readRetryAfter },
    ofConnection: (error) => failed(`failed to connect or was cut off${networkCode(error)}`),
  };
}

function optional(retryAfterMs: number | undefined): { retryAfterMs?: number } {
  return retryAfterMs === undefined ? {} : { retryAfterMs };
}

/** `retry-after-ms`, or `retry-after` in seconds or as a date, as milliseconds from now; undefined if absent or senseless, as 0 is. */
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

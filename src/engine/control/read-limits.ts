/** What is left of a provider's limits, as its replies say. Plain numbers, so that no header's spelling is known elsewhere. */

/** Until `resetMs` from now a provider takes `remaining` more requests or tokens. */
export interface ToldLimit {
  /** Whole, 0 or more. */
  readonly remaining: number;
  /** Of how many; undefined where it does not say. */
  readonly limit: number | undefined;
  readonly resetMs: number;
}

export interface ToldLimits {
  readonly requests?: ToldLimit | undefined;
  readonly tokens?: ToldLimit | undefined;
}

/** A wrong header must not stop a queue for days. */
const RESET_MOST_MS = 3_600_000;

/**
 * Reads OpenAI's headers (`x-ratelimit-remaining-tokens`, `-limit-…`, `-reset-…`, where `6m0s` and `20ms` are spans), those of servers that
 * count requests only (`x-ratelimit-remaining`), and all three forms that the IETF's draft has had: `ratelimit-remaining: 5`,
 * `ratelimit: limit=9, remaining=5, reset=50` and `ratelimit: "default";r=5;t=50`. What is absent or makes no sense is left out, as
 * is a limit without the time at which it begins anew.
 * @param now Unix milliseconds, for resets that are a date
 */
export function readLimits(headers: Headers, now: number): ToldLimits {
  const triple = (prefix: string, suffix: string) =>
    toldLimit(
      {
        limit: headers.get(`${prefix}-limit${suffix}`),
        remaining: headers.get(`${prefix}-remaining${suffix}`),
        reset: headers.get(`${prefix}-reset${suffix}`),
      },
      now,
    );
  return {
    requests:
      triple('x-ratelimit', '-requests') ??
      triple('x-ratelimit', '') ??
      triple('ratelimit', '') ??
      toldLimit(readDraft(headers), now),
    tokens: triple('x-ratelimit', '-tokens'),
  };
}

interface Spelled {
  readonly limit: string | null;
  readonly remaining: string | null;
  readonly reset: string | null;
}

function toldLimit({ limit, remaining, reset }: Spelled, now: number): ToldLimit | undefined {
  const left = wholeNumber(remaining);
  const resetMs = spanMs(reset, now);
  if (left === undefined || resetMs === undefined) return undefined;
  const most = wholeNumber(limit);
  // Some servers say 0 where there is no limit.
  if (most === 0) return undefined;
  return { remaining: left, limit: most, resetMs: Math.min(resetMs, RESET_MOST_MS) };
}

/** Both later forms, which stand in one header; of several policies the first counts. */
function readDraft(headers: Headers): Spelled {
  const named = new Map(
    [...(headers.get('ratelimit') ?? '').matchAll(/\b(limit|remaining|reset|r|t)=(\d{1,15})/g)]
      .toReversed()
      .map(([, name, value]) => [name!, value!]),
  );
  const first = (...names: string[]) => names.map((name) => named.get(name)).find(Boolean) ?? null;
  return { limit: first('limit'), remaining: first('remaining', 'r'), reset: first('reset', 't') };
}

function wholeNumber(text: string | null): number | undefined {
  // The oldest form of the draft puts policies behind the limit: "100, 100;w=60".
  const digits = /^\s*(\d{1,15})(?:\.\d+)?\s*(?:[,;]|$)/.exec(text ?? '')?.[1];
  return digits === undefined ? undefined : Number(digits);
}

const UNIT_MS: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1_000, ms: 1 };
/** More seconds than this are a date: nobody waits for thirty years. */
const SPAN_MOST_S = 1e9;

/** `6m0s`, `1.5s`, `20ms`; a bare number of seconds, or a date in seconds or milliseconds; or a date in words. */
function spanMs(text: string | null, now: number): number | undefined {
  const spelled = text?.trim() ?? '';
  if (spelled === '') return undefined;
  if (/^\d{1,15}(\.\d+)?$/.test(spelled)) {
    const number = Number(spelled);
    if (number < SPAN_MOST_S) return Math.ceil(number * 1_000);
    return fromNow(number < 1e12 ? number * 1_000 : number, now);
  }
  if (/^(\d{1,9}(\.\d+)?(ms|[hms]))+$/.test(spelled)) {
    const parts = [...spelled.matchAll(/(\d+(?:\.\d+)?)(ms|[hms])/g)];
    return Math.ceil(parts.reduce((sum, [, number, unit]) => sum + Number(number) * UNIT_MS[unit!]!, 0));
  }
  return fromNow(Date.parse(spelled), now);
}

function fromNow(at: number, now: number): number | undefined {
  return Number.isFinite(at) ? Math.max(0, Math.ceil(at - now)) : undefined;
}

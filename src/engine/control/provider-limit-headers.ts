/**
 * Reads from the headers of a provider's replies how much is left of its limits. The result is plain numbers, so that
 * no other module needs to know the spelling of a header.
 */

/** A limit that a provider stated: until `resetMs` from now it accepts `remaining` more requests or tokens. */
export interface StatedLimit {
  /** Requests or tokens left, a whole number, 0 or more. */
  readonly remaining: number;
  /** The whole limit, of which `remaining` is still unused; undefined if the provider does not say. */
  readonly limit: number | undefined;
  /** Time until the provider resets the limit (ms), from 0 to an hour. */
  readonly resetMs: number;
}

/**
 * The limits that one reply of a provider stated, for requests and for tokens; a field is undefined if it stated none.
 */
export interface StatedLimits {
  readonly requests?: StatedLimit | undefined;
  readonly tokens?: StatedLimit | undefined;
}

/** Greatest reset time (ms); a longer one is cut to it, because a wrong header must not stop a queue for days. */
const MAX_RESET_MS = 3_600_000;

/**
 * Reads the limits from OpenAI's headers (`x-ratelimit-remaining-tokens`, `-limit-…`, `-reset-…`, where `6m0s` and
 * `20ms` are spans), from those of servers that count requests only (`x-ratelimit-remaining`), and from all three forms
 * of the IETF's draft: `ratelimit-remaining: 5`, `ratelimit: limit=9, remaining=5, reset=50` and `ratelimit:
 * "default";r=5;t=50`. A limit is left out if it is absent, makes no sense, is itself 0, or has no reset time.
 * @param now Unix ms, for resets that are a date
 */
export function readLimits(headers: Headers, now: number): StatedLimits {
  const triple = (prefix: string, suffix: string) =>
    statedLimit(
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
      statedLimit(readDraft(headers), now),
    tokens: triple('x-ratelimit', '-tokens'),
  };
}

/** The texts of the three headers that describe one limit. */
interface RawLimit {
  readonly limit: string | null;
  readonly remaining: string | null;
  readonly reset: string | null;
}

function statedLimit({ limit, remaining, reset }: RawLimit, now: number): StatedLimit | undefined {
  const left = wholeNumber(remaining);
  const resetMs = spanMs(reset, now);
  if (left === undefined || resetMs === undefined) return undefined;
  const max = wholeNumber(limit);
  // Some servers send 0 if there is no limit.
  if (max === 0) return undefined;
  return { remaining: left, limit: max, resetMs: Math.min(resetMs, MAX_RESET_MS) };
}

/**
 * Reads the two later forms of the IETF's draft, which share the header `ratelimit`. If it has several policies, the
 * first of each value counts.
 */
function readDraft(headers: Headers): RawLimit {
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
/** A reset of this many seconds or more is a date, since no reset takes thirty years. */
const MAX_SPAN_S = 1e9;

/**
 * Reads a reset time: `6m0s`, `1.5s` or `20ms`, a bare number of seconds, a date in Unix seconds or milliseconds, or a
 * date in words. Returns milliseconds from `now` (Unix ms): 0 for a past date; undefined for an empty or other text.
 */
function spanMs(text: string | null, now: number): number | undefined {
  const spelled = text?.trim() ?? '';
  if (spelled === '') return undefined;
  if (/^\d{1,15}(\.\d+)?$/.test(spelled)) {
    const number = Number(spelled);
    if (number < MAX_SPAN_S) return Math.ceil(number * 1_000);
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

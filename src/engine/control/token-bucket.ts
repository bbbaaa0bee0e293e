/**
 * A token bucket by the generic cell rate algorithm (GCRA). Its whole state is one number, the time at which the bucket
 * will be full again. ITU-T I.371, appendix. The module is pure.
 */

/**
 * Time in which an empty bucket becomes full (ms): rates are per minute, and a bucket holds the tokens of a whole
 * minute.
 */
export const FILL_MS = 60_000;
/**
 * Longest time that a bucket may need to become full (ms). It limits how long one huge request can block its key, and
 * the effect of a clock that was set back.
 */
const MAX_DEBT_MS = 3_600_000;

/** Rounding errors of doubles that are ignored: a request with a shorter wait than this (ms) is allowed. */
const ROUNDING_MS = 0.01;

/** Result of asking a token bucket for tokens. */
export interface Verdict {
  readonly isAllowed: boolean;
  /** Time at which the bucket will be full (Unix ms), to be passed to the next call. */
  readonly fullAt: number;
  /** Whole tokens that are left; 0 for a bucket in debt. */
  readonly remaining: number;
  /** Time until the bucket is full (ms). */
  readonly resetMs: number;
  /** Time until a request of this cost is allowed (ms); 0 if it is allowed. */
  readonly retryAfterMs: number;
}

/**
 * Takes tokens out of a bucket. A request that costs more than a whole bucket is allowed once the bucket is full, and
 * leaves the bucket in debt; otherwise it could never run. A refused request takes nothing.
 * @param fullAt time at which the bucket will be full (Unix ms), from the last verdict; undefined for a full bucket
 * @param request.cost tokens, 0 or more
 * @param request.perMinute tokens of a full bucket, 1 or more
 * @param request.mustFit false takes the tokens in any case, for costs that are known only afterwards
 * @param request.now Unix ms
 */
export function takeFrom(
  fullAt: number | undefined,
  request: { readonly cost: number; readonly perMinute: number; readonly mustFit: boolean; readonly now: number },
): Verdict {
  const { cost, perMinute, mustFit, now } = request;
  const tokenMs = FILL_MS / perMinute;
  const before = Math.min(Math.max(fullAt ?? now, now), now + MAX_DEBT_MS);
  const after = Math.min(before + cost * tokenMs, now + MAX_DEBT_MS);
  const room = Math.max(FILL_MS - cost * tokenMs, 0);
  const short = before - now - room;
  const retryAfterMs = mustFit && short > ROUNDING_MS ? short : 0;
  const kept = retryAfterMs > 0 ? before : after;
  return {
    isAllowed: retryAfterMs === 0,
    fullAt: kept,
    remaining: Math.max(0, Math.floor((FILL_MS - (kept - now)) / tokenMs)),
    resetMs: kept - now,
    retryAfterMs,
  };
}

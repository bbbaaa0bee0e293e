/**
 * Computes how long a call must wait for the limits of a provider: the configured requests and tokens a minute, the
 * remaining limits that its replies stated, and the least time between calls.
 */

import type { BudgetStatements } from './provider-budget-file.ts';
import type { StatedLimit, StatedLimits } from './provider-limit-headers.ts';

/**
 * Length of a provider's minute (ms), with a second of margin: calls do not all take the same time to reach the
 * provider, which counts them when they arrive.
 */
export const WINDOW_MS = 61_000;
/** Calls are counted in time slots of this length (ms), which bounds the number of rows for a minute. */
const SLOT_MS = 100;
/**
 * Share of a minute's limit that is reserved for queries, which do not wait: an import that uses all of it would leave
 * queries without vectors.
 */
const QUERY_SHARE = 0.02;

/** The configured limits of a provider for a minute, of requests and of tokens; 0 means no limit. */
export interface MinuteLimits {
  readonly requestsPerMinute: number;
  readonly tokensPerMinute: number;
}

/** A call that wants to start. */
export interface PlannedCall {
  readonly tokens: number;
  /** False for a query, which does not wait and may use the reserved share. */
  readonly patient: boolean;
  /** Present time, Unix ms. */
  readonly now: number;
}

type Kind = keyof StatedLimits;

const costsOf = (tokens: number): readonly (readonly [Kind, number])[] => [
  ['requests', 1],
  ['tokens', tokens],
];

/**
 * Returns the time (ms) until the provider resets all those stated limits that have too little left for this call; 0 if
 * all have enough. Only queries may use the share that is reserved for them. Call it in a write transaction.
 */
export function untilStatedReset(statements: BudgetStatements, { tokens, patient, now }: PlannedCall): number {
  statements.rebaseTold.run({ now });
  const rows = statements.told.all({ now }) as { kind: Kind; remaining: number; reserve: number; reset_at: number }[];
  const costs = new Map(costsOf(tokens));
  const short = rows.filter(({ kind, remaining, reserve }) => remaining - costs.get(kind)! < (patient ? reserve : 0));
  return Math.max(0, ...short.map((row) => row.reset_at - now));
}

/**
 * Subtracts a starting call, one request and its tokens, from the remaining limits that the provider last stated. Call
 * it in a write transaction.
 */
export function spendStatedLimits(statements: BudgetStatements, tokens: number): void {
  for (const [kind, cost] of costsOf(tokens)) statements.spend.run({ kind, cost });
}

/**
 * Stores the remaining limits that a reply stated, less the cost of the running calls, which the provider may not have
 * counted yet. Until the provider resets a limit, a value replaces the stored one only if it is lower, because replies
 * may arrive in another order. A reset time more than a minute away is believed only if the reply refuses the call: any
 * other reply shows that calls are still accepted, and some servers always state such times. Call it in a write
 * transaction, once the call of the reply no longer counts as running.
 * @param stated the limits that the reply stated
 * @param isLimited whether the reply refused the call because of a limit
 */
export function noteStatedLimits(
  statements: BudgetStatements,
  stated: StatedLimits,
  { isLimited, now }: { readonly isLimited: boolean; readonly now: number },
): void {
  const underWay = statements.underWay.get() as Counted;
  for (const kind of ['requests', 'tokens'] as const) {
    const limit: StatedLimit | undefined = stated[kind];
    if (limit === undefined || (limit.resetMs > WINDOW_MS && !isLimited)) continue;
    const remaining = limit.remaining - underWay[kind];
    const reserve = reserveOf(limit.limit ?? 0);
    statements.setTold.run({ kind, remaining, reserve, now, resetMs: limit.resetMs });
  }
}

/**
 * Returns the time (ms) until `gapMs` have passed since the last call started; 0 if they have already passed. Call it
 * in a write transaction.
 */
export function untilGap(statements: BudgetStatements, gapMs: number, now: number): number {
  if (gapMs === 0) return 0;
  statements.rebaseStarted.run({ now });
  return Math.max(0, (statements.started.get() as { at: number }).at + gapMs - now);
}

/**
 * Counts the call if the configured limits of the last minute have room for it. A call larger than the whole limit may
 * start once no other call is counted. Without configured limits nothing is counted. Call it in a write transaction.
 * @returns time until enough calls are older than a minute (ms); 0 if the call may start
 */
export function untilRoom(
  statements: BudgetStatements,
  { requestsPerMinute, tokensPerMinute }: MinuteLimits,
  { tokens, patient, now }: PlannedCall,
): number {
  if (requestsPerMinute === 0 && tokensPerMinute === 0) return 0;
  const slot = Math.floor(now / SLOT_MS);
  statements.rebaseSlots.run({ slot });
  statements.forgetSlots.run({ slot, last: Math.floor((now - WINDOW_MS) / SLOT_MS) - 1 });
  const maxRequests = limitFor(requestsPerMinute, patient);
  const maxTokens = limitFor(tokensPerMinute, patient);
  let { requests, tokens: sum } = statements.totals.get() as Counted;
  const fits = () => requests + 1 <= maxRequests && sum + tokens <= maxTokens;
  let waitMs = 0;
  if (!fits()) {
    for (const slotRow of statements.slots.iterate() as IterableIterator<Counted & { slot: number }>) {
      requests -= slotRow.requests;
      sum -= slotRow.tokens;
      waitMs = (slotRow.slot + 1) * SLOT_MS + WINDOW_MS - now;
      if (fits()) break;
    }
  }
  if (waitMs <= 0) statements.count.run({ slot, tokens });
  return Math.max(0, waitMs);
}

/** Numbers of calls and of their tokens, added up. */
interface Counted {
  readonly requests: number;
  readonly tokens: number;
}

function limitFor(perMinute: number, patient: boolean): number {
  if (perMinute === 0) return Infinity;
  return patient ? perMinute - reserveOf(perMinute) : perMinute;
}

/**
 * Returns the part of a limit that is reserved for queries: 2 %, at least 1. It is 0 for a limit below 2, so that other
 * calls can start at all.
 */
function reserveOf(perMinute: number): number {
  return perMinute < 2 ? 0 : Math.max(1, Math.floor(perMinute * QUERY_SHARE));
}

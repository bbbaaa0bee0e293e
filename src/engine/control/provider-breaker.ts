/**
 * The circuit breaker of a provider. After 5 failures in a row no call may start for a while; then a single call, the
 * probe, tests the provider. The same row of the file holds a pause that the provider asked for.
 */

import type { BudgetStatements } from './provider-budget-file.ts';

/** How a call ended. Only `failed` counts as a failure; `answered` and `limited` show that the provider works. */
export type CallOutcome =
  | { readonly kind: 'answered' }
  /** The provider refused the call and asked for a pause of `retryAfterMs` (ms). */
  | { readonly kind: 'limited'; readonly retryAfterMs: number }
  /**
   * The provider is down, slow, or sent an invalid reply; some servers that are down say for how long (`retryAfterMs`).
   */
  | { readonly kind: 'failed'; readonly retryAfterMs?: number | undefined }
  /**
   * The provider refused the request. Whether that is due to the provider or to the text is not known, so it counts
   * neither as a failure nor as an answer.
   */
  | { readonly kind: 'refused' }
  /** The caller aborted the call. */
  | { readonly kind: 'abandoned' };

/** Number of failures in a row that opens the breaker. */
export const MAX_FAILURES = 5;

/** Time for which the breaker stays open at first (ms). Each further failure doubles it, up to 30 seconds. */
const MIN_OPEN_MS = 1_000;
/** Longest time for which the breaker stays open until the next probe (ms), unless the provider asks for more. */
const MAX_OPEN_MS = 30_000;
/** Time after which a probe counts as lost (ms), since its process may have died. */
const PROBE_MS = 60_000;

/**
 * The breaker's only row. Times are Unix ms and should lie in the past; a time in the future shows that the clock was
 * set back.
 */
interface BreakerRow {
  /** Number of failures in a row. */
  readonly failures: number;
  /**
   * Time from which `open_ms` counts: that of the last failure, of the last request to wait, or of the answer after it.
   */
  readonly opened_at: number;
  /** Length of the pause that began at `opened_at` (ms), or its rest then; 0 if there was none. */
  readonly open_ms: number;
  /** Time at which the probe started; 0 while no probe is running. */
  readonly probe_at: number;
}

/** The state of the breaker for a call that wants to start. */
interface BreakerState {
  /** Whether the provider failed too often: the next call to start is the probe. */
  readonly isOpen: boolean;
  /**
   * Time for which no call may start (ms), because of the breaker or of a pause that the provider asked for; 0 or less
   * if calls may start.
   */
  readonly pauseMs: number;
  /** Time for which all other calls must wait for a running probe (ms); 0 or less if they need not wait. */
  readonly probeMs: number;
}

/**
 * Reads the state of the breaker at `now` (Unix ms). Call it in a write transaction: it sets stored times that lie
 * after `now` to `now`.
 */
export function readBreaker(statements: BudgetStatements, now: number): BreakerState {
  // Times from before the clock was set back count as now.
  statements.rebaseBreaker.run({ now });
  const breaker = readRow(statements);
  const isOpen = breaker.failures >= MAX_FAILURES;
  return {
    isOpen,
    pauseMs: breaker.opened_at + breaker.open_ms - now,
    probeMs: isOpen && breaker.probe_at > 0 ? breaker.probe_at + PROBE_MS - now : 0,
  };
}

/**
 * Whether at least 5 calls in a row have ended as `failed`, with no `answered` or `limited` between them. It stays true
 * when the pause is over, until a call ends as `answered` or `limited`.
 */
export function isBreakerOpen(statements: BudgetStatements): boolean {
  return readRow(statements).failures >= MAX_FAILURES;
}

/**
 * Updates the breaker after a call has ended. The outcomes `answered` and `limited` close the breaker. While it is
 * open, only the probe's failure counts, since other calls began before it opened. A probe that was refused or
 * abandoned lets another call be the probe. Call it in a write transaction.
 */
export function noteOutcome(
  statements: BudgetStatements,
  outcome: CallOutcome,
  { isProbe, now }: { isProbe: boolean; now: number },
): void {
  const { failures, opened_at, open_ms, probe_at } = readRow(statements);
  const isOpen = failures >= MAX_FAILURES;
  const leftMs = Math.max(0, Math.min(open_ms, opened_at + open_ms - now));
  const set = (row: BreakerRow) => statements.setBreaker.run({ ...row });
  switch (outcome.kind) {
    case 'answered':
      // A pause that the provider asked for meanwhile stays.
      if (failures > 0) set({ failures: 0, opened_at: now, open_ms: isOpen ? 0 : leftMs, probe_at: 0 });
      return;
    case 'limited': {
      const pauseMs = Math.max(isOpen ? 0 : leftMs, outcome.retryAfterMs);
      set({ failures: 0, opened_at: now, open_ms: pauseMs, probe_at: 0 });
      return;
    }
    case 'failed': {
      if (isOpen && !isProbe) return;
      const count = failures + 1;
      const openMs = count < MAX_FAILURES ? 0 : MIN_OPEN_MS * 2 ** Math.min(10, count - MAX_FAILURES);
      set({
        failures: count,
        opened_at: now,
        open_ms: Math.max(leftMs, Math.min(MAX_OPEN_MS, openMs), outcome.retryAfterMs ?? 0),
        probe_at: 0,
      });
      return;
    }
    case 'refused':
    case 'abandoned':
      if (isProbe && probe_at > 0) set({ failures, opened_at, open_ms, probe_at: 0 });
      return;
  }
}

function readRow(statements: BudgetStatements): BreakerRow {
  return statements.breaker.get() as BreakerRow;
}

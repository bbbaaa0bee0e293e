/**
 * Shares the capacity of a provider among every process and thread of a data folder: the configured requests and tokens
 * a minute, the least time between calls, the remaining limits that the provider's replies stated, a pause that it
 * asked for, and a circuit breaker for when it is down.
 *
 * The state is in a small SQLite file beside the data, or with OM_DATABASE_URL in the database, rather than in Redis:
 * it works with and without Redis, and a Redis that is flushed does not forget the last minute. A file that is lost or
 * damaged is made anew.
 */

import { setTimeout as pause } from 'node:timers/promises';
import { EngineError } from '../errors.ts';
import type { Clock } from '../ports.ts';
import type { CounterPlace } from './counters.ts';
import { isBreakerOpen, noteOutcome, readBreaker, type CallOutcome } from './provider-breaker.ts';
import { openBudgetFile, type BudgetStatements } from './provider-budget-file.ts';
import {
  noteStatedLimits,
  spendStatedLimits,
  untilGap,
  untilRoom,
  untilStatedReset,
  WINDOW_MS,
  type MinuteLimits,
  type PlannedCall,
} from './provider-limits.ts';
import { readLimits, type StatedLimits } from './provider-limit-headers.ts';

/** The budget of one provider, which lets calls start within its limits. */
export interface ProviderBudget {
  /**
   * Waits until a call of `tokens` tokens (an estimate) may start, and counts it. The caller must call `end` of the
   * permit.
   * @throws EngineError `rate_limited` with `retryAfterMs` during a pause of the provider or of the breaker, so that
   *   callers do not hold their jobs in the meantime; if the limits leave no room, for a caller that is not `patient`,
   *   and for any if the provider resets them in over a minute; while the breaker's probe runs, for a caller that is
   *   not `patient` or that `hasOther`. `unavailable` when `signal` aborts and after `close`; errors of the database as
   *   EngineErrors
   */
  acquire(tokens: number, options: AcquireOptions): Promise<ProviderPermit>;
  /**
   * Returns the limit of tokens a minute that the provider stated last in a reply to a call of this budget; undefined
   * if none did. Other threads and processes have budgets, and so values, of their own.
   */
  statedTokensPerMinute(): number | undefined;
  /**
   * Whether at least 5 calls in a row failed since one was last answered or limited; false also if the file is locked
   * or closed.
   */
  isBreakerOpen(): boolean;
  close(): void;
}

interface AcquireOptions {
  /**
   * Whether the caller waits for room in the limits of the minute, and for the result of the breaker's probe. A query
   * does not wait, since it can be answered from words alone. Every caller waits for the gap between calls.
   */
  readonly patient: boolean;
  /**
   * Whether the caller can use another provider instead, so that it does not wait for the breaker's probe; false by
   * default.
   */
  readonly hasOther?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Permission to make one call of the provider. */
export interface ProviderPermit {
  /**
   * Reads the limits in the headers of a reply; `end` stores them. If it is called for several replies, the last one
   * counts.
   */
  heard(headers: Headers): void;
  /**
   * Reports how the call ended. It must be called once for every permit. It throws nothing if the disk is full or the
   * file is locked; the report is then lost.
   */
  end(outcome: CallOutcome): void;
}

/**
 * Why a call had to wait or was refused for now: `budget`, the configured limits a minute; `gap`, the least time
 * between two calls; `told`, the remaining limits that the provider's replies stated; `pause`, a Retry-After of the
 * provider; `breaker`, failures in a row.
 */
export type WaitReason = 'budget' | 'gap' | 'told' | 'pause' | 'breaker';

/** Limits of a provider's budget, which the settings give, and what the budget works with. */
export interface BudgetOptions extends MinuteLimits {
  /** Where the calls are counted. Every process that is to share the budget gives the same value. */
  readonly file: CounterPlace;
  /** The name of the provider in error messages; 'embedding provider' by default. */
  readonly role?: string | undefined;
  /** Least time between the starts of two calls (ms); 0 by default. */
  readonly gapMs?: number | undefined;
  readonly clock: Clock;
  /**
   * Called for each call that had to wait or was refused for now, with the latest reason. `ms` is the time that it
   * waited until it started or was aborted; 0 if it failed with `rate_limited`, even after a wait.
   */
  readonly onHeldBack?: ((reason: WaitReason, ms: number) => void) | undefined;
}

/** Longest sleep of a waiting call before it checks again (ms), since other calls may leave room sooner. */
const MAX_WAIT_MS = 250;

interface Go {
  readonly kind: 'go';
  readonly isProbe: boolean;
  /** Number of the call's row in the table `flights`, which lists the running calls. */
  readonly flight: number;
}

type Verdict =
  | Go
  /** The call may start in `ms`, which is soon enough for a patient caller to wait. */
  | { readonly kind: 'wait'; readonly reason: WaitReason; readonly ms: number }
  /** The call fails with `rate_limited`; it may be tried again after `ms`. */
  | { readonly kind: 'put_off'; readonly reason: WaitReason; readonly ms: number };

/**
 * Opens the budget, and makes its file if it is absent. The caller must close it.
 * @throws EngineError the errors of `openCounterFile`
 */
export function openProviderBudget(options: BudgetOptions): ProviderBudget {
  const { clock, onHeldBack, role = 'embedding provider' } = options;
  const shared = openBudgetFile(options.file);
  let statedTokens: number | undefined;

  const ask = (tokens: number, patient: boolean): Verdict =>
    shared.write((statements) => judge(statements, options, { tokens, patient, now: clock.now() }));

  return {
    async acquire(tokens, { patient, hasOther = false, signal }) {
      let waitedFor: WaitReason | undefined;
      const startedAt = performance.now();
      const tell = () => {
        if (waitedFor !== undefined) onHeldBack?.(waitedFor, performance.now() - startedAt);
      };
      for (;;) {
        if (signal?.aborted) {
          tell();
          throw new EngineError('unavailable', 'the call was given up by its caller');
        }
        const verdict = ask(tokens, patient);
        if (verdict.kind === 'go') {
          tell();
          return createPermit(verdict);
        }
        if (!isWorthWaiting(verdict, { patient, hasOther })) {
          onHeldBack?.(verdict.reason, 0);
          throw new EngineError('rate_limited', `the ${role} is being left alone`, {
            retryAfterMs: verdict.ms,
          });
        }
        waitedFor = verdict.reason;
        await pause(Math.min(verdict.ms, MAX_WAIT_MS), undefined, signal ? { signal } : {}).catch(() => {});
      }
    },
    statedTokensPerMinute: () => statedTokens,
    isBreakerOpen() {
      let isOpen = false;
      shared.note((statements) => void (isOpen = isBreakerOpen(statements)));
      return isOpen;
    },
    close: () => shared.close(),
  };

  function createPermit({ isProbe, flight }: Go): ProviderPermit {
    let stated: StatedLimits = {};
    return {
      heard(headers) {
        stated = readLimits(headers, clock.now());
        statedTokens = stated.tokens?.limit ?? statedTokens;
      },
      end: (outcome) =>
        shared.note((statements) => {
          const now = clock.now();
          statements.land.run({ flight });
          noteOutcome(statements, outcome, { isProbe, now });
          noteStatedLimits(statements, stated, { isLimited: outcome.kind === 'limited', now });
        }),
    };
  }
}

function isWorthWaiting(
  { kind, reason }: Exclude<Verdict, Go>,
  { patient, hasOther }: { patient: boolean; hasOther: boolean },
): boolean {
  if (kind === 'put_off') return false;
  if (reason === 'gap') return true; // The gap is short, and a query's own time limit ends the wait.
  return patient && !(hasOther && reason === 'breaker');
}

/** Decides whether a call may start, and counts it if so. Call it in a write transaction. */
function judge(
  statements: BudgetStatements,
  limits: MinuteLimits & Pick<BudgetOptions, 'gapMs'>,
  call: PlannedCall,
): Verdict {
  const { now } = call;
  const { isOpen, pauseMs, probeMs } = readBreaker(statements, now);
  if (pauseMs > 0) return { kind: 'put_off', reason: isOpen ? 'breaker' : 'pause', ms: pauseMs };
  if (probeMs > 0) return { kind: 'wait', reason: 'breaker', ms: probeMs };
  const statedMs = untilStatedReset(statements, call);
  // A waiting caller holds jobs, so a call never waits in place for longer than a minute.
  if (statedMs > 0) return { kind: statedMs > WINDOW_MS ? 'put_off' : 'wait', reason: 'told', ms: statedMs };
  const gapMs = untilGap(statements, limits.gapMs ?? 0, now);
  if (gapMs > 0) return { kind: 'wait', reason: 'gap', ms: gapMs };
  const roomMs = untilRoom(statements, limits, call);
  if (roomMs > 0) return { kind: 'wait', reason: 'budget', ms: roomMs };
  if (isOpen) statements.probe.run({ now });
  return { kind: 'go', isProbe: isOpen, flight: start(statements, call) };
}

/**
 * Records that a call starts. Returns the number of its row in `flights`. Rows of calls that began more than a minute
 * ago are removed.
 */
function start(statements: BudgetStatements, { tokens, now }: PlannedCall): number {
  statements.setStarted.run({ now });
  spendStatedLimits(statements, tokens);
  // A call that never ended belonged to a process that died. After a minute the provider has counted it in any case.
  statements.forgetFlights.run({ before: now - WINDOW_MS, now });
  return Number(statements.depart.run({ tokens, now }).lastInsertRowid);
}

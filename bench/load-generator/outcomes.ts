import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';
import { count, span, table } from '../../src/cli/terminal.ts';
import { KINDS, type Kind } from './options.ts';

/** Outcome of a request: the status of its answer, or why there was none, such as ECONNRESET. */
export type Outcome = number | string;

/** Counts and latencies of a run, in bounded memory: one histogram per kind of request, exact to three digits. */
export interface Outcomes {
  /** Records a request. `ms` counts from the time it was due, so that a stall of the server counts for all requests. */
  record(kind: Kind, outcome: Outcome, ms: number): void;
  /** Records a request that was due and never sent, because every connection was busy until the end. */
  recordUnsent(waitedMs: number): void;
  readonly answered: number;
  /** Number of requests that failed in a way in which no server should fail: neither answered nor put off. */
  readonly failed: number;
  /** 95th percentile of the latency of queries so far, ms; NaN before the first. */
  readonly queryP95Ms: number;
  /** Lines of a report for a terminal. */
  summary(seconds: number): string[];
}

/** Statuses by which a busy server asks its clients to come again later. */
const PUT_OFF: ReadonlySet<Outcome> = new Set([429, 503]);
const LONGEST_US = 3_600_000_000;
const PERCENTILES = [50, 95, 99] as const;

export function createOutcomes(): Outcomes {
  const latencies = new Map<Kind, RecordableHistogram>();
  const outcomes = new Map<Kind, Map<Outcome, number>>();
  const unsent = { count: 0, longestMs: 0 };
  const sum = (matches: (outcome: Outcome) => boolean, kinds: readonly Kind[] = KINDS) =>
    kinds
      .flatMap((kind) => [...(outcomes.get(kind) ?? [])])
      .reduce((total, [outcome, times]) => total + (matches(outcome) ? times : 0), 0);
  const percentileMs = (kind: Kind, percentile: number) => (latencies.get(kind)?.percentile(percentile) ?? NaN) / 1000;

  const rowOf = (kind: Kind, seconds: number): string[] => {
    const histogram = latencies.get(kind)!;
    return [
      kind,
      count(histogram.count),
      (histogram.count / seconds).toFixed(1),
      count(sum((outcome) => PUT_OFF.has(outcome), [kind])),
      count(sum(isFailure, [kind])),
      ...PERCENTILES.map((percentile) => milliseconds(percentileMs(kind, percentile))),
      milliseconds(histogram.max / 1000),
    ];
  };

  return {
    record(kind, outcome, ms) {
      if (!latencies.has(kind)) latencies.set(kind, createHistogram({ lowest: 1, highest: LONGEST_US, figures: 3 }));
      latencies.get(kind)!.record(Math.min(LONGEST_US, Math.max(1, Math.round(ms * 1000))));
      const counts = outcomes.get(kind) ?? new Map<Outcome, number>();
      outcomes.set(kind, counts.set(outcome, (counts.get(outcome) ?? 0) + 1));
    },
    recordUnsent(waitedMs) {
      unsent.count += 1;
      unsent.longestMs = Math.max(unsent.longestMs, waitedMs);
    },
    get answered() {
      return sum(() => true);
    },
    get failed() {
      return sum(isFailure);
    },
    get queryP95Ms() {
      return percentileMs('query', 95);
    },
    summary(seconds) {
      const head = ['', 'requests', 'a second', 'put off', 'failed', ...PERCENTILES.map((p) => `p${p}`), 'max'];
      const rows = KINDS.filter((kind) => latencies.has(kind)).map((kind) => rowOf(kind, seconds));
      const byOutcome = new Map<Outcome, number>();
      for (const counts of outcomes.values())
        for (const [outcome, times] of counts) byOutcome.set(outcome, (byOutcome.get(outcome) ?? 0) + times);
      const statuses = [...byOutcome]
        .sort(([, a], [, b]) => b - a)
        .map(([outcome, times]) => `${outcome} × ${count(times)}`);
      return [
        ...table([head, ...rows], '<>>>>>>>>'),
        '',
        `answers: ${statuses.join(', ') || 'none'}`,
        ...(unsent.count === 0
          ? []
          : [
              `${count(unsent.count)} more were due and not sent, ` +
                `the first of them ${span(unsent.longestMs)} before the end`,
            ]),
      ];
    },
  };
}

function isFailure(outcome: Outcome): boolean {
  return typeof outcome === 'string' || (outcome >= 300 && !PUT_OFF.has(outcome));
}

function milliseconds(ms: number): string {
  return Number.isFinite(ms) ? `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms` : '';
}

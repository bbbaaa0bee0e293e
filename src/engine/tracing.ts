/**
 * Traces, for operators who ask for them (`OM_TRACING`). Only a request begins a trace. The work that it causes
 * continues the trace, in any process and at any later time, because the ledger's row holds the W3C trace context.
 * Code that may be traced holds a `Tracing` or null, so that without tracing it costs a null check.
 *
 * Names come from closed sets, and attributes hold numbers and such names: never content, a query, a key or a file
 * name.
 */

import { serialiseError } from './errors.ts';

/** Begins spans and sends them to a collector. */
export interface Tracing {
  /**
   * Begins the span of a request. It continues the caller's trace if `traceparent`, the header, names one, and else
   * begins a trace.
   */
  startRequest(
    name: string,
    options: { readonly traceparent: string | undefined; readonly attributes: Attributes },
  ): Span;
  /**
   * Begins a span of the traces that `options.continues` names or, if it names none, inside the active span. The caller
   * ends it.
   * @param name name from a closed set, without data
   * @returns undefined if there is neither, or if the active span is not sampled
   */
  start(name: string, options?: SpanOptions): Span | undefined;
  /** Returns the active span; undefined if there is none, if it has ended, or if its trace is not sampled. */
  active(): Span | undefined;
  /** Sends the spans that have ended, for two seconds at most, and ends tracing. It never throws. */
  close(): Promise<void>;
}

/** One unit of work with its start and end. */
export interface Span {
  /** Id of the trace, 32 hexadecimal digits. */
  readonly traceId: string;
  /** Value of the header `traceparent` (W3C Trace Context) for this span; null if the trace is not sampled. */
  readonly traceparent: string | null;
  /** Runs `work` with this span as the active one, in everything that it awaits, too, and returns its result. */
  run<T>(work: () => T): T;
  /** Adds attributes, or replaces those of the same names. */
  set(attributes: Attributes): void;
  /** Marks the span as failed. `type` is the code of an error. */
  fail(type: string): void;
  /** Ends the span, at a time by `performance.now()`; if that is left out, now. Call it once. */
  end(endedAt?: number): void;
}

/** How a span begins. */
export interface SpanOptions {
  /** Kind of the span by OpenTelemetry; `internal` by default. */
  readonly kind?: SpanKind;
  readonly attributes?: Attributes;
  /**
   * Trace contexts that the span continues, in the form of `traceparent`; malformed ones are ignored. With several, the
   * span belongs to the first trace and links to the others; each other trace gets a span of the same name and times
   * that links back. One unit of work may serve many traces, and so each trace shows when its own work was done.
   */
  readonly continues?: readonly string[] | undefined;
  /** Start of the span by `performance.now()`, so in ms; now if absent. */
  readonly startedAt?: number;
}

/**
 * Kind of a span by OpenTelemetry: `server` answers a request, `client` calls another server, `producer` and `consumer`
 * send and process a queue's message, and `internal` is all other work.
 */
export type SpanKind = 'internal' | 'server' | 'client' | 'producer' | 'consumer';

/**
 * Attributes of a span, named by OpenTelemetry's semantic conventions; names that begin with `cairn.` are Cairn's
 * own.
 */
export type Attributes = Readonly<Record<string, string | number>>;

/**
 * Runs `work` inside a span if it belongs to a trace by the rules of `Tracing.start`, and else without a span. `work`
 * is given the span, if there is one. An error marks the span as failed and is thrown again. The span ends when the
 * promise settles.
 */
export function traced<T>(
  tracing: Tracing | null | undefined,
  name: string,
  options: SpanOptions,
  work: (span?: Span) => Promise<T>,
): Promise<T> {
  const span = tracing?.start(name, options);
  if (span === undefined) return work();
  return span.run(async () => {
    try {
      return await work(span);
    } catch (error) {
      span.fail(serialiseError(error).code);
      throw error;
    } finally {
      span.end();
    }
  });
}

/**
 * Returns the W3C trace contexts of ledger rows (jobs), for `SpanOptions.continues`: each one once, in the order of the
 * rows. Rows without a trace are left out.
 */
export function tracesOf(rows: readonly { readonly trace: string | null }[]): string[] {
  const traces = rows.map(({ trace }) => trace).filter((trace) => trace !== null);
  return traces.length < 2 ? traces : [...new Set(traces)];
}

/**
 * Returns the attributes of a span that sends or processes a queue's message.
 * @param rows number of ledger rows that the message carries
 */
export function messageAttributes(operation: 'send' | 'process', queue: string, rows: number) {
  return {
    'messaging.system': 'bullmq',
    'messaging.operation.name': operation,
    'messaging.operation.type': operation,
    'messaging.destination.name': queue,
    'cairn.jobs': rows,
  } as const;
}

import { serialiseError } from './errors.ts';

/**
 * Traces, for operators who ask for them (`OM_TRACING`). Only a request begins one; what it asked for goes on with it, in whichever process
 * and however much later, as its W3C trace context stands in the ledger's row. Whoever may be traced holds a `Tracing` or null, so that
 * without one a null check is all that is paid.
 *
 * Names come from closed sets, and attributes hold numbers and such names: never content, a query, a key or a file name.
 */
export interface Tracing {
  /** The span of a request: the first of a trace, or one that goes on with its caller's. */
  startRequest(
    name: string,
    options: { readonly traceparent: string | undefined; readonly attributes: Attributes },
  ): Span;
  /**
   * A span of the traces that `continues` names, else inside the active one.
   * @returns undefined where there is neither, or the trace is not sampled
   */
  start(name: string, options?: SpanOptions): Span | undefined;
  /** The span inside which this runs; undefined where there is none, it has ended, or the trace is not sampled. */
  active(): Span | undefined;
  /** Sends what has ended, for two seconds at most. */
  close(): Promise<void>;
}

export interface Span {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** As the header of that name (W3C Trace Context); null where the trace is not sampled. */
  readonly traceparent: string | null;
  /** What begins during `work`, and in whatever it awaits, is inside this span. */
  run<T>(work: () => T): T;
  set(attributes: Attributes): void;
  /** Notes that it failed. @param type from a closed set: an error's code */
  fail(type: string): void;
  end(): void;
}

export interface SpanOptions {
  readonly kind?: SpanKind;
  readonly attributes?: Attributes;
  /**
   * Trace contexts, as `traceparent` has them. Of several, the span belongs to the first and links to the others, and each of these gets a
   * span of the same name and times that links back: work is done for many at once, and each trace tells when its own was.
   */
  readonly continues?: readonly string[] | undefined;
  /** By `performance.now()`; now if absent. */
  readonly startedAt?: number;
}

export type SpanKind = 'internal' | 'server' | 'client' | 'producer' | 'consumer';

/** By the names of OpenTelemetry's semantic conventions; those that begin with `cairn.` are ours. */
export type Attributes = Readonly<Record<string, string | number>>;

/** Does some work as a span, if there is something that it belongs to. What it throws marks the span and is thrown on. */
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

/** The trace contexts that rows carry, each once. */
export function tracesOf(rows: readonly { readonly trace: string | null }[]): string[] {
  const traces = rows.map(({ trace }) => trace).filter((trace) => trace !== null);
  return traces.length < 2 ? traces : [...new Set(traces)];
}

/** @param rows of the ledger, that one message carries */
export function messageAttributes(operation: 'send' | 'process', queue: string, rows: number) {
  return {
    'messaging.system': 'bullmq',
    'messaging.operation.name': operation,
    'messaging.operation.type': operation,
    'messaging.destination.name': queue,
    'cairn.jobs': rows,
  } as const;
}

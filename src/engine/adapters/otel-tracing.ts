import { AsyncLocalStorage } from 'node:async_hooks';
import {
  isSpanContextValid,
  ROOT_CONTEXT,
  SpanKind as OtelKind,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Context,
  type Span as OtelSpan,
  type SpanContext,
  type Tracer,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, NodeTracerProvider, type SpanExporter } from '@opentelemetry/sdk-trace-node';
import type { Logger } from '../ports.ts';
import type { Span, SpanKind, SpanOptions, Tracing } from '../tracing.ts';
import { VERSION } from '../version.ts';

const KINDS = {
  internal: OtelKind.INTERNAL,
  server: OtelKind.SERVER,
  client: OtelKind.CLIENT,
  producer: OtelKind.PRODUCER,
  consumer: OtelKind.CONSUMER,
} as const satisfies Record<SpanKind, OtelKind>;

/** Greatest number of links of one span; the OpenTelemetry SDK drops links beyond 128. */
const MAX_LINKS = 128;
/**
 * Greatest time that `close` waits for the collector (ms), so that a collector that is down does not delay a shutdown.
 */
const MAX_CLOSE_MS = 2_000;

/** An OpenTelemetry span with the further data that this module needs. */
interface OpenSpan extends Span {
  /** OpenTelemetry's context in which the span is the active one. */
  readonly context: Context;
  readonly hasEnded: boolean;
}

/**
 * Starts tracing by OpenTelemetry's SDK, which sends spans by OTLP over HTTP. The SDK's own environment variables set
 * the address, the sampling and the batches (`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_TRACES_SAMPLER`, `OTEL_SERVICE_NAME`
 * …). Nothing is registered globally, so that no other library of the process sends spans by it.
 */
export function openOtelTracing(logger: Logger, exporter: SpanExporter = new OTLPTraceExporter()): Tracing {
  const provider = new NodeTracerProvider({
    // A later resource overrides an earlier one.
    resource: defaultResource()
      .merge(resourceFromAttributes({ 'service.name': 'cairn', 'service.version': VERSION }))
      .merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new BatchSpanProcessor(logOutages(exporter, logger))],
  });
  const source: SpanSource = { tracer: provider.getTracer('cairn', VERSION), storage: new AsyncLocalStorage() };

  function active(): OpenSpan | undefined {
    const span = source.storage.getStore();
    // The code of a timer runs inside the span of the request that set the timer, and the span may have ended long ago.
    return span === undefined || span.hasEnded || span.traceparent === null ? undefined : span;
  }

  return {
    startRequest(name, { traceparent, attributes }) {
      const caller = parseTraceparent(traceparent);
      const parent = caller === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, caller);
      return startSpan(source, name, { parent, options: { kind: 'server', attributes } });
    },
    start(name, options = {}) {
      const contexts = (options.continues ?? []).map(parseTraceparent).filter((context) => context !== undefined);
      const [first, ...others] = contexts;
      const parent = first === undefined ? active()?.context : trace.setSpanContext(ROOT_CONTEXT, first);
      return parent && startSpan(source, name, { parent, options, others });
    },
    active,
    close: () => shutDown(provider),
  };
}

/** The tracer that creates spans, and the storage that knows the active span of the running code. */
interface SpanSource {
  readonly tracer: Tracer;
  readonly storage: AsyncLocalStorage<OpenSpan>;
}

interface SpanStart {
  /** Context of the parent span; `ROOT_CONTEXT` for the first span of a trace. */
  readonly parent: Context;
  readonly options: SpanOptions;
  /**
   * Further traces to which the work belongs. When the span ends, each of them gets a copy of the span, with equal
   * times.
   */
  readonly others?: readonly SpanContext[];
}

/** Starts a span. When the span ends, a copy of it is made in each of the other traces. */
function startSpan(
  { tracer, storage }: SpanSource,
  name: string,
  { parent, options, others = [] }: SpanStart,
): OpenSpan {
  const { kind = 'internal', attributes = {}, startedAt = performance.now() } = options;
  const shape = { kind: KINDS[kind], startTime: toUnixMs(startedAt) };
  const links = others.slice(0, MAX_LINKS).map((context) => ({ context }));
  const span = tracer.startSpan(name, { ...shape, attributes, links }, parent);
  let spanAttributes = attributes;
  let hasEnded = false;
  const open: OpenSpan = {
    context: trace.setSpan(parent, span),
    get hasEnded() {
      return hasEnded;
    },
    traceId: span.spanContext().traceId,
    traceparent: span.isRecording() ? formatTraceparent(span.spanContext()) : null,
    run: (work) => storage.run(open, work),
    set(more) {
      spanAttributes = { ...spanAttributes, ...more };
      span.setAttributes(more);
    },
    fail(type) {
      spanAttributes = { ...spanAttributes, 'error.type': type };
      markFailed(span, type);
    },
    end(at = performance.now()) {
      hasEnded = true;
      const endedAt = shape.startTime + (at - startedAt);
      span.end(endedAt);
      for (const other of others) {
        const copy = tracer.startSpan(
          name,
          { ...shape, attributes: spanAttributes, links: [{ context: span.spanContext() }] },
          trace.setSpanContext(ROOT_CONTEXT, other),
        );
        const type = spanAttributes['error.type'];
        if (type !== undefined) markFailed(copy, String(type));
        copy.end(endedAt);
      }
    },
  };
  return open;
}

/** Sends the remaining spans, for at most 2 s (`MAX_CLOSE_MS`). It never rejects. */
async function shutDown(provider: NodeTracerProvider): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, MAX_CLOSE_MS);
  });
  await Promise.race([provider.shutdown().catch(() => {}), timeout]);
  clearTimeout(timer);
}

/** Difference between the wall clock and `performance.now()` in this thread (ms); undefined before the first span. */
let offsetMs: number | undefined;
/**
 * Greatest error of `offsetMs` (ms) that is tolerated. The wall clock has whole milliseconds; a greater error means
 * that it was set or has drifted.
 */
const OFFSET_ERROR_MS = 2;

/**
 * Converts a monotonic time to the wall clock. One offset is used for all spans, since the SDK would read both clocks
 * for each span and put adjacent spans up to a millisecond apart.
 * @param at a time by `performance.now()` (ms)
 * @returns Unix ms with fractions
 */
function toUnixMs(at: number): number {
  const before = performance.now();
  const measuredMs = Date.now() - before;
  // Between the two clocks a thread may lose its core; then they were read too far apart to be compared.
  const isExact = performance.now() - before < OFFSET_ERROR_MS;
  if (offsetMs === undefined || (isExact && Math.abs(measuredMs - offsetMs) > OFFSET_ERROR_MS)) offsetMs = measuredMs;
  return at + offsetMs;
}

function markFailed(span: OtelSpan, type: string): void {
  span.setAttribute('error.type', type);
  // The status carries no message, since an error's message could hold anything, content included.
  span.setStatus({ code: SpanStatusCode.ERROR });
}

const TRACEPARENT = /^(?!ff|00.{54})[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-|$)/;

/**
 * Parses a `traceparent` header. Returns undefined if it is absent or malformed, as W3C Trace Context demands that a
 * malformed header is ignored.
 */
function parseTraceparent(header: string | undefined): SpanContext | undefined {
  const [, traceId = '', spanId = '', flags = ''] = TRACEPARENT.exec(header ?? '') ?? [];
  const context = { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & TraceFlags.SAMPLED, isRemote: true };
  return isSpanContextValid(context) ? context : undefined;
}

function formatTraceparent({ traceId, spanId }: SpanContext): string {
  return `00-${traceId}-${spanId}-01`;
}

/**
 * Wraps an exporter so that it logs one line for each outage. Only the error's code or name is logged, since its
 * message may contain the collector's URL with a password.
 */
function logOutages(exporter: SpanExporter, logger: Logger): SpanExporter {
  let isFailing = false;
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        const hasFailed = Number(result.code) !== 0;
        if (hasFailed && !isFailing) logger.warn({ code: codeOf(result.error) }, 'traces_not_sent');
        isFailing = hasFailed;
        done(result);
      });
    },
    forceFlush: async () => exporter.forceFlush?.(),
    shutdown: () => exporter.shutdown(),
  };
}

function codeOf(error: Error | undefined): string | number {
  return (error as (Error & { readonly code?: string | number }) | undefined)?.code ?? error?.name ?? 'unknown';
}

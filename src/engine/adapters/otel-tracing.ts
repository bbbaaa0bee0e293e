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

/** Beyond so many the SDK drops them. */
const LINKS_MOST = 128;
/** A collector that is down holds up no stop for longer than this. */
const CLOSE_MOST_MS = 2_000;

interface OpenSpan extends Span {
  readonly context: Context;
  readonly hasEnded: boolean;
}

/**
 * Traces by OpenTelemetry's SDK, sent by OTLP over HTTP. Where to, how much is sampled, in what batches: that is for the SDK's own
 * variables (`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_TRACES_SAMPLER`, `OTEL_SERVICE_NAME` …) to say. Registers nothing globally, so that no
 * other library of the process traces, or is traced, by it.
 */
export function openOtelTracing(logger: Logger, exporter: SpanExporter = new OTLPTraceExporter()): Tracing {
  const provider = new NodeTracerProvider({
    // What comes later wins.
    resource: defaultResource()
      .merge(resourceFromAttributes({ 'service.name': 'cairn', 'service.version': VERSION }))
      .merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new BatchSpanProcessor(sayFailures(exporter, logger))],
  });
  const tracer = provider.getTracer('cairn', VERSION);
  const storage = new AsyncLocalStorage<OpenSpan>();

  function begin(name: string, parent: Context, options: SpanOptions, others: readonly SpanContext[] = []): OpenSpan {
    const { kind = 'internal', attributes = {}, startedAt = performance.now() } = options;
    const shape = { kind: KINDS[kind], startTime: toUnixMs(startedAt) };
    const links = others.slice(0, LINKS_MOST).map((context) => ({ context }));
    const span = tracer.startSpan(name, { ...shape, attributes, links }, parent);
    const context = trace.setSpan(parent, span);
    let said = attributes;
    let hasEnded = false;
    const open: OpenSpan = {
      context,
      get hasEnded() {
        return hasEnded;
      },
      traceId: span.spanContext().traceId,
      traceparent: span.isRecording() ? formatTraceparent(span.spanContext()) : null,
      run: (work) => storage.run(open, work),
      set(more) {
        said = { ...said, ...more };
        span.setAttributes(more);
      },
      fail(type) {
        said = { ...said, 'error.type': type };
        markFailed(span, type);
      },
      end() {
        hasEnded = true;
        const endedAt = shape.startTime + (performance.now() - startedAt);
        span.end(endedAt);
        for (const other of others) {
          const copy = tracer.startSpan(
            name,
            { ...shape, attributes: said, links: [{ context: span.spanContext() }] },
            trace.setSpanContext(ROOT_CONTEXT, other),
          );
          const type = said['error.type'];
          if (type !== undefined) markFailed(copy, String(type));
          copy.end(endedAt);
        }
      },
    };
    return open;
  }

  function active(): OpenSpan | undefined {
    const span = storage.getStore();
    // A timer that a request set goes off inside its span, which may have ended long ago.
    return span === undefined || span.hasEnded || span.traceparent === null ? undefined : span;
  }

  return {
    startRequest(name, { traceparent, attributes }) {
      const caller = parseTraceparent(traceparent);
      const parent = caller === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, caller);
      return begin(name, parent, { kind: 'server', attributes });
    },
    start(name, options = {}) {
      const contexts = (options.continues ?? []).map(parseTraceparent).filter((context) => context !== undefined);
      const [first, ...others] = contexts;
      const parent = first === undefined ? active()?.context : trace.setSpanContext(ROOT_CONTEXT, first);
      return parent && begin(name, parent, options, others);
    },
    active,
    async close() {
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, CLOSE_MOST_MS);
      });
      await Promise.race([provider.shutdown().catch(() => {}), late]);
      clearTimeout(timer);
    },
  };
}

/** Between the two clocks of this thread (ms). */
let offsetMs = 0;
/** The wall clock comes in whole milliseconds; what differs by more was set, or drifted. */
const OFFSET_ERROR_MS = 2;

/**
 * @param at by `performance.now()`, which alone measures durations
 * @returns Unix ms with fractions. The SDK would look at both clocks anew for each span, and put spans up to a millisecond apart that touch.
 */
function toUnixMs(at: number): number {
  const seenMs = Date.now() - performance.now();
  if (Math.abs(seenMs - offsetMs) > OFFSET_ERROR_MS) offsetMs = seenMs;
  return at + offsetMs;
}

function markFailed(span: OtelSpan, type: string): void {
  span.setAttribute('error.type', type);
  // Without a message, which could hold anything.
  span.setStatus({ code: SpanStatusCode.ERROR });
}

const TRACEPARENT = /^(?!ff|00.{54})[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-|$)/;

/** @returns undefined for anything that is none, as W3C Trace Context asks for */
function parseTraceparent(header: string | undefined): SpanContext | undefined {
  const [, traceId = '', spanId = '', flags = ''] = TRACEPARENT.exec(header ?? '') ?? [];
  const context = { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & TraceFlags.SAMPLED, isRemote: true };
  return isSpanContextValid(context) ? context : undefined;
}

function formatTraceparent({ traceId, spanId }: SpanContext): string {
  return `00-${traceId}-${spanId}-01`;
}

/** One line an outage. The message of an error may hold the collector's URL, which may hold a password. */
function sayFailures(exporter: SpanExporter, logger: Logger): SpanExporter {
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

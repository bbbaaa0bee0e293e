import type { Attributes, Tracing } from '../tracing.ts';

/** A span that ended on another thread. */
export interface RecordedSpan {
  readonly name: string;
  readonly attributes: Attributes;
  /** Time of the start, Unix ms with fractions (`performance.timeOrigin` + `performance.now()`). */
  readonly startedAt: number;
  readonly endedAt: number;
}

/** A `Tracing` that only collects ended spans. Another thread then passes them on with `replaySpans`. */
export interface SpanRecorder {
  readonly tracing: Tracing;
  readonly spans: readonly RecordedSpan[];
}

/** Creates a tracing that records spans. Nested spans are recorded side by side, without their parents. */
export function createSpanRecorder(): SpanRecorder {
  const spans: RecordedSpan[] = [];
  const start: Tracing['start'] = (name, { attributes = {}, startedAt = performance.now() } = {}) => {
    let all = attributes;
    return {
      traceId: '',
      traceparent: null,
      run: (work) => work(),
      set: (more) => void (all = { ...all, ...more }),
      fail: (type) => void (all = { ...all, 'error.type': type }),
      end: (endedAt = performance.now()) =>
        void spans.push({
          name,
          attributes: all,
          startedAt: performance.timeOrigin + startedAt,
          endedAt: performance.timeOrigin + endedAt,
        }),
    };
  };
  return {
    spans,
    tracing: {
      start,
      startRequest: (name, options) => start(name, options)!,
      active: () => undefined,
      close: async () => {},
    },
  };
}

/** Creates spans from recorded ones, inside the active span of this thread. */
export function replaySpans(tracing: Tracing, spans: readonly RecordedSpan[]): void {
  for (const { name, attributes, startedAt, endedAt } of spans) {
    const span = tracing.start(name, { attributes, startedAt: startedAt - performance.timeOrigin });
    const failure = attributes['error.type'];
    if (failure !== undefined) span?.fail(String(failure));
    span?.end(endedAt - performance.timeOrigin);
  }
}

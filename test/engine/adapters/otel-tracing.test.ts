import { setTimeout as pause } from 'node:timers/promises';
import { InMemorySpanExporter, type ReadableSpan } from '@opentelemetry/sdk-trace-node';
import { expect, onTestFinished, test, vi } from 'vitest';
import { openOtelTracing } from '../../../src/engine/adapters/otel-tracing.ts';
import { EngineError } from '../../../src/engine/errors.ts';
import { silentLogger } from '../../../src/engine/ports.ts';
import { traced, type Tracing } from '../../../src/engine/tracing.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = 'b7ad6b7169203331';
const SAMPLED = `00-${TRACE}-${PARENT}-01`;

/** Keeps what was exported beyond the end, which empties the SDK's own. */
function open(): { tracing: Tracing; end(): Promise<ReadableSpan[]> } {
  const exporter = new InMemorySpanExporter();
  const tracing = openOtelTracing(silentLogger, {
    export: (spans, done) => exporter.export(spans, done),
    shutdown: async () => {},
  });
  onTestFinished(() => tracing.close());
  return {
    tracing,
    async end() {
      await tracing.close();
      return exporter.getFinishedSpans();
    },
  };
}

const request = (tracing: Tracing, traceparent?: string) =>
  tracing.startRequest('GET /', { traceparent, attributes: {} });

test('a request goes on with the trace of its caller', async () => {
  const { tracing, end } = open();
  const span = request(tracing, SAMPLED);
  expect(span.traceId).toBe(TRACE);
  span.end();
  expect((await end())[0]!.parentSpanContext?.spanId).toBe(PARENT);
});

test.each([
  undefined,
  '',
  'nothing of the kind',
  `00-${'0'.repeat(32)}-${PARENT}-01`,
  `00-${TRACE}-${'0'.repeat(16)}-01`,
  `ff-${TRACE}-${PARENT}-01`,
  `${SAMPLED}-more`,
  SAMPLED.toUpperCase(),
])('traceparent %j begins a trace of its own', (header) => {
  const { tracing } = open();
  const span = request(tracing, header);
  expect(span.traceId).not.toBe(TRACE);
  expect(span.traceparent).toBe(`00-${span.traceId}-${span.traceparent!.split('-')[2]}-01`);
});

test('a later version of the header may say more', () => {
  const { tracing } = open();
  expect(request(tracing, `01-${TRACE}-${PARENT}-01-more`).traceId).toBe(TRACE);
});

test('what is not sampled has no context to hand on, and nothing inside it is traced', async () => {
  const { tracing, end } = open();
  const span = request(tracing, `00-${TRACE}-${PARENT}-00`);
  expect(span.traceparent).toBeNull();
  expect(span.run(() => [tracing.active(), tracing.start('inside')])).toEqual([undefined, undefined]);
  span.end();
  expect(await end()).toEqual([]);
});

test('only a request begins a trace', () => {
  const { tracing } = open();
  expect(tracing.start('by itself')).toBeUndefined();
  expect(tracing.start('for nobody', { continues: [] })).toBeUndefined();
});

test('what a request started and did not wait for is not inside it any more once it has ended', async () => {
  const { tracing } = open();
  const span = request(tracing);
  const later = span.run(async () => {
    expect(tracing.active()?.traceId).toBe(span.traceId);
    await pause(5);
    return tracing.active();
  });
  span.end();
  expect(await later).toBeUndefined();
});

test('a thread that loses its core while it reads the clocks tells no other time for it', async () => {
  const { tracing, end } = open();
  request(tracing).end();
  const { now } = Date;
  vi.spyOn(Date, 'now').mockImplementationOnce(() => {
    const read = now();
    const since = performance.now();
    while (performance.now() - since < 50);
    return read;
  });
  onTestFinished(() => void vi.restoreAllMocks());
  const before = now();
  request(tracing).end();
  const [seconds, nanoseconds] = (await end())[1]!.startTime;
  expect(seconds * 1_000 + nanoseconds / 1_000_000).toBeGreaterThan(before - 10);
});

test('an error marks its span by its code alone, and is thrown on', async () => {
  const { tracing, end } = open();
  const span = request(tracing);
  const work = () => traced(tracing, 'step', {}, () => Promise.reject(new EngineError('unavailable', 'a secret')));
  await expect(span.run(work)).rejects.toThrow('a secret');
  span.end();
  const step = (await end()).find(({ name }) => name === 'step')!;
  expect(step.attributes).toEqual({ 'error.type': 'unavailable' });
  expect([step.status, step.events]).toEqual([{ code: 2 }, []]);
});

test('work for several traces is in the first and linked with a span of the same times in each other', async () => {
  const { tracing, end } = open();
  const others = ['1', '2'].map((digit) => `00-${digit.repeat(32)}-${digit.repeat(16)}-01`);
  const span = tracing.start('batch', { continues: [SAMPLED, ...others], attributes: { 'cairn.jobs': 3 } })!;
  span.set({ more: 1 });
  span.fail('unavailable');
  span.end();
  const spans = await end();
  const [own, ...copies] = [TRACE, '1'.repeat(32), '2'.repeat(32)].map((traceId) =>
    spans.find((one) => one.spanContext().traceId === traceId)!,
  );
  expect(own!.links.map(({ context }) => context.traceId)).toEqual(copies.map((copy) => copy.spanContext().traceId));
  for (const copy of copies) {
    expect(copy).toMatchObject({
      name: 'batch',
      startTime: own!.startTime,
      endTime: own!.endTime,
      status: own!.status,
    });
    expect(copy.attributes).toEqual({ 'cairn.jobs': 3, more: 1, 'error.type': 'unavailable' });
    expect(copy.links.map(({ context }) => context)).toEqual([own!.spanContext()]);
  }
});

test('the end of a span that began earlier is told by the clock that is never set back', async () => {
  const { tracing, end } = open();
  const span = request(tracing);
  const startedAt = performance.now() - 1_000;
  span.run(() => tracing.start('earlier', { startedAt })!.end());
  span.end();
  const [earlier] = await end();
  const [seconds, nanoseconds] = earlier!.duration;
  expect(seconds * 1e9 + nanoseconds).toBeGreaterThanOrEqual(999_000_000);
});

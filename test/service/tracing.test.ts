import { randomBytes } from 'node:crypto';
import { describe, expect, onTestFinished, test } from 'vitest';
import { startFakeProvider, type FakeProvider } from '../support/fake-provider.ts';
import { startFleet } from '../support/fleet.ts';
import { startOtlpReceiver, type OtlpReceiver } from '../support/otlp-receiver.ts';
import { canStartRedis } from '../support/redis.ts';
import { spawnService, startServiceProcess, type ServiceProcess } from '../support/running-service.ts';
import { tempFolder } from '../support/temp-folder.ts';

const MODEL = 'model-of-the-tests';
const CALL = `embeddings ${MODEL}`;
/** Most by which the clocks of two threads of a process differ, of which each may be 2 ms off (ns). */
const CLOCKS_APART_NS = 4_000_000n;

/** What a caller that traces sends along. */
function newCaller() {
  const [traceId, spanId] = [randomBytes(16).toString('hex'), randomBytes(8).toString('hex')];
  return { traceId, spanId, headers: { traceparent: `00-${traceId}-${spanId}-01` } };
}

async function startTraced(): Promise<{
  receiver: OtlpReceiver;
  provider: FakeProvider;
  settings: Record<string, string>;
}> {
  const [receiver, provider] = await Promise.all([startOtlpReceiver(), startFakeProvider({ dimensions: 256 })]);
  onTestFinished(() => provider.close());
  const settings = {
    OM_TRACING: 'otlp',
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
    OTEL_BSP_SCHEDULE_DELAY: '50',
    OM_EMBEDDINGS: 'openai',
    OM_OPENAI_BASE_URL: provider.url,
    OM_OPENAI_MODEL: MODEL,
    // On a machine that does much else a query would go on without its vector.
    OM_QUERY_EMBED_TIMEOUT_MS: '60000',
  };
  return { receiver, provider, settings };
}

async function startEmbedded(settings: Record<string, string>): Promise<ServiceProcess> {
  const service = await startServiceProcess({ folder: tempFolder(), settings });
  onTestFinished(async () => void (await service.end('SIGKILL')));
  return service;
}

async function add(service: ServiceProcess, content: string, headers: Record<string, string>): Promise<void> {
  const { status } = await service.request('POST', '/memory/add', { body: { content }, headers });
  expect(status).toBe(202);
}

describe('in one process', () => {
  test('an add is one trace from its caller to the link, and a query one with a span a stage', async () => {
    const { receiver, settings } = await startTraced();
    const service = await startEmbedded(settings);
    const adder = newCaller();
    await add(service, 'kanarienvogel the harbour master keeps the keys', adder.headers);
    const added = await receiver.traceWith(adder.traceId, ['commit', CALL, 'encode', 'link', 'POST /memory/add']);
    await service.idle();
    const asker = newCaller();
    await service.request('POST', '/memory/query', {
      body: { query: 'who keeps kanarienvogel' },
      headers: asker.headers,
    });
    const asked = await receiver.traceWith(asker.traceId, ['pack', 'POST /memory/query']);

    const write = ['POST /memory/add', 'write addMemories'];
    expect(added.span('POST /memory/add')).toMatchObject({
      parentSpanId: adder.spanId,
      kind: 'server',
      attributes: { 'http.request.method': 'POST', 'http.route': '/memory/add', 'http.response.status_code': 202 },
    });
    expect(added.pathTo('commit')).toEqual([...write, 'commit']);
    expect(added.pathTo(CALL)).toEqual([...write, 'process encode', 'encode', CALL]);
    expect(added.pathTo('link')).toEqual([...write, 'process encode', 'link']);
    expect(added.span(CALL)).toMatchObject({
      kind: 'client',
      hasFailed: false,
      attributes: { 'gen_ai.operation.name': 'embeddings', 'gen_ai.request.model': MODEL },
    });
    expect(added.span('link').startedAt).toBeGreaterThanOrEqual(added.span('encode').endedAt);

    const stages = ['embed', 'plan', 'lexical', 'dense', 'fuse', 'expand', 'score', 'resolve', 'rerank', 'pack'];
    for (const stage of [...stages, CALL]) expect(asked.pathTo(stage)).toEqual(['POST /memory/query', stage]);
    expect(asked.span('plan').startedAt + CLOCKS_APART_NS).toBeGreaterThanOrEqual(asked.span(CALL).endedAt);
    // Neither what was said nor what was asked.
    expect(receiver.text).not.toContain('kanarienvogel');
    expect(receiver.senders).toContainEqual(expect.objectContaining({ 'service.name': 'cairn' }));
  });

  test('a document is one trace from its upload over its reading to the links of its chunks', async () => {
    const { receiver, settings } = await startTraced();
    const service = await startEmbedded(settings);
    const caller = newCaller();
    const body = { content_type: 'text/plain', data: Buffer.from('the ferry leaves at nine').toString('base64') };
    await service.request('POST', '/memory/ingest', { body, headers: caller.headers });
    await service.idle();
    const trace = await receiver.traceWith(caller.traceId, ['process ingest', 'parse', 'store chunks', CALL, 'link']);
    const write = ['POST /memory/ingest', 'write addDocument'];
    expect(trace.pathTo('parse')).toEqual([...write, 'process ingest', 'parse']);
    // The chunk and the document's root are encoded together, or apart where a worker took the first alone.
    const encodings = trace.spans.filter(({ name }) => name === 'process encode');
    for (const { parentSpanId } of encodings) expect(parentSpanId).toBe(trace.span('write addDocument').spanId);
    expect(encodings).not.toEqual([]);
  });

  test('jobs that are worked on together show in the trace of each, linked to the work that they shared', async () => {
    const { receiver, settings } = await startTraced();
    const folder = tempFolder();
    const api = await startServiceProcess({ folder, settings, command: 'api' });
    onTestFinished(async () => void (await api.end('SIGKILL')));
    const callers = [newCaller(), newCaller(), newCaller()];
    for (const [place, { headers }] of callers.entries()) await add(api, `a lighthouse, number ${place}`, headers);
    await api.end('SIGTERM');
    const service = await startServiceProcess({ folder, settings });
    onTestFinished(async () => void (await service.end('SIGKILL')));
    const traces = await Promise.all(callers.map(({ traceId }) => receiver.traceWith(traceId, ['process encode'])));
    const batches = traces.map((trace) => trace.span('process encode'));
    const [first, ...others] = batches;
    expect(first!.links).toHaveLength(2);
    for (const other of others) {
      expect(other.links).toEqual([first!.spanId]);
      expect([other.startedAt, other.endedAt]).toEqual([first!.startedAt, first!.endedAt]);
    }
    for (const trace of traces)
      expect(trace.pathTo('process encode').slice(0, 2)).toEqual(['POST /memory/add', 'write addMemories']);
    expect(traces[0]!.pathTo(CALL)).toContain('process encode');
  });

  test('what a caller does not sample is not traced, nor is the work that it asks for', async () => {
    const { receiver, settings } = await startTraced();
    const service = await startEmbedded(settings);
    const silent = newCaller();
    await add(service, 'whispered', { traceparent: silent.headers.traceparent.replace(/01$/, '00') });
    const heard = newCaller();
    await add(service, 'said aloud', heard.headers);
    await service.idle();
    await receiver.traceWith(heard.traceId, ['link']);
    await service.end('SIGTERM');
    expect(receiver.spans.filter(({ traceId }) => traceId !== heard.traceId && traceId === silent.traceId)).toEqual([]);
    expect(receiver.spans.filter(({ name }) => name === 'encode')).toHaveLength(1);
  });

  test('a provider that fails marks its call and the step', async () => {
    const { receiver, provider, settings } = await startTraced();
    const service = await startEmbedded(settings);
    provider.setMode('status', { status: 500 });
    const caller = newCaller();
    await add(service, 'never embedded', caller.headers);
    const trace = await receiver.traceWith(caller.traceId, [CALL, 'encode']);
    const failed = trace.spans.filter(({ name }) => name === CALL || name === 'encode');
    expect(failed.every(({ hasFailed }) => hasFailed)).toBe(true);
    expect(failed[0]!.attributes['error.type']).toBe('unavailable');
  });

  test('a collector that is down is said once and holds up neither a request nor the end', async () => {
    const { settings } = await startTraced();
    const service = await startEmbedded({ ...settings, OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' });
    for (const content of ['one', 'two', 'three']) await add(service, content, {});
    await service.idle();
    await service.logged('traces_not_sent');
    expect(await service.end('SIGTERM')).toEqual({ code: 0, signal: null });
    const said = service.log.filter(({ msg }) => msg === 'traces_not_sent');
    // A line a thread.
    expect(said.length).toBeLessThanOrEqual(2);
  });
});

describe.skipIf(!canStartRedis())('with Redis', () => {
  test('an add is one trace over the API, the queue and a worker', async () => {
    const { receiver, settings } = await startTraced();
    const { api } = await startFleet({ settings, workers: 1 });
    const caller = newCaller();
    await add(api, 'the pilot comes aboard at the fairway buoy', caller.headers);
    const trace = await receiver.traceWith(caller.traceId, ['POST /memory/add', 'send encode', CALL, 'link']);
    const write = ['POST /memory/add', 'write addMemories'];
    expect(trace.pathTo('send encode')).toEqual([...write, 'send encode']);
    expect(trace.pathTo(CALL)).toEqual([...write, 'process encode', 'encode', CALL]);
    expect(trace.pathTo('link')).toEqual([...write, 'process encode', 'link']);
    const message = { 'messaging.system': 'bullmq', 'messaging.destination.name': 'encode' };
    expect(trace.span('send encode')).toMatchObject({ kind: 'producer', attributes: message });
    expect(trace.span('process encode')).toMatchObject({ kind: 'consumer', attributes: message });
  });
});

describe('the packages of OpenTelemetry', () => {
  /** Makes a process and its threads behave as if they were not installed. */
  const WITHOUT = `data:text/javascript,${encodeURIComponent(`
    import { registerHooks } from 'node:module';
    registerHooks({
      resolve(name, context, next) {
        // prom-client has the API among its own dependencies.
        if (!/^@opentelemetry.(sdk|exporter|resources)/.test(name)) return next(name, context);
        throw Object.assign(new Error('not installed'), { code: 'ERR_MODULE_NOT_FOUND' });
      },
    });`)}`;
  const settings = { NODE_OPTIONS: `--import="${WITHOUT}"` };

  test('are not needed where nothing is traced', async () => {
    const service = await startEmbedded(settings);
    await add(service, 'nobody watches', newCaller().headers);
    expect(await service.idle()).toMatchObject({ done: 1 });
  });

  test('are named where they are needed and missing', async () => {
    const service = spawnService({ folder: tempFolder(), settings: { ...settings, OM_TRACING: 'otlp' } });
    expect((await service.exited).code).not.toBe(0);
    expect(service.obituary).toContain('npm install @opentelemetry/api');
  });
});

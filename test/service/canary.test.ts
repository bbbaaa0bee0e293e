import fs from 'node:fs';
import path from 'node:path';
import Database from 'better-sqlite3';
import type { Redis } from 'ioredis';
import { describe, expect, onTestFinished, test } from 'vitest';
import { canary, findCanaries } from '../support/canaries.ts';
import { CANARY_KEY, createCanaryCaller, ECHOED, type CanaryCaller } from '../support/canary-traffic.ts';
import { startFakeProvider, type FakeChatMode, type FakeMode, type FakeProvider } from '../support/fake-provider.ts';
import { startOtlpReceiver, type OtlpReceiver } from '../support/otlp-receiver.ts';
import { freePort } from '../support/free-port.ts';
import { canStartRedis, startRedisServer } from '../support/redis.ts';
import {
  databaseFile,
  spawnService,
  startServiceProcess,
  type ServiceOptions,
  type ServiceProcess,
} from '../support/running-service.ts';
import { fillDisk, mountSmallDisk, unmount } from '../support/small-disk.ts';
import { tempFolder } from '../support/temp-folder.ts';

/**
 * What users say, what operators keep secret and what files are called is in no log, no metric, no trace, no error and
 * no Redis: neither in quiet times nor when something fails, least of all when a provider repeats in its errors what it
 * was sent.
 */

const DIMENSIONS = 256;
const SECRETS = {
  OM_API_KEY: CANARY_KEY,
  OPENAI_API_KEY: canary('providerkey'),
  GEMINI_API_KEY: canary('providerkey'),
  AWS_ACCESS_KEY_ID: canary('providerkey'),
  AWS_SECRET_ACCESS_KEY: canary('providersecret'),
  OM_LLM_API_KEY: canary('modelkey'),
};

/** Only servers that speak as OpenAI does have others that stand in. */
const NO_FALLBACK = { OM_EMBED_FALLBACK: '', OM_EMBED_FALLBACK_KEY: '' };

/** How a provider can fail, and the dangerous ways with the statuses in which they come. */
const ECHO_STATUSES = [200, 400, 401, 403, 404, 413, 422, 429, 500, 503];
const EMBEDDING_FAULTS: readonly FakeMode[] = [
  ...([
    'echo_page',
    'echo_answer',
    'rate_limited',
    'hang',
    'drip',
    'drip_error',
    'reset',
    'cut',
    'redirect',
    'html',
  ] as const),
  ...(['truncated', 'huge', 'nan', 'null', 'strings', 'infinite', 'zeros', 'wrong_dimension', 'no_vector'] as const),
  ...(['empty', 'no_list', 'short', 'extra', 'index_repeated', 'index_outside'] as const),
];
const CHAT_FAULTS: readonly FakeChatMode[] = [
  ...(['echo_page', 'echo_answer', 'rate_limited', 'hang', 'drip', 'huge', 'reset', 'redirect', 'html'] as const),
  ...(['truncated', 'empty', 'no_choice', 'no_text', 'blank', 'refusal', 'filtered', 'cut_short'] as const),
];

test('canaries are found in whatever form they travel', () => {
  const secret = canary('content');
  for (const shift of ['', 'a', 'ab']) {
    expect(findCanaries(Buffer.from(`${shift}${secret}`).toString('base64'))).toEqual(['in base64']);
  }
  expect(findCanaries(`${secret.toUpperCase()} ${encodeURIComponent(secret)}`)).toEqual(['CONTENT', 'content']);
  expect(findCanaries(Buffer.from(secret).toString('hex'))).toEqual(['in hex']);
  expect(findCanaries(Buffer.from(secret, 'utf16le').toString('latin1'))).toEqual(['in UTF-16']);
  expect(findCanaries('a canary of no kind')).toEqual([]);
});

describe('one process', () => {
  test('says nothing of what it is told, whatever its provider does', { timeout: 600_000 }, async () => {
    const { caller, provider, service, traces, folder } = await startAlone();
    await caller.sendEverything();
    for (const mode of EMBEDDING_FAULTS) await askThrough(caller, provider, mode);
    for (const mode of CHAT_FAULTS) await rerankThrough(caller, provider, mode);
    for (const status of ECHO_STATUSES) {
      provider.setMode('echo', { status, times: 2 });
      provider.chat.setMode('echo', { status, times: 2 });
      await caller.addAndAsk(`echo ${status}`);
      await caller.idle();
    }
    await caller.sendDocuments();
    await caller.idle();
    await expectSilence({ caller, folder, traces, processes: [service] });
    expectHeard(provider);
  });

  test('says nothing while its reader dies and its file is locked', { timeout: 600_000 }, async () => {
    const { caller, service, traces, folder } = await startAlone({ OM_JOB_ATTEMPTS: '2' });
    await caller.addAndAsk('before');
    const killing = killParsers(service.pid, 3);
    await caller.sendDocuments();
    await caller.idle();
    expect(killing.stop()).toBeGreaterThan(0);
    const db = new Database(databaseFile(folder));
    db.exec('BEGIN IMMEDIATE');
    const locked = await caller.ask('POST', '/memory/add', { body: { content: canary('lockedcontent') } });
    db.exec('ROLLBACK');
    db.close();
    expect(locked.status).toBe(503);
    await expectSilence({ caller, folder, traces, processes: [service] });
  });

  test('says nothing while its disk is full', { timeout: 600_000 }, async (context) => {
    const folder = mountSmallDisk();
    if (folder === undefined) {
      console.warn('a small disk cannot be mounted here: the full disk is not tested');
      return context.skip();
    }
    onTestFinished(() => unmount(folder));
    const { caller, service, traces } = await startAlone({}, folder);
    await caller.addAndAsk('before');
    await caller.idle();
    fillDisk(path.join(folder, 'ballast'), 64 * 1024);
    const content = `${canary('content')} `.repeat(2_000);
    const replies = await Promise.all(
      Array.from({ length: 20 }, (_, n) => caller.ask('POST', '/memory/add', { body: { content: `${content}${n}` } })),
    );
    expect(replies.map(({ status }) => status)).toContain(507);
    await caller.sendDocuments();
    await expectSilence({ caller, folder, traces, processes: [service] });
  });

  test.each([
    ['gemini', { OM_GEMINI_BASE_URL: '/v1beta' }],
    ['ollama', { OLLAMA_URL: '' }],
    ['bedrock', { OM_BEDROCK_BASE_URL: '', AWS_REGION: 'eu-central-1' }],
  ])('says nothing of what %s repeats in its errors', { timeout: 600_000 }, async (name, paths) => {
    const provider = await startProvider();
    const isUrl = (setting: string) => setting.endsWith('_URL');
    const own = Object.entries(paths).map(
      ([key, value]) => [key, isUrl(key) ? provider.origin + value : value] as const,
    );
    const settings = { ...NO_FALLBACK, OM_EMBEDDINGS: name, ...Object.fromEntries(own) };
    const { caller, service, traces, folder } = await startAlone(settings);
    for (const mode of ['echo_page', 'echo_answer', 'truncated'] as const) await askThrough(caller, provider, mode);
    for (const status of [400, 401, 500]) {
      provider.setMode('echo', { status, times: 2 });
      await caller.addAndAsk(`echo ${status}`);
      await caller.idle();
    }
    await expectSilence({ caller, folder, traces, processes: [service] });
    expectHeard(provider);
  });

  test.each([
    ['a key that cannot be sent', { OPENAI_API_KEY: `${canary('providerkey')}\n\u20ac` }],
    ['credentials in the address of the provider', { OM_OPENAI_BASE_URL: `http://${canary('urluser')}:a@127.0.0.1:9` }],
    ['credentials in the address of the model', { OM_LLM_BASE_URL: `http://${canary('urluser')}:a@127.0.0.1:9` }],
    ['a password of a Redis that is not there', { REDIS_URL: `redis://:${canary('redispassword')}@127.0.0.1:9` }],
    ['an address of Redis that is none', { REDIS_URL: `${canary('redispassword')}:6379` }],
  ])('says nothing of %s', async (_what, settings) => {
    const folder = tempFolder();
    const provider = await startProvider();
    const service = spawnService({ folder, settings: { ...settingsFor(provider), ...settings } });
    const url = await service.ready.catch(() => undefined);
    if (url !== undefined) {
      const caller = createCanaryCaller(url);
      await caller.addAndAsk('an unusual setting');
      expect(findCanaries((await caller.ask('GET', '/embeddings/log')).text)).toEqual([]);
      expectNoEcho(caller);
    }
    await service.end('SIGTERM');
    expect(service.obituary).toMatch(/"msg":"ready"|wrong settings/);
    expect(findCanaries(service.obituary ?? '')).toEqual([]);
  });
});

describe.skipIf(!canStartRedis())('an API, a worker and a Redis', () => {
  test('say nothing of what they are told, and Redis is never told', { timeout: 600_000 }, async () => {
    const folder = tempFolder();
    const provider = await startProvider();
    const redis = (await startRedisServer())!;
    onTestFinished(() => redis.stop());
    const connection = redis.connect().on('error', () => {});
    onTestFinished(() => connection.disconnect());
    const commands = await listen(connection);
    const traces = await startOtlpReceiver();
    const start = async (command: 'api' | 'worker', port: string) =>
      startSilent({
        folder,
        command,
        settings: {
          ...settingsFor(provider),
          ...tracingTo(traces),
          REDIS_URL: redis.url,
          OM_METRICS_HOST: '127.0.0.1',
          [port]: String(await freePort()),
        },
      });
    const api = await start('api', 'OM_METRICS_PORT');
    const worker = await start('worker', 'OM_WORKER_METRICS_PORT');
    const caller = createCanaryCaller(await api.ready);

    await caller.sendEverything();
    for (const status of [400, 429, 500]) {
      provider.setMode('echo', { status, times: 2 });
      provider.chat.setMode('echo', { status, times: 2 });
      await caller.addAndAsk(`echo ${status}`);
      await caller.idle();
    }
    await caller.sendDocuments();
    await caller.idle();
    await redis.restart({ keepData: false });
    await caller.addAndAsk('after the flood');
    await caller.idle();

    expect(commands.heard.length).toBeGreaterThan(100);
    expect(findCanaries(commands.heard.join('\n'))).toEqual([]);
    expect(findCanaries(await readAll(connection))).toEqual([]);
    await expectSilence({ caller, folder, traces, processes: [api, worker] });
    expectHeard(provider);
  });
});

// ── What is started ──────────────────────────────────────────────────────────────────────────────────────────────────

async function startProvider(): Promise<FakeProvider> {
  const provider = await startFakeProvider({ dimensions: DIMENSIONS });
  onTestFinished(() => provider.close());
  return provider;
}

/** A provider and a language model, under keys that are canaries, and a log that says all it can. */
function settingsFor(provider: FakeProvider): Record<string, string> {
  return {
    ...SECRETS,
    OM_LOG_LEVEL: 'debug',
    OM_EMBEDDINGS: 'openai',
    OM_OPENAI_BASE_URL: provider.url,
    OM_EMBED_FALLBACK: provider.url,
    OM_EMBED_FALLBACK_KEY: canary('fallbackkey'),
    OM_VEC_DIM: String(DIMENSIONS),
    OM_EMBED_TIMEOUT_MS: '300',
    OM_LLM_MODEL: 'fake',
    OM_LLM_BASE_URL: provider.url,
    OM_LLM_TIMEOUT_MS: '300',
    OM_ENTITY_EXTRACTION: 'llm',
    OM_CONTRADICTIONS: 'llm',
    OM_REFLECTION: 'llm',
    OM_REFLECTION_MIN_MEMORIES: '2',
  };
}

async function startSilent(options: ServiceOptions): Promise<ServiceProcess> {
  const service = await startServiceProcess(options);
  onTestFinished(async () => void (await service.end('SIGKILL')));
  return service;
}

async function startAlone(settings: Readonly<Record<string, string>> = {}, folder = tempFolder()) {
  const provider = await startProvider();
  const metrics = { OM_METRICS_HOST: '127.0.0.1', OM_METRICS_PORT: String(await freePort()) };
  const traces = await startOtlpReceiver();
  const all = { ...settingsFor(provider), ...settings, ...metrics, ...tracingTo(traces) };
  const service = await startSilent({ folder, settings: all });
  return { caller: createCanaryCaller(await service.ready), provider, service, traces, folder };
}

function tracingTo({ url }: OtlpReceiver): Record<string, string> {
  return { OM_TRACING: 'otlp', OTEL_EXPORTER_OTLP_ENDPOINT: url };
}

// ── What goes wrong ──────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Queries do not wait for a provider that failed, so each fault takes no longer than itself; an answer keeps the
 * breaker closed.
 */
async function askThrough(caller: CanaryCaller, provider: FakeProvider, mode: FakeMode): Promise<void> {
  const query = (word: string) => ({ body: { query: `${canary('query')} ${mode} ${word}` } });
  provider.setMode(mode, { times: 2 });
  const reply = await caller.ask('POST', '/memory/query', query('meets a fault'));
  expect(reply.status).toBe(200);
  provider.setMode('ok');
  await caller.ask('POST', '/memory/query', query('is answered'));
}

async function rerankThrough(caller: CanaryCaller, provider: FakeProvider, mode: FakeChatMode): Promise<void> {
  provider.chat.setMode(mode, { times: 1 });
  const body = { query: `${canary('content')} ${mode}`, rerank: 'llm', min_score: 0 };
  const reply = await caller.ask('POST', '/memory/query', { body });
  expect(reply.status).toBe(200);
  provider.chat.setMode('ok');
}

/** Kills the next children that read documents, as the kernel does when memory is short. */
function killParsers(pid: number, most: number): { stop(): number } {
  let killed = 0;
  const timer = setInterval(() => {
    for (const child of childrenOf(pid).slice(0, most - killed)) {
      try {
        process.kill(child, 'SIGKILL');
        killed += 1;
      } catch {
        // It was gone already.
      }
    }
  }, 50);
  return {
    stop() {
      clearInterval(timer);
      return killed;
    },
  };
}

// ── What must not be heard ───────────────────────────────────────────────────────────────────────────────────────────

interface Heard {
  readonly caller: CanaryCaller;
  readonly folder: string;
  readonly traces: OtlpReceiver;
  readonly processes: readonly ServiceProcess[];
}

/** Reads all that the processes tell anybody but who said it, and ends them, as their last words count too. */
async function expectSilence({ caller, folder, traces, processes }: Heard): Promise<void> {
  const told = [
    await caller.ask('GET', '/embeddings/log?l=1000'),
    await caller.ask('GET', '/embeddings/stats'),
    await caller.ask('GET', '/jobs?l=1000'),
    await caller.ask('GET', '/metrics'),
    await caller.ask('GET', '/ready'),
    await caller.ask('GET', '/health'),
  ];
  for (const { asked, status, text } of told) {
    expect(status, asked).toBe(200);
    expect(findCanaries(text), asked).toEqual([]);
  }
  const letters = JSON.parse((await caller.ask('GET', '/documents?l=1000')).text) as { items: { error?: object }[] };
  expect(findCanaries(JSON.stringify(letters.items.map(({ error }) => error ?? null)))).toEqual([]);
  expectNoEcho(caller);

  for (const service of processes) {
    const ready = service.log.find(({ msg }) => msg === 'ready' || msg === 'worker_ready');
    const metrics = await (await fetch(String(ready?.['metrics']))).text();
    expect(metrics).toContain('cairn_step_duration_seconds');
    expect(findCanaries(metrics)).toEqual([]);
    for (const child of [service.pid, ...childrenOf(service.pid)]) {
      expect(findCanaries(readProcess(child, 'cmdline'))).toEqual([]);
      if (child !== service.pid) expect(findCanaries(readProcess(child, 'environ'))).toEqual([]);
    }
  }
  const files = fs.readdirSync(folder, { recursive: true, encoding: 'utf8' });
  expect(findCanaries(files.join('\n'))).toEqual([]);
  for (const service of processes) {
    await service.end('SIGTERM');
    expect(service.log.length).toBeGreaterThan(10);
    expect(findCanaries(service.obituary ?? '')).toEqual([]);
  }
  expect(traces.spans.length).toBeGreaterThan(10);
  expect(findCanaries(traces.text)).toEqual([]);
  // It was looked for where it was not, and is where it must be.
  const stored = files.filter((name) => name.startsWith('cairn.sqlite')).map((name) => path.join(folder, name));
  const bytes = stored.filter((file) => fs.existsSync(file)).map((file) => fs.readFileSync(file, 'latin1'));
  expect(findCanaries(bytes.join('\n'))).toContain('content');
}

/** No error repeats a value; names of fields and the type of a body may come back to whoever sent them. */
function expectNoEcho({ heard }: CanaryCaller): void {
  for (const { asked, status, text, headers } of heard) {
    expect(findCanaries(headers), asked).toEqual([]);
    if (status < 400) continue;
    const echoed = findCanaries(text).filter((place) => !ECHOED.includes(place));
    expect(echoed, `${asked}: ${text}`).toEqual([]);
  }
}

function expectHeard({ calls }: FakeProvider): void {
  const sent = calls.map(({ json, headers }) => json + JSON.stringify(headers)).join('\n');
  expect(findCanaries(sent)).toEqual(expect.arrayContaining(['content', 'query']));
}

/** Everything that is asked of Redis from now on. */
async function listen(redis: Redis): Promise<{ readonly heard: readonly string[] }> {
  const heard: string[] = [];
  const monitor = await redis.monitor();
  monitor.on('monitor', (_time: string, words: readonly string[]) => void heard.push(words.join(' ')));
  monitor.on('error', () => {});
  onTestFinished(() => monitor.disconnect());
  return { heard };
}

/** Every key with all it holds, whatever its type. */
async function readAll(redis: Redis): Promise<string> {
  const texts: string[] = [];
  for await (const keys of redis.scanStream({ count: 1_000 }) as AsyncIterable<string[]>) {
    for (const key of keys) texts.push(key, JSON.stringify(await readValue(redis, key)));
  }
  expect(texts.length).toBeGreaterThan(0);
  return texts.join('\n');
}

async function readValue(redis: Redis, key: string): Promise<unknown> {
  const type = await redis.type(key);
  switch (type) {
    case 'string':
      return redis.get(key);
    case 'hash':
      return redis.hgetall(key);
    case 'list':
      return redis.lrange(key, 0, -1);
    case 'set':
      return redis.smembers(key);
    case 'zset':
      return redis.zrange(key, '0', '-1');
    case 'stream':
      return redis.xrange(key, '-', '+');
    case 'none': // It ended meanwhile.
      return undefined;
    default:
      throw new Error(`a key of the type ${type}, which nobody reads`);
  }
}

/** Children and theirs. Only Linux says; elsewhere none are seen. */
function childrenOf(pid: number): number[] {
  if (process.platform !== 'linux') return [];
  const own = fs
    .readdirSync('/proc')
    .filter(
      (name) =>
        /^\d+$/.test(name) && / (?:\(.*\)) \S (\d+)/.exec(readProcess(Number(name), 'stat'))?.[1] === String(pid),
    )
    .map(Number);
  return own.flatMap((child) => [child, ...childrenOf(child)]);
}

/** '' for a process that is gone. */
function readProcess(pid: number, file: 'cmdline' | 'environ' | 'stat'): string {
  try {
    return fs.readFileSync(path.join('/proc', String(pid), file), 'latin1');
  } catch {
    return '';
  }
}

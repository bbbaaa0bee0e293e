import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { createQuestions, createTexts, startProcess, type Process } from '../../bench/load.ts';
import { settingsSchema } from '../../src/engine/config.ts';
import { PROFILES } from '../../src/engine/types.ts';
import { startFakeProvider, type FakeProvider } from './fake-provider.ts';
import { startPrometheus, type PrometheusServer } from './prometheus.ts';
import { freePort } from './free-port.ts';
import { startRedisServer } from './redis.ts';

const DIMENSIONS = 256;
const ADDS_A_ROUND = 6;
const QUERIES_A_ROUND = 12;
const BATCH = 4;
const BETWEEN_ROUNDS_MS = 750;
/** The provider refuses texts with this word permanently, so their jobs end as dead. */
const REFUSED = 'REFUSED';

/**
 * An API, a worker, a Redis and a provider, with a Prometheus that scrapes them, so that all panels of the dashboards
 * have data.
 */
export interface WatchedFleet {
  readonly prometheus: PrometheusServer;
  /** Makes the provider fail from now on. Returns a function that ends this. */
  breakProvider(): () => void;
  /** Time at which the first request was sent (Unix s). */
  readonly since: number;
  /** Sends traffic of all kinds for `seconds` seconds, or until `until` resolves to true. */
  work(options: { readonly seconds: number; readonly until?: () => Promise<boolean> }): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Starts the processes.
 * @returns undefined if there is no Redis
 */
export async function startWatchedFleet({
  everySeconds,
}: {
  readonly everySeconds: number;
}): Promise<WatchedFleet | undefined> {
  const redis = await startRedisServer();
  if (redis === undefined) return undefined;
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairn-watched-'));
  const provider = await startFakeProvider({ dimensions: DIMENSIONS });
  const repair = () => provider.setMode('refuse_text', { marker: REFUSED });
  repair();
  const [apiPort, workerPort] = [await freePort(), await freePort()];
  const shared = {
    // Every setting is given, so that neither this environment nor a developer's .env reaches the service.
    ...Object.fromEntries(Object.keys(settingsSchema.shape).map((name) => [name, ''])),
    OM_DB_PATH: path.join(folder, 'cairn.sqlite'),
    OM_PORT: '0',
    OM_METRICS_HOST: '127.0.0.1',
    OM_VEC_DIM: String(DIMENSIONS),
    OM_EMBEDDINGS: 'openai',
    OM_OPENAI_BASE_URL: provider.url,
    OM_EMBED_DELAY_MS: '20',
    OM_LLM_MODEL: 'gpt-4o-mini',
    OM_LLM_BASE_URL: provider.url,
    OM_ENTITY_EXTRACTION: 'llm',
    OM_DECAY_INTERVAL_MINUTES: '1',
    REDIS_URL: redis.url,
  };
  const processes: Process[] = [];
  const start = async (command: 'api' | 'worker', settings: Readonly<Record<string, string>>) => {
    const process = await startProcess(command, { ...shared, ...settings });
    processes.push(process);
    return process;
  };
  const stop = async () => {
    await Promise.all(processes.map((process) => process.stop()));
    await provider.close();
    await redis.stop();
    fs.rmSync(folder, { recursive: true, force: true });
  };
  try {
    const { url } = await start('api', { OM_METRICS_PORT: String(apiPort) });
    await start('worker', { OM_WORKER_METRICS_PORT: String(workerPort) });
    const targets = { 'cairn-api': [`127.0.0.1:${apiPort}`], 'cairn-worker': [`127.0.0.1:${workerPort}`] };
    const prometheus = await startPrometheus(targets, everySeconds);
    const traffic = createTraffic(url, provider);
    return {
      prometheus,
      breakProvider() {
        provider.setMode('status', { status: 503 });
        return repair;
      },
      since: Date.now() / 1000,
      async work({ seconds, until = async () => false }) {
        const end = performance.now() + seconds * 1000;
        while (performance.now() < end && !(await until())) {
          await traffic();
          await pause(BETWEEN_ROUNDS_MS);
        }
      },
      async stop() {
        await prometheus.stop();
        await stop();
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/**
 * Makes a function that sends one round of traffic: adds, a batch, a duplicate, queries with all profiles, documents,
 * reads, and requests that are refused.
 */
function createTraffic(url: string, provider: FakeProvider): () => Promise<void> {
  const nextText = cycle(createTexts(5_000));
  const nextQuestion = createQuestions();
  let round = 0;
  const send = async (method: string, route: string, body?: object) => {
    const response = await fetch(url + route, {
      method,
      ...(body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    });
    await response.arrayBuffer();
  };
  const add = (content: string) => send('POST', '/memory/add', { content, user_id: `user-${round % 4}` });
  const ask = (n: number) =>
    send('POST', '/memory/query', {
      query: nextQuestion(),
      user_id: `user-${n % 4}`,
      k: 8,
      profile: PROFILES[n % PROFILES.length],
      ...(n === 0 ? { rerank: 'llm' } : {}),
    });

  return async () => {
    round += 1;
    if (round % 12 === 0) provider.setMode('rate_limited', { times: 1, headers: { 'retry-after': '1' } });
    await Promise.all([
      ...Array.from({ length: ADDS_A_ROUND }, () => add(nextText())),
      ...Array.from({ length: QUERIES_A_ROUND }, (_, n) => ask(n)),
      add('a lamp that is lit at dusk'),
      send('POST', '/memory/add/batch', { items: Array.from({ length: BATCH }, () => ({ content: nextText() })) }),
      send('POST', '/memory/query', { query: 'zyzzogeton quinquireme', user_id: 'nobody' }),
      send('POST', '/memory/ingest', { text: Array.from({ length: 6 }, nextText).join('\n\n'), title: 'Notes' }),
      send('POST', '/memory/ingest', { data: `<h1>Page</h1><p>${nextText()}</p>`, content_type: 'html' }),
      send('GET', '/memory/all?l=20'),
      send('GET', '/memory/none-of-this-id'),
    ]);
    if (round % 10 === 1) {
      // A PDF by its first bytes alone.
      await add(`${REFUSED} ${nextText()}`);
      await send('POST', '/memory/ingest', {
        data: 'JVBERi0xLjcKYW5kIG5vdGhpbmcgdGhhdCBhIFBERiBoYXM=',
        encoding: 'base64',
        content_type: 'pdf',
      });
    }
  };
}

function cycle(texts: readonly string[]): () => string {
  let at = 0;
  return () => `${texts[at % texts.length]} ${Math.floor(at++ / texts.length) || ''}`.trim();
}

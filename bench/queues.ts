/**
 * An API, two workers and a Redis, each a separate process: `npm run measure -- queues [MEMORIES] [CONNECTIONS]`.
 * Prints one JSON line per figure, beside the baseline of the same run. `provider-rate.ts` measures the use of a
 * provider's limits.
 */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { startFakeProvider } from '../test/support/fake-provider.ts';
import { startRedisServer } from '../test/support/redis.ts';
import {
  askQuestions,
  cpuSeconds,
  createTexts,
  measureAdds,
  measureFloor,
  reportLatencies,
  residentMb,
  startProcess,
  untilIdle,
  type Process,
} from './load.ts';
import { RawClient } from './raw-client.ts';
import { percentile, report } from './report.ts';

const MEMORIES = Number(process.argv[2] ?? 20_000);
const CONNECTIONS = Number(process.argv[3] ?? 32);
const WORKERS = 2;
const QUERIES = 300;
/** Number of memories in one request of an import, as `cairn import` sends them. */
const IMPORT_BATCH = 100;
const PROVIDER_TEXTS = 6_400;
const PROVIDER_MS = 150;

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairn-bench-'));
const redis = await startRedisServer({ options: ['--appendfsync', 'everysec'] });
if (redis === undefined) throw new Error('redis-server is not on the PATH');
try {
  const texts = createTexts(MEMORIES);
  measureFloor(folder, texts, CONNECTIONS);
  await withFleet('bench', {}, async ({ api, workers }) => {
    await measureAdds(api.url, texts, CONNECTIONS);
    report('cpu_ms_per_memory', (1_000 * cpuSeconds(api.child)) / MEMORIES, { process: 'api' });
    for (const { child } of workers)
      report('cpu_ms_per_memory', (1_000 * cpuSeconds(child)) / MEMORIES, { process: 'worker' });
    await measureQueries(api.url);
    workers.forEach(({ child }, at) => report('rss_worker_mb', residentMb(child), { worker: at + 1 }));
    report('rss_api_mb', residentMb(api.child));
  });
  await measureProviderBatches();
} finally {
  await redis.stop();
  fs.rmSync(folder, { recursive: true, force: true });
}

interface Fleet {
  readonly api: Process;
  readonly workers: readonly Process[];
}

async function withFleet(
  name: string,
  more: Readonly<Record<string, string>>,
  work: (fleet: Fleet) => Promise<void>,
): Promise<void> {
  const settings = {
    OM_DB_PATH: path.join(folder, `${name}.sqlite`),
    OM_PORT: '0',
    OM_LOG_LEVEL: 'info',
    REDIS_URL: redis!.url,
    ...more,
  };
  const started: Process[] = [];
  try {
    const api = await startProcess('api', settings);
    started.push(api);
    for (let count = 0; count < WORKERS; count++) started.push(await startProcess('worker', settings));
    await work({ api, workers: started.slice(1) });
  } finally {
    for (const process of started) await process.stop();
  }
}

/** Measures the same questions on an idle service, and while another connection imports and the workers follow. */
async function measureQueries(url: string): Promise<void> {
  const idle = await askQuestions(url, (asked) => asked < QUERIES);
  reportLatencies('query_idle_p95_ms', idle);
  let importing = true;
  const imported = importTexts(url, createTexts(MEMORIES / 2, 7)).finally(() => (importing = false));
  const busy = await askQuestions(url, () => importing);
  await imported;
  const ratio = percentile(busy, 0.95) / percentile(idle, 0.95);
  reportLatencies('query_during_import_p95_ms', busy, { queries: busy.length, times_idle: ratio });
  await untilIdle(url);
}

async function importTexts(url: string, texts: readonly string[]): Promise<void> {
  const client = new RawClient(url);
  const started = performance.now();
  for (let at = 0; at < texts.length; at += IMPORT_BATCH) {
    const items = texts.slice(at, at + IMPORT_BATCH).map((content) => ({ content, user_id: 'bench' }));
    const { status, body } = await client.request('POST', '/memory/add/batch', JSON.stringify({ items }));
    if (status !== 202) throw new Error(`batch answered ${status}: ${body}`);
  }
  client.close();
  report('imported_per_s', (texts.length / (performance.now() - started)) * 1000, { batch: IMPORT_BATCH });
}

/** Measures the number of texts in a call of the provider while enough texts wait. */
async function measureProviderBatches(): Promise<void> {
  const provider = await startFakeProvider({ dimensions: 256 });
  provider.setMode('slow', { delayMs: PROVIDER_MS });
  const settings = {
    OM_EMBEDDINGS: 'openai',
    OM_OPENAI_BASE_URL: provider.url,
    OM_OPENAI_MODEL: 'fake',
    OM_VEC_DIM: '256',
  };
  try {
    await withFleet('provider', settings, async ({ api }) => {
      const started = performance.now();
      await importTexts(api.url, createTexts(PROVIDER_TEXTS, 11));
      await untilIdle(api.url);
      report('embedded_by_provider_per_s', (provider.texts / (performance.now() - started)) * 1000);
    });
    const sizes = provider.calls.map(({ texts }) => texts.length);
    const most = 64;
    report('provider_batch_fill', provider.texts / (sizes.length * most), {
      calls: sizes.length,
      p50: percentile(sizes, 0.5) / most,
      p05: percentile(sizes, 0.05) / most,
    });
  } finally {
    await provider.close();
  }
}

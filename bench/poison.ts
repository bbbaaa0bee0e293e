/**
 * Cost of one text that kills its worker for all other texts: `npm run measure -- poison [SECONDS] [PROVIDER_MS]`. Two
 * workers with a slow provider finish rows; rows a second are measured without such a text, and with one from its
 * arrival until it is a dead letter or the time is over. Each worker has its own provider, which reports who read the
 * text; that worker is killed and started again.
 */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { startFakeProvider } from '../test/support/fake-provider.ts';
import { startRedisServer } from '../test/support/redis.ts';
import { startProcess, type Process } from './load.ts';
import { createTextSource } from './natural-text.ts';
import { RawClient } from './raw-client.ts';
import { report } from './report.ts';

const SECONDS = Number(process.argv[2] ?? 240);
const PROVIDER_MS = Number(process.argv[3] ?? 500);
const WARM_UP_SECONDS = 8;
/** Duration of the measurement without such a text, s; its figure settles soon. */
const CALM_SECONDS = 30;
const WORKERS = 2;
const MARKER = 'unspeakable';
const IMPORT_BATCH = 100;
/** Number of waiting rows that is kept up, so that the workers are never idle. */
const BACKLOG = 3_000;

const redis = await startRedisServer({ options: ['--appendfsync', 'everysec'] });
if (redis === undefined) throw new Error('redis-server is not on the PATH');
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairn-bench-'));
try {
  await measure();
} finally {
  await redis.stop();
  fs.rmSync(folder, { recursive: true, force: true });
}

/**
 * Measures the workers without such a text and then with one, in one run, so that the load of the machine and the
 * number of stored memories are much the same for both.
 */
async function measure(): Promise<void> {
  const settings = {
    OM_DB_PATH: path.join(folder, 'bench.sqlite'),
    OM_PORT: '0',
    OM_LOG_LEVEL: 'info',
    OM_VEC_DIM: '256',
    REDIS_URL: redis!.url,
    OM_EMBEDDINGS: 'openai',
    OM_OPENAI_MODEL: 'fake',
    OM_OPENAI_BASE_URL: 'http://127.0.0.1:9',
  };
  const api = await startProcess('api', settings);
  const client = new RawClient(api.url);
  const counts = async () => (JSON.parse((await client.request('GET', '/jobs?l=1')).body) as { counts: Counts }).counts;
  const texts = createTextSource(1);
  const add = () => {
    const items = Array.from({ length: IMPORT_BATCH }, () => ({ content: texts.text(120), user_id: 'bench' }));
    return client.request('POST', '/memory/add/batch', JSON.stringify({ items }));
  };
  /** Keeps up the backlog until the time is over or `deadLetters` jobs are dead. */
  const work = async (seconds: number, deadLetters = Infinity) => {
    const begun = { at: performance.now(), done: (await counts()).done };
    for (;;) {
      const now = await counts();
      const ms = performance.now() - begun.at;
      if (ms >= seconds * 1_000 || now.dead >= deadLetters)
        return { perSecond: ((now.done - begun.done) / ms) * 1_000, seconds: ms / 1_000, dead: now.dead };
      for (let lacking = BACKLOG - now.queued; lacking > 0; lacking -= IMPORT_BATCH) await add();
      await pause(100);
    }
  };
  const workers = await Promise.all(Array.from({ length: WORKERS }, () => startMortalWorker(settings)));
  await work(WARM_UP_SECONDS);
  const before = await work(CALM_SECONDS);
  report('finished_per_s', before.perSecond, { seconds: before.seconds });
  await client.request('POST', '/memory/add', JSON.stringify({ content: MARKER, user_id: 'bench' }));
  const { perSecond, seconds, dead } = await work(SECONDS, 1);
  const crashes = workers.reduce((sum, worker) => sum + worker.crashes, 0);
  report('finished_per_s_with_a_poison_text', perSecond, { seconds, dead, crashes });
  // Adds become slower as the store grows, so the rate is measured before and after.
  const after = await work(CALM_SECONDS);
  report('finished_per_s_afterwards', after.perSecond, { seconds: after.seconds });
  const calm = (before.perSecond + after.perSecond) / 2;
  report('lost_to_a_poison_text', 1 - perSecond / calm, { provider_ms: PROVIDER_MS, workers: WORKERS });
  client.close();
  for (const worker of workers) await worker.stop();
  await api.stop();
}

interface Counts {
  readonly queued: number;
  readonly done: number;
  readonly dead: number;
}

interface MortalWorker {
  readonly crashes: number;
  stop(): Promise<void>;
}

async function startMortalWorker(settings: Readonly<Record<string, string>>): Promise<MortalWorker> {
  let crashes = 0;
  let isOver = false;
  let end: () => Promise<void> = async () => {};
  const start = async (): Promise<void> => {
    const provider = await startFakeProvider({ dimensions: 256 });
    provider.setMode('slow', { delayMs: PROVIDER_MS });
    const worker: Process = await startProcess('worker', { ...settings, OM_OPENAI_BASE_URL: provider.url });
    end = async () => {
      await worker.stop();
      await provider.close();
    };
    void (async () => {
      while (!isOver) {
        const { texts } = await provider.nextCall();
        if (!texts.some((text) => text.includes(MARKER))) continue;
        crashes++;
        worker.child.kill('SIGKILL');
        if (!isOver) await start();
        return;
      }
    })();
  };
  await start();
  return {
    get crashes() {
      return crashes;
    },
    async stop() {
      isOver = true;
      await end();
    },
  };
}

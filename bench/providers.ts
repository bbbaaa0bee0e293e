/**
 * Cost of the code between a memory and its provider: `npm run measure -- providers [MEMORIES]`. First the gatherer and
 * the limiter alone, with an embedder that costs nothing; then the whole service, whose provider is down while memories
 * are added and then returns.
 */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { readConfig } from '../src/engine/config.ts';
import { createMetrics } from '../src/engine/metrics.ts';
import { openLimitedEmbedder } from '../src/engine/providers/open-providers.ts';
import { systemClock, type Embedder } from '../src/engine/ports.ts';
import { startFakeProvider } from '../test/support/fake-provider.ts';
import { createTexts, startProcess } from './load.ts';
import { RawClient } from './raw-client.ts';
import { report } from './report.ts';

const MEMORIES = Number(process.argv[2] ?? 10_000);
const BATCH = 64;
const DIMENSIONS = 256;
const GATHERED = 64_000;
/** Number of texts in one call of the gatherer: the windows of a worker's batch of memories. */
const AT_ONCE = 256;
const IMPORT_BATCH = 100;

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairn-bench-'));
try {
  await measureGatherer();
  await measureRecovery();
} finally {
  fs.rmSync(folder, { recursive: true, force: true });
}

/** Measures the CPU time of this process per text, with all limits on and none reached. */
async function measureGatherer(): Promise<void> {
  const vector = new Float32Array(DIMENSIONS).fill(1 / Math.sqrt(DIMENSIONS));
  const headers = new Headers({
    'x-ratelimit-limit-tokens': '1000000000',
    'x-ratelimit-remaining-tokens': '999999999',
    'x-ratelimit-reset-tokens': '20ms',
  });
  const embedder: Embedder = {
    provider: 'bench',
    model: 'bench',
    dimensions: DIMENSIONS,
    encoding: 'float32',
    waypointThreshold: 0.75,
    isAnisotropic: true,
    vectorWeight: 0.5,
    cacheable: true,
    maxBatchTexts: 2_048,
    maxBatchTokens: 1e6,
    async embed(texts, { onReply }) {
      onReply?.({ headers, tokens: texts.length });
      return texts.map(() => vector);
    },
  };
  const config = readConfig({
    OM_DB_PATH: path.join(folder, 'gatherer.sqlite'),
    OM_EMBED_BATCH_TEXTS: String(BATCH),
    OM_EMBED_RPM: '1000000',
    OM_EMBED_TPM: '1000000000',
    OM_EMBED_LINGER_MS: '0',
  });
  let calls = 0;
  const options = { config, clock: systemClock, metrics: createMetrics(), onCall: () => void calls++ };
  const { gatherer, close } = openLimitedEmbedder(embedder, [], { ownLimits: false, sectors: null }, options);
  const texts = createTexts(GATHERED, 3).map((text, number) => `${number} ${text}`);
  const embedAll = async () => {
    for (let at = 0; at < texts.length; at += AT_ONCE)
      await gatherer.embedAll(texts.slice(at, at + AT_ONCE), 'document');
  };
  await embedAll();
  calls = 0;
  const started = performance.now();
  await embedAll();
  report('gatherer_and_limiter_us_per_text', ((performance.now() - started) * 1_000) / texts.length, {
    goal: 50,
    texts_per_call: texts.length / calls,
  });
  close();
}

/** Measures the time until all memories are embedded after the provider is back, and the number of calls. */
async function measureRecovery(): Promise<void> {
  const provider = await startFakeProvider({ dimensions: DIMENSIONS });
  const service = await startProcess('serve', {
    OM_DB_PATH: path.join(folder, 'recovery.sqlite'),
    OM_PORT: '0',
    OM_LOG_LEVEL: 'info',
    OM_EMBEDDINGS: 'openai',
    OM_OPENAI_BASE_URL: provider.url,
    OM_OPENAI_MODEL: 'fake',
    OM_VEC_DIM: String(DIMENSIONS),
    OM_EMBED_BATCH_TEXTS: String(BATCH),
  });
  const client = new RawClient(service.url);
  try {
    provider.setMode('status', { status: 500 });
    const texts = createTexts(MEMORIES, 11).map((text, number) => `${number} ${text}`);
    for (let at = 0; at < texts.length; at += IMPORT_BATCH) {
      const items = texts.slice(at, at + IMPORT_BATCH).map((content) => ({ content, user_id: 'bench' }));
      const { status, body } = await client.request('POST', '/memory/add/batch', JSON.stringify({ items }));
      if (status !== 202) throw new Error(`a batch was answered ${status}: ${body}`);
    }
    // Long enough for the longest pauses of the circuit breaker, which delay the recovery.
    await pause(60_000);
    const whileDown = provider.calls.length;
    report('calls_while_down', whileDown);
    provider.setMode('ok');
    const started = performance.now();
    for (let left = MEMORIES; left > 0; await pause(50)) {
      const { body } = await client.request('GET', '/jobs?l=1');
      const { done } = (JSON.parse(body) as { counts: { done: number } }).counts;
      left = MEMORIES - done;
    }
    const calls = provider.calls.slice(whileDown);
    const sent = calls.reduce((sum, call) => sum + call.texts.length, 0);
    const firstAfter = (calls[0]!.at - started) / 1_000;
    report('recovery_s', (performance.now() - started) / 1_000, {
      memories: MEMORIES,
      goal: 120,
      first_call_after_s: firstAfter,
    });
    report('provider_calls_per_1000_texts', (1_000 * calls.length) / sent, {
      goal: Math.ceil(1_000 / BATCH),
      calls: calls.length,
      texts: sent,
      least: Math.ceil(sent / BATCH),
    });
  } finally {
    client.close();
    await service.stop();
    await provider.close();
  }
}

/**
 * Share of a provider's rate limit that two processes use together when both always want more: `npm run measure --
 * provider-rate [RPM] [SECONDS]`. It runs in real time, and the provider counts requests on arrival.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { readConfig } from '../src/engine/config.ts';
import { isEngineError } from '../src/engine/errors.ts';
import { createMetrics } from '../src/engine/metrics.ts';
import { openParts } from '../src/engine/parts/engine-parts.ts';
import { systemClock } from '../src/engine/ports.ts';
import { startFakeProvider } from '../test/support/fake-provider.ts';
import { report } from './report.ts';

const RPM = Number(process.argv[2] ?? 600);
const SECONDS = Number(process.argv[3] ?? 135);
const PROCESSES = 2;
const CALLERS = 5;
const TEXTS = 64;
const MINUTE_MS = 60_000;

if (process.send === undefined) await measure();
else await embedWithoutEnd();

async function measure(): Promise<void> {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairn-bench-'));
  const provider = await startFakeProvider({ dimensions: 256 });
  const settings = {
    OM_DB_PATH: path.join(folder, 'bench.sqlite'),
    OM_EMBEDDINGS: 'openai',
    OM_OPENAI_BASE_URL: provider.url,
    OM_OPENAI_MODEL: 'fake',
    OM_VEC_DIM: '256',
    OM_EMBED_RPM: String(RPM),
  };
  const children = Array.from({ length: PROCESSES }, () =>
    fork(fileURLToPath(import.meta.url), { env: { ...process.env, ...settings }, execArgv: [] }),
  );
  await new Promise((resolve) => setTimeout(resolve, SECONDS * 1_000));
  for (const child of children) {
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }
  const times = provider.calls.map(({ at }) => at);
  const fill = provider.texts / (times.length * TEXTS);
  await provider.close();
  fs.rmSync(folder, { recursive: true, force: true });

  let most = 0;
  for (let first = 0, end = 0; first < times.length; first++) {
    while (end < times.length && times[end]! < times[first]! + MINUTE_MS) end++;
    most = Math.max(most, end - first);
  }
  // The allowance of a minute may be used at once, so only whole rounds are counted.
  const begun = times[0]!;
  const gaps = times.slice(1).map((at, index) => ({ index: index + 1, ms: at - times[index]! }));
  const lastRound = gaps.filter(({ ms }) => ms > MINUTE_MS / 4).at(-1);
  const end = lastRound?.index ?? times.length - 1;
  const perMinute = (end / (times[end]! - begun)) * MINUTE_MS;
  report('provider_calls_most_in_a_minute', most, { allowed: RPM, calls: times.length });
  report('provider_rate_used', perMinute / RPM, { calls_per_minute: perMinute, batch_fill: fill });
}

/** Runs one of the processes: each of its callers asks for another full batch as soon as it has one. */
async function embedWithoutEnd(): Promise<void> {
  const { gatherer } = openParts({
    config: readConfig(process.env),
    clock: systemClock,
    metrics: createMetrics(),
    role: 'worker',
    onCall: () => {},
  });
  let text = 0;
  const embedForEver = async () => {
    for (;;) {
      const texts = Array.from({ length: TEXTS }, () => `note ${process.pid} ${text++}`);
      try {
        await gatherer!.embedAll(texts, 'document');
      } catch (error) {
        if (!isEngineError(error)) throw error;
        await new Promise((resolve) => setTimeout(resolve, error.retryAfterMs ?? 100));
      }
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, embedForEver));
}

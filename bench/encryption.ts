/**
 * Measures what encryption costs: durable adds, and queries with warm and cold caches, in clear and with each
 * cipher, in one run: `npm run measure -- encryption [MEMORIES]`. The order changes with each of three rounds, and the
 * median counts. Processor time is measured, too, as it says something on a busy machine as well.
 */
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { readConfig } from '../src/engine/config.ts';
import type { Engine } from '../src/engine/engine.ts';
import { CIPHERS } from '../src/engine/find-file-key.ts';
import { openEngine } from '../src/engine/open-engine.ts';
import { newMemory } from '../test/support/new-memory.ts';

const MEMORIES = Number(process.argv[2] ?? 5_000);
const ROUNDS = 3;
const GROUP = 50;
const QUERIES = 200;
const WORDS = Array.from({ length: 4_000 }, (_, no) => `w${no.toString(36)}x${((no * 7919) % 4_000).toString(36)}`);
const FORMS = ['clear', ...CIPHERS] as const;
type Form = (typeof FORMS)[number];

const sentence = (no: number) => Array.from({ length: 20 }, (_, at) => WORDS[(no * 131 + at * at * 17) % WORDS.length]);

const taken = new Map<Form, Record<string, number>[]>(FORMS.map((form) => [form, []]));
for (let round = 0; round < ROUNDS; round++) {
  for (const form of [...FORMS.slice(round), ...FORMS.slice(0, round)]) taken.get(form)!.push(await measure(form));
}
for (const [form, rounds] of taken) {
  const names = Object.keys(rounds[0]!);
  const median = (name: string) => rounds.map((one) => one[name]!).sort((a, b) => a - b)[Math.floor(ROUNDS / 2)]!;
  console.log(JSON.stringify({ form, ...Object.fromEntries(names.map((name) => [name, +median(name).toFixed(2)])) }));
}

async function measure(form: Form): Promise<Record<string, number>> {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairn-bench-'));
  const key =
    form === 'clear' ? {} : { OM_ENCRYPTION_KEY: randomBytes(32).toString('hex'), OM_ENCRYPTION_CIPHER: form };
  const config = readConfig({
    OM_DB_PATH: path.join(folder, 'cairn.sqlite'),
    OM_LOG_LEVEL: 'silent',
    OM_EMBEDDINGS: 'none',
    OM_QUERY_THREADS: '0',
    ...key,
  });
  try {
    const engine = await openEngine({ config });
    const adds = await timed(() => add(engine)).finally(() => engine.close());
    const opened = performance.now();
    const again = await openEngine({ config });
    const openMs = performance.now() - opened;
    const cold = await timed(() => ask(again));
    const hot = await timed(() => ask(again)).finally(() => again.close());
    return {
      addsPerSecond: (1000 * MEMORIES) / adds.ms,
      addCpuMs: adds.cpuMs / MEMORIES,
      openMs,
      ...{ coldMs: cold.ms / QUERIES, coldCpuMs: cold.cpuMs / QUERIES },
      ...{ hotMs: hot.ms / QUERIES, hotCpuMs: hot.cpuMs / QUERIES },
      megabytes: fs.statSync(config.paths.defaultTenant).size / 1e6,
    };
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
}

/** Measures the time of some work, and the processor time that this process took meanwhile, all threads together. */
async function timed(work: () => Promise<void>): Promise<{ readonly ms: number; readonly cpuMs: number }> {
  const [started, before] = [performance.now(), process.cpuUsage()];
  await work();
  const { user, system } = process.cpuUsage(before);
  return { ms: performance.now() - started, cpuMs: (user + system) / 1000 };
}

async function add(engine: Engine): Promise<void> {
  const tenant = await engine.tenant('default');
  for (let no = 0; no < MEMORIES; no += GROUP) {
    const memories = Array.from({ length: GROUP }, (_, at) => newMemory({ content: sentence(no + at).join(' ') }));
    await tenant.addMemories(memories);
  }
}

/** Asks the same questions in every round. */
async function ask(engine: Engine): Promise<void> {
  const tenant = await engine.tenant('default');
  for (let no = 0; no < QUERIES; no++) {
    await tenant.query({
      query: sentence(no * 13)
        .slice(0, 3)
        .join(' '),
      k: 10,
      filter: {},
      reinforce: false,
    });
  }
}

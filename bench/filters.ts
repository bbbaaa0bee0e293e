/**
 * Measures filters where they cost most: `npm run measure -- filters [LARGE]`. 20,000 ordinary memories, LARGE (3,000)
 * with 15 kB of metadata each and 5,000 with 64 tags each are searched, explained, listed and deleted by conditions
 * that fail at the last moment. Everything runs in this process, so that its CPU time is that of the request. Prints
 * one JSON line per figure.
 */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { openEngine } from '../src/engine/open-engine.ts';
import { readConfig } from '../src/engine/config.ts';
import type { Tenant } from '../src/engine/engine.ts';
import { silentLogger } from '../src/engine/ports.ts';
import type { MemoryFilter, MemoryQuery } from '../src/engine/types.ts';
import { newMemory } from '../test/support/new-memory.ts';
import { report } from './report.ts';

const ORDINARY = 20_000;
const TAGGED = 5_000;
const BATCH = 100;
const TAGS = Array.from({ length: 64 }, (_, at) => `a tag of some length ${at}`);
const KEYS = Array.from({ length: 31 }, (_, at) => `zz${at}`);
const HUNDRED = Array.from({ length: 100 }, (_, at) => at);

/** 15 kB in a thousand keys: the most that a row may cost to parse. */
const METADATA = Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`key${at}`, at * 7919]));

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairn-filters-'));
const config = readConfig({
  OM_DB_PATH: path.join(folder, 'cairn.sqlite'),
  OM_QUERY_THREADS: '0',
  OM_EMBEDDINGS: 'none',
  OM_MAX_BACKLOG: '1000000',
});
const engine = await openEngine({ config, logger: silentLogger });
try {
  const tenant = await engine.tenant('default');
  await add(tenant, ORDINARY, (at) => newMemory({ content: `memory user deploy of an ordinary kind ${at}` }));
  const [first] = await tenant.listMemories({}, { limit: 1, offset: 0 });
  await add(tenant, Number(process.argv[2] ?? 3_000), (at) =>
    newMemory({ content: `memory user deploy ${at}`, metadata: METADATA }),
  );
  await add(tenant, TAGGED, (at) => newMemory({ content: `memory user deploy tagged ${at}`, tags: TAGS }));

  const none = [...TAGS.slice(1), 'no such tag'];
  const missing = Object.fromEntries(KEYS.map((key) => [key, { $nin: HUNDRED }]));
  const filters: readonly (readonly [name: string, filter: MemoryFilter])[] = [
    ['one_key', { metadata: { nope: 'never' } }],
    ['32_keys_not_in', { metadata: { ...missing, nope: 'never' } }],
    ['32_keys_missing', { metadata: { ...Object.fromEntries(KEYS.map((key) => [key, { $exists: false }])), nope: 1 } }],
    ['64_tags', { tags: none }],
  ];
  for (const [name, filter] of filters) {
    const query: MemoryQuery = { query: 'memory user deploy', k: 200, minScore: 0, filter };
    await measured(`query_by_${name}_cpu_ms`, async () => {
      const { degradedReasons } = await tenant.query(query);
      return { degraded: degradedReasons.join(' ') };
    });
    await measured(`explain_by_${name}_cpu_ms`, async () => {
      const { degradedReasons, notTried } = await tenant.explain(query, first!.id);
      return { degraded: degradedReasons.join(' '), 'not-tried': notTried.join(' ') };
    });
    await measured(`list_by_${name}_cpu_ms`, async () => ({
      found: (await tenant.listMemories(filter, { limit: 10, offset: 0 })).length,
    }));
  }
  await measured('delete_by_64_tags_cpu_ms', async () => {
    const { memories } = await tenant.deleteMemories({ tags: none });
    return { memories };
  });
} finally {
  await engine.close();
  fs.rmSync(folder, { recursive: true });
}

async function add(tenant: Tenant, count: number, make: (at: number) => ReturnType<typeof newMemory>): Promise<void> {
  for (let at = 0; at < count; at += BATCH) {
    await tenant.addMemories(Array.from({ length: Math.min(BATCH, count - at) }, (_, place) => make(at + place)));
  }
}

async function measured(figure: string, work: () => Promise<Readonly<Record<string, number | string>>>): Promise<void> {
  const startedAt = performance.now();
  const before = process.cpuUsage();
  const more = await work();
  const { user, system } = process.cpuUsage(before);
  report(figure, (user + system) / 1_000, { 'wall-ms': performance.now() - startedAt, ...more });
}

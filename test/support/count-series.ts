import { expect, onTestFinished, vi } from 'vitest';
import { ROUTES } from '../../src/api/routes.ts';
import { readConfig } from '../../src/engine/config.ts';
import { openControlDatabase } from '../../src/engine/control/open-control-database.ts';
import { systemClock } from '../../src/engine/ports.ts';
import { PROFILES } from '../../src/engine/types.ts';
import { canary, findCanaries } from './canaries.ts';
import { CANARY_KEY, createCanaryCaller } from './canary-traffic.ts';
import { startFakeProvider, type FakeMode } from './fake-provider.ts';
import { startRedisServer } from './redis.ts';
import { databaseFile, startServiceProcess } from './running-service.ts';
import { tempFolder } from './temp-folder.ts';

const FEW = 8;
const AT_ONCE = 4;
const DIMENSIONS = 256;

export interface SeriesCount {
  /**
   * Number of series after calls of every route, with every format and every provider fault, and with traffic of a few
   * tenants.
   */
  readonly few: number;
  /** Number of series after traffic of all tenants. */
  readonly many: number;
  /** Number of series of each metric at the end, the largest number first. */
  readonly byMetric: readonly (readonly [metric: string, series: number])[];
  /** Canaries (words put into tenants, users, queries and contents) that the metrics contain. It must be empty. */
  readonly canaries: readonly string[];
}

/**
 * Counts the metric series of a process that does everything: it serves the API, runs jobs, uses Redis queues if there
 * is a Redis, embeds with a provider, asks a language model and reads documents. Each of these has also failed before
 * the series are counted.
 */
export async function countSeries(tenants: number): Promise<SeriesCount> {
  const folder = tempFolder();
  const provider = await startFakeProvider({ dimensions: DIMENSIONS });
  onTestFinished(() => provider.close());
  const redis = await startRedisServer();
  onTestFinished(() => redis?.stop());
  const keys = makeTenants(folder, tenants);
  const service = await startServiceProcess({
    folder,
    settings: {
      OM_API_KEY: CANARY_KEY,
      OM_EMBEDDINGS: 'openai',
      OM_OPENAI_BASE_URL: provider.url,
      OM_VEC_DIM: String(DIMENSIONS),
      OM_EMBED_TIMEOUT_MS: '300',
      OM_EMBED_DELAY_MS: '1',
      OM_LLM_MODEL: 'fake',
      OM_LLM_BASE_URL: provider.url,
      OM_ENTITY_EXTRACTION: 'llm',
      OM_CONTRADICTIONS: 'llm',
      OM_REFLECTION: 'llm',
      OM_REFLECTION_MIN_MEMORIES: '2',
      ...(redis === undefined ? {} : { REDIS_URL: redis.url }),
    },
  });
  onTestFinished(async () => void (await service.end('SIGKILL')));
  const caller = createCanaryCaller(await service.ready);
  const scrape = async () => (await caller.ask('GET', '/metrics')).text;

  const visit = async (key: string) => {
    const ask = async (method: string, route: string, body?: object) =>
      (await caller.ask(method, route, { headers: { 'x-api-key': key }, ...(body && { body }) })).status;
    const memory = { content: `${canary('content')} at dusk`, user_id: canary('userid'), tags: [canary('tag')] };
    expect(await ask('POST', '/memory/add', memory)).toBe(202);
    expect(await ask('POST', '/memory/query', { query: canary('query') })).toBe(200);
    expect(await ask('GET', `/memory/${canary('pathid')}`)).toBe(404);
  };
  const visitAll = async (visited: readonly string[]) => {
    for (let at = 0; at < visited.length; at += AT_ONCE) await Promise.all(visited.slice(at, at + AT_ONCE).map(visit));
  };

  await caller.sendEverything();
  await caller.sendDocuments();
  for (const { method, path } of ROUTES) {
    const route = path.replaceAll(/:\w+/g, canary('pathid'));
    await caller.ask(method.toUpperCase(), route, { headers: { 'x-api-key': canary('wrongkey') } });
  }
  for (const profile of PROFILES) await caller.ask('POST', '/memory/query', { body: { query: 'dusk', profile } });
  for (const fault of ['rate_limited', 'status', 'echo'] as const satisfies readonly FakeMode[]) {
    provider.setMode(fault, { times: 2 });
    provider.chat.setMode(fault, { times: 2 });
    await caller.addAndAsk(fault);
    await caller.idle();
  }
  await visitAll(keys.slice(0, FEW));
  await caller.idle();
  const few = countSamples(await scrape());
  await visitAll(keys.slice(FEW));
  const text = await vi.waitFor(async () => {
    const latest = await scrape();
    expect(latest).toMatch(new RegExp(`^cairn_tenants ${tenants + 1}$`, 'm'));
    return latest;
  }, 120_000);
  return { few, many: countSamples(text), byMetric: countByMetric(text), canaries: findCanaries(text) };
}

/**
 * Creates tenants whose names are canaries.
 * @returns a key for each tenant
 */
function makeTenants(folder: string, tenants: number): string[] {
  const control = openControlDatabase(readConfig({ OM_DB_PATH: databaseFile(folder) }), systemClock);
  try {
    return Array.from({ length: tenants }, (_, number) => {
      const tenantId = canary(`tenant${number}`);
      control.createTenant(tenantId);
      return control.createKey({ tenantId, role: 'write' }).secret;
    });
  } finally {
    control.close();
  }
}

function samplesOf(text: string): string[] {
  return text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
}

function countSamples(text: string): number {
  return samplesOf(text).length;
}

function countByMetric(text: string): SeriesCount['byMetric'] {
  const counts = new Map<string, number>();
  for (const line of samplesOf(text)) {
    const metric = /^\w+/.exec(line)![0].replace(/_(?:bucket|sum|count)$/, '');
    counts.set(metric, (counts.get(metric) ?? 0) + 1);
  }
  return [...counts].sort(([, a], [, b]) => b - a);
}

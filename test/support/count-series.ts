import { expect, vi } from 'vitest';
import { ROUTES } from '../../src/api/app.ts';
import { startApi } from './start-api.ts';
import { tempFolder } from './temp-folder.ts';

const FEW = 8;
const AT_ONCE = 4;

export interface SeriesCount {
  readonly few: number;
  readonly many: number;
  /** All that is served in the end. */
  readonly text: string;
}

/** How many series are served after every route was asked and a few tenants had traffic, and how many once all had. */
export async function countSeries(tenants: number): Promise<SeriesCount> {
  await using api = await startApi({ folder: tempFolder(), workers: true });
  const { control, metrics } = api.engine;
  metrics.watchProcess('0.0.0');
  const scrape = async () => (await api.request('GET', '/metrics')).text;

  const visit = async (tenant: string) => {
    control.createTenant(tenant);
    const key = control.createKey({ tenantId: tenant, role: 'write' }).secret;
    const ask = async (method: string, route: string, body?: object) =>
      (await api.request(method, route, { key, ...(body === undefined ? {} : { body }) })).status;
    const content = `canary of ${tenant}, whose lamp is lit at dusk`;
    const memory = { content, user_id: `user-${tenant}`, tags: [tenant] };
    expect(await ask('POST', '/memory/add', memory)).toBe(202);
    expect(await ask('POST', '/memory/query', { query: `canary ${tenant}` })).toBe(200);
    expect(await ask('GET', `/memory/${tenant}`)).toBe(404);
  };
  const visitAll = async (from: number, to: number) => {
    for (let n = from; n < to; n += AT_ONCE)
      await Promise.all(Array.from({ length: Math.min(AT_ONCE, to - n) }, (_, at) => visit(`tenant-${n + at}`)));
  };
  const askEveryRoute = async () => {
    for (const { method, path } of ROUTES) {
      const target = path.replaceAll(/:\w+/g, 'canary-id');
      await api.request(method.toUpperCase(), target, { key: null });
      await api.request(method.toUpperCase(), target, method === 'get' ? {} : { body: {} });
    }
  };

  await visitAll(0, FEW);
  await askEveryRoute();
  const few = countSamples(await scrape());
  await visitAll(FEW, tenants);
  const text = await vi.waitFor(async () => {
    const latest = await scrape();
    expect(latest).toMatch(new RegExp(`^cairn_tenants ${tenants + 1}$`, 'm'));
    return latest;
  }, 60_000);
  return { few, many: countSamples(text), text };
}

function countSamples(text: string): number {
  return text.split('\n').filter((line) => line !== '' && !line.startsWith('#')).length;
}

/** Whatever tenants, users, queries and contents bring in. */
export const CANARIES = /canary|tenant-|user-|lamp/;

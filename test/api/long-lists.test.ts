import { afterAll, beforeAll, expect, test } from 'vitest';
import { MAX_REPLY_BYTES } from '../../src/api/json-reply.ts';
import { createClient } from '../../src/client/index.ts';
import { ADMIN_KEY, startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** Lists of standing queries, webhooks and jobs, whose pages have up to 1,000 entries with long texts. */

const QUERIES = 240;
const HOOKS = 100;

let api: TestApi;

beforeAll(async () => {
  const settings = { OM_EMBEDDINGS: 'none', OM_WEBHOOK_ALLOW: '127.0.0.1' };
  api = await startApi({ folder: tempFolder(), settings });
  const tenant = await api.engine.tenant('default');
  // Each control character takes six bytes of JSON.
  for (let no = 0; no < QUERIES; no++)
    await tenant.createStandingQuery({ query: `q${no} ${'\u0001'.repeat(8_000)}`, filter: {}, given: {} });
  for (let no = 0; no < HOOKS; no++)
    await tenant.createWebhook({ url: `http://127.0.0.1:9/${no}?${'x'.repeat(2_000)}`, kinds: [] });
  for (let at = 0; at < 3; at++)
    await api.request('POST', '/memory/add/batch', {
      body: { items: Array.from({ length: 100 }, (_, no) => ({ content: `common word ${at} ${no}` })) },
    });
});
afterAll(() => api.stop());

const get = (path: string) => api.request('GET', path);

test('a page of standing queries ends early where it has 8 MiB, says so, and goes on at `next`', async () => {
  const first = await get('/standing?l=1000');
  expect(first.text.length).toBeLessThan(MAX_REPLY_BYTES + 1_000);
  expect(first.body).toMatchObject({ truncated: true, total: QUERIES, next: first.body.items.length });
  const second = await get(`/standing?l=1000&u=${String(first.body['next'])}`);
  expect(second.body).not.toHaveProperty('truncated');
  expect(second.body).not.toHaveProperty('next');
  const ids = [...first.body.items, ...second.body.items].map(({ id }) => id);
  expect(new Set(ids).size).toBe(QUERIES);
  const walked: string[] = [];
  for await (const { id } of createClient({ url: api.url, key: ADMIN_KEY }).listStandingQueries({ l: 1_000 }))
    walked.push(id);
  expect(walked).toEqual(ids);
});

test.each(['/standing?l=1000', '/webhooks?l=1000', '/jobs?l=1000'])('%s is sent in several pieces', async (path) => {
  const { status, headers } = await get(path);
  expect([status, headers.get('transfer-encoding')]).toEqual([200, 'chunked']);
});

test.each([
  ['/webhooks', HOOKS],
  ['/jobs', 300],
])('a page of %s names the next one, and the last one none', async (path, total) => {
  expect((await get(`${path}?l=60`)).body).toMatchObject({ total, next: 60 });
  expect((await get(`${path}?l=60&u=${total - 60}`)).body).not.toHaveProperty('next');
});

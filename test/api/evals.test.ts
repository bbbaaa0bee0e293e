import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { DAY_MS } from '../../src/engine/dynamics.ts';
import { createManualClock } from '../support/engine-fixture.ts';
import { startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

let api: TestApi;
let flight: string;

beforeAll(async () => {
  api = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none' } });
  flight = (await api.add({ content: 'The flight to Lisbon leaves on June 3rd.', user_id: 'ana' })).id;
  await api.add({ content: 'The hotel in Lisbon is called Miradouro.', user_id: 'ana' });
  await api.add({ content: 'The dentist asks for a new appointment.', user_id: 'ben' });
});
afterAll(() => api.stop());

const put = (set: object) => api.request('POST', '/evals', { body: set });
const run = async (name: string) => (await api.request('POST', `/evals/${name}/run`)).body.run as Run;
interface Run {
  readonly recall: number;
  readonly precision: number;
  readonly rightly_empty: number;
  readonly forbidden: number;
  readonly items: number;
  readonly changed: readonly string[];
}

const TRAVEL = {
  name: 'travel',
  items: [
    { query: 'when does the flight leave?', user_id: 'ana', k: 1, expected: ['FLIGHT', 'JUNE 3RD', 'hotel'] },
    { query: 'flight', user_id: 'ana', expected: ['lisbon leaves'], forbidden: ['dentist', 'lísbon'] },
    { query: 'zebra', user_id: 'ana', expected: [] },
    { query: 'dentist', expected: [] },
  ],
};
const travel = () => JSON.parse(JSON.stringify(TRAVEL).replace('FLIGHT', flight)) as typeof TRAVEL;

describe('a set', () => {
  test('is measured by ids and by folded words, by empty answers and by forbidden hits, and reinforces nothing', async () => {
    expect((await put(travel())).body).toMatchObject({ name: 'travel', guard: false, items: 4, last_run: null });
    const before = (await api.request('GET', `/memory/${flight}`)).body.salience;
    const { body } = await api.request('POST', '/evals/travel/run');
    // Of three entries the first item finds the id and the words; the hotel is no hit with k 1.
    expect(body.run).toMatchObject({
      items: 4,
      recall: expect.closeTo(5 / 6, 6) as number,
      rightly_empty: 0.5,
      forbidden: 1,
      changed: [],
    });
    expect(body.items).toMatchObject([
      { place: 0, hits: [flight], missing: ['hotel'] },
      { missing: [], forbidden: ['lísbon'] },
      { hits: [] },
      { missing: [] },
    ]);
    expect((await api.request('GET', `/memory/${flight}`)).body.salience).toBeCloseTo(before, 5);
  });

  test('keeps its runs, each with what changed before it', async () => {
    await put({ name: 'history', items: [{ query: 'flight', user_id: 'ana', expected: ['flight'] }] });
    await run('history');
    expect((await run('history')).changed).toEqual([]);
    await api.request('PUT', '/settings/retrieval', { body: { min_score: 0.01 } });
    expect((await run('history')).changed).toEqual(['settings']);
    await put({ name: 'history', items: [{ query: 'hotel', user_id: 'ana', expected: ['hotel'] }] });
    await api.request('PUT', '/settings/retrieval', { body: {} });
    expect((await run('history')).changed).toEqual(['settings', 'items']);
    const { items } = (await api.request('GET', '/evals/history/runs')).body as unknown as { items: readonly Run[] };
    expect(items.map(({ changed }) => changed)).toEqual([['settings', 'items'], ['settings'], [], []]);
    expect((await api.request('GET', '/evals/history')).body).toMatchObject({ items: [{ query: 'hotel' }] });
    expect((await api.request('DELETE', '/evals/history')).body).toEqual({ deleted: true });
    for (const path of ['/evals/history', '/evals/history/runs'])
      expect((await api.request('GET', path)).status, path).toBe(404);
  });

  test.each([
    [{ name: 'a b', items: [] }, /letters, digits/],
    [{ name: 'a', items: [] }, /at least one item/],
    [{ name: 'a', items: [{ query: 'x', expected: ['?!'] }] }, /an id or words/],
    [{ name: 'a', items: Array.from({ length: 501 }, () => ({ query: 'x', expected: [] })) }, /at most 500 items/],
  ])('is refused where it makes no sense (%#)', async (set, problem) => {
    const reply = await put(set);
    expect([reply.status, reply.text]).toEqual([400, expect.stringMatching(problem)]);
  });

  test('that was only about a user who is erased has no items left, is exported, and comes back so', async () => {
    await using other = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none' }, threads: false });
    const item = { query: 'ferry', user_id: 'zoe', expected: ['ferry'] };
    await other.request('POST', '/evals', { body: { name: 'ferries', items: [item] } });
    await other.request('DELETE', '/users/zoe/memories');
    const empty = { name: 'ferries', guard: false, items: [] };
    expect((await other.request('GET', '/evals/ferries')).body).toEqual(empty);
    expect((await other.request('POST', '/evals/ferries/run')).status).toBe(200);
    const line = (await other.request('GET', '/export')).text.split('\n').find((text) => text.includes('"eval_set"'));
    await other.request('DELETE', '/evals/ferries');
    const headers = { 'content-type': 'application/x-ndjson' };
    const { text } = await other.request('POST', '/import', { body: line, headers });
    expect(text).toContain('"stored":{"eval_set":1}');
    expect((await other.request('GET', '/evals/ferries')).body).toEqual(empty);
  });

  test('loses its items about a user who is erased, and keeps the others', async () => {
    await put({
      name: 'people',
      items: [
        { query: 'dentist', user_id: 'cem', expected: ['dentist of cem'] },
        { query: 'dentist', expected: ['dentist'] },
      ],
    });
    await api.add({ content: 'The dentist of Cem.', user_id: 'cem', tags: ['teeth'] });
    await api.request('DELETE', '/memory', { body: { user_id: 'cem', tags: ['other'] } });
    expect((await api.request('GET', '/evals/people')).text).toContain('dentist of cem');
    await api.request('DELETE', '/users/cem/memories');
    const left = await api.request('GET', '/evals/people');
    expect(left.body.items).toHaveLength(1);
    expect(left.text).not.toContain('cem');
  });
});

test('a guarded set refuses defaults that lower it, with the numbers, unless they are forced', async () => {
  await put({
    name: 'guarded',
    guard: true,
    items: [{ query: 'flight Lisbon', user_id: 'ana', expected: ['flight', 'hotel'] }],
  });
  const set = (body: object, path = '/settings/retrieval') => api.request('PUT', path, { body });
  expect((await set({ min_score: 0 })).status).toBe(200);
  const refused = await set({ min_score: 1 });
  expect([refused.status, refused.body.detail]).toEqual([
    409,
    'the guarded set "guarded" would fall: recall 1.000 → 0.500; nothing is changed without force=true',
  ]);
  expect((await api.request('GET', '/settings/retrieval')).body).toEqual({ min_score: 0 });
  expect((await set({ min_score: 1 }, '/settings/retrieval?force=true')).status).toBe(200);
  expect((await api.request('GET', '/settings/retrieval')).body).toEqual({ min_score: 1 });
  expect((await set({})).status).toBe(200);
});

test('a guarded set refuses defaults that bring a forbidden hit', async () => {
  await api.request('PUT', '/settings/retrieval?force=true', { body: { min_score: 1 } });
  const item = { query: 'flight Lisbon', user_id: 'ana', expected: ['flight'], forbidden: ['hotel'] };
  await put({ name: 'guarded', guard: true, items: [item] });
  const refused = await api.request('PUT', '/settings/retrieval', { body: { min_score: 0 } });
  expect([refused.status, refused.body.detail]).toEqual([
    409,
    'the guarded set "guarded" would fall: with forbidden hits 0 → 1; nothing is changed without force=true',
  ]);
  expect((await api.request('GET', '/settings/retrieval')).body).toEqual({ min_score: 1 });
  await api.request('PUT', '/settings/retrieval?force=true', { body: {} });
});

test('sets are for admins, and the log names no set', async () => {
  const { secret } = api.engine.control.createKey({ tenantId: 'default', role: 'write' });
  expect((await api.request('GET', '/evals', { key: secret })).status).toBe(403);
  const { text } = await api.request('GET', '/audit?limit=1000');
  expect(text).toContain('eval.run');
  expect(text).not.toMatch(/travel|guarded/);
});

test('metrics show the lowest scores of all sets, and no name', async () => {
  await put(travel());
  const { recall } = await run('travel');
  const metrics = () => api.engine.metrics.registry.metrics();
  // Files are counted now and then.
  await expect.poll(metrics).toContain(`cairn_eval_score{measure="recall"} ${Math.min(recall, 1)}`);
  const text = await metrics();
  expect(text).toMatch(/cairn_eval_p95_seconds \d/);
  expect(text).not.toContain('travel');
});

test('sets run by schedule, once a period', async () => {
  const clock = createManualClock();
  const settings = { OM_EMBEDDINGS: 'none', OM_EVAL_EVERY: '1d' };
  await using scheduled = await startApi({ folder: tempFolder(), settings, clock });
  const tenant = await scheduled.engine.tenant('default');
  const runs = async () => (await tenant.listEvalRuns('daily', 10)).length;
  expect(await tenant.runDueEvals()).toBe(0);
  await tenant.putEval({ name: 'daily', guard: false, items: [{ query: 'anything', expected: [] }] });
  expect(await tenant.runDueEvals()).toBe(1);
  expect([await tenant.runDueEvals(), await runs()]).toEqual([0, 1]);
  clock.advance(DAY_MS);
  expect([await tenant.runDueEvals(), await runs()]).toEqual([1, 2]);
});

test('a run takes a query of the key for each of its questions', async () => {
  await put({ name: 'limited', items: travel().items });
  expect((await api.request('PATCH', '/admin/limits', { body: { queries: 5 } })).status).toBe(200);
  onTestFinished(async () => void (await api.request('PATCH', '/admin/limits', { body: { queries: null } })));
  const first = await api.request('POST', '/evals/limited/run');
  expect(first.status).toBe(200);
  expect(first.headers.get('ratelimit')).toMatch(/"queries";r=1/);
  expect((await api.request('POST', '/evals/limited/run')).status).toBe(429);
});

test('a run of a set without items takes the one query of its request', async () => {
  await using other = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none' }, threads: false });
  const item = { query: 'ferry', user_id: 'zoe', expected: ['ferry'] };
  await other.request('POST', '/evals', { body: { name: 'ferries', items: [item] } });
  await other.request('DELETE', '/users/zoe/memories');
  await other.request('PATCH', '/admin/limits', { body: { queries: 2 } });
  const statuses: number[] = [];
  for (let no = 0; no < 3; no += 1) statuses.push((await other.request('POST', '/evals/ferries/run')).status);
  expect(statuses).toEqual([200, 200, 429]);
});

test('texts of answers are searched on a reader thread, and not on the one that serves requests', async () => {
  const other = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none', OM_QUERY_THREADS: '1' } });
  onTestFinished(() => other.stop());
  await other.add({ content: `gnu ${'savanna '.repeat(10_000)}`, user_id: 'eve' });
  const items = [{ query: 'gnu', user_id: 'eve', expected: ['zebra'] }];
  await other.request('POST', '/evals', { body: { name: 'long', items } });
  const searched = vi.spyOn(String.prototype, 'includes');
  onTestFinished(() => searched.mockRestore());
  const { body } = await other.request('POST', '/evals/long/run');
  const longest = Math.max(...searched.mock.contexts.map((text) => (text as string).length));
  searched.mockRestore();
  expect(body.items).toMatchObject([{ missing: ['zebra'] }]);
  expect(longest).toBeLessThan(10_000);
});

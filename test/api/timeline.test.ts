import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

let api: TestApi;
let ids: readonly string[];
const folder = tempFolder();
const START = Date.UTC(2026, 0, 5);

beforeAll(async () => {
  api = await startApi({ folder });
  const items = Array.from({ length: 12 }, (_, place) => ({
    content: `turn ${place}`,
    user_id: 'ann',
    session_id: place % 2 === 0 ? 'even' : 'odd',
    event_time: START + place,
  }));
  const { body } = await api.request('POST', '/memory/add/batch', { body: { items } });
  ids = body.results.map(({ id }) => id);
  await api.add({ content: 'between the two, of bob', user_id: 'bob', event_time: START + 6 });
});
afterAll(() => api.stop());

async function around(place: number, parameters = '') {
  const { status, body, text } = await api.request('GET', `/memory/${ids[place]!}/timeline${parameters}`);
  expect(status, text).toBe(200);
  const places = (side: string) => (body[side] as readonly { readonly id: string }[]).map(({ id }) => ids.indexOf(id));
  expect(Object.keys(body)).toEqual(['before', 'anchor', 'after']);
  expect((body['anchor'] as { id: string }).id).toBe(ids[place]);
  return [places('before'), places('after')];
}

test('shows five memories of the same user before and after, earlier first', async () => {
  expect(await around(6)).toEqual([
    [1, 2, 3, 4, 5],
    [7, 8, 9, 10, 11],
  ]);
  expect(await around(0)).toEqual([[], [1, 2, 3, 4, 5]]);
});

test('shows as many as asked for, and only of the session on demand', async () => {
  expect(await around(6, '?before=2&after=0')).toEqual([[4, 5], []]);
  expect(await around(6, '?session=true&before=100&after=2&user_id=ann')).toEqual([
    [0, 2, 4],
    [8, 10],
  ]);
});

test("another user's memory, an unknown one, wrong parameters and a missing key are refused", async () => {
  const status = async (path: string) => (await api.request('GET', path)).status;
  expect(await status(`/memory/${ids[0]!}/timeline?user_id=bob`)).toBe(404);
  expect(await status('/memory/unknown/timeline')).toBe(404);
  for (const parameters of ['before=101', 'after=-1', 'before=x', 'session=yes', 'limit=3'])
    expect(await status(`/memory/${ids[0]!}/timeline?${parameters}`), parameters).toBe(400);
  expect((await api.request('GET', `/memory/${ids[0]!}/timeline`, { key: null })).status).toBe(401);
});

test('memories are read on a reader thread, and not on the one that serves requests', async () => {
  const other = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none', OM_QUERY_THREADS: '1' } });
  onTestFinished(() => other.stop());
  const metadata = { marked: 'here' };
  const { id } = await other.add({ content: 'The kettle is on the shelf.', user_id: 'ana', metadata });
  await other.add({ content: 'The shelf is in the kitchen.', user_id: 'ana', metadata });
  const parsed = vi.spyOn(JSON, 'parse');
  onTestFinished(() => parsed.mockRestore());
  const { body } = await other.request('GET', `/memory/${id}/timeline`);
  // The reply itself is parsed by this test.
  const rows = parsed.mock.calls.filter(([text]) => text === JSON.stringify(metadata));
  parsed.mockRestore();
  expect(body['after']).toHaveLength(1);
  expect(rows).toEqual([]);
});

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

let api: TestApi;
beforeAll(async () => void (api = await startApi({ folder: tempFolder() })));
afterAll(() => api.stop());

let count = 0;
const add = async (item: object = {}) => (await api.add({ content: `memory ${(count += 1)}`, ...item })).id;
const post = (path: string, body: object, headers?: Record<string, string>) =>
  api.request('POST', path, { body, ...(headers === undefined ? {} : { headers }) });
const linksOf = async (id: string) => (await api.request('GET', `/memory/${id}/links`)).body.items;
const statusOf = async (id: string) => (await api.request('GET', `/memory/${id}`)).body['status'];

describe('POST /memory/link', () => {
  test('states a link, and another weight for it', async () => {
    const [src, dst] = [await add(), await add()];
    const reply = await post('/memory/link', { src, dst, type: 'depends_on', weight: 0.9 });
    expect(reply.status).toBe(200);
    expect(reply.body).toEqual({
      ok: true,
      src,
      dst,
      type: 'depends_on',
      similarity: null,
      weight: 0.9,
      automatic: false,
      created_at: expect.any(Number),
      updated_at: expect.any(Number),
      written_by: expect.any(String),
    });
    await post('/memory/link', { src, dst, type: 'depends_on', weight: 0.2 });
    expect(await linksOf(dst)).toMatchObject([{ id: src, type: 'depends_on', direction: 'in', weight: 0.2 }]);
  });

  test.each<[string, object, number, RegExp]>([
    ['no type', {}, 400, /type: expected one of waypoint, mentions/],
    ['a type with a route of its own', { type: 'supersedes' }, 400, /POST \/memory\/supersede/],
    ['a weight out of bounds', { type: 'supports', weight: 1.5 }, 400, /weight: expected 0\.\.1/],
    [
      'an unknown field',
      { type: 'supports', strength: 1 },
      400,
      /unknown field "strength"; allowed: user_id, src, dst/,
    ],
    ['an unknown memory', { type: 'supports', dst: 'nobody' }, 404, /^dst: no memory with this id$/],
    ['another user’s memory', { type: 'supports', user_id: 'ann' }, 404, /^src: no memory with this id$/],
  ])('refuses %s', async (_, body, status, message) => {
    const [src, dst] = [await add({ user_id: 'bob' }), await add({ user_id: 'ann' })];
    const reply = await post('/memory/link', { src, dst, ...body });
    expect([reply.status, reply.body.detail]).toEqual([status, expect.stringMatching(message)]);
    expect(await linksOf(src)).toEqual([]);
  });

  test('refuses a memory linked to itself', async () => {
    const src = await add();
    const reply = await post('/memory/link', { src, dst: src, type: 'supports' });
    expect([reply.status, reply.body.detail]).toEqual([400, 'dst: a memory cannot be linked to itself']);
  });
});

describe('DELETE /memory/link', () => {
  test.each(['query string', 'body'])('removes a link named in the %s', async (where) => {
    const [src, dst] = [await add({ user_id: 'ann' }), await add({ user_id: 'ann' })];
    await post('/memory/link', { src, dst, type: 'mentions' });
    const key = { src, dst, type: 'mentions', user_id: 'ann' };
    const remove = () =>
      where === 'body'
        ? api.request('DELETE', '/memory/link', { body: key })
        : api.request('DELETE', `/memory/link?${new URLSearchParams(key).toString()}`);
    expect((await remove()).body).toEqual({ ok: true, src, dst, type: 'mentions' });
    expect(await linksOf(src)).toEqual([]);
    const again = await remove();
    expect([again.status, again.body.detail]).toEqual([404, 'no link of type mentions from src to dst']);
  });

  test('refuses half a link, one in two places, and one of another user', async () => {
    const [src, dst] = [await add({ user_id: 'bob' }), await add({ user_id: 'bob' })];
    await post('/memory/link', { src, dst, type: 'mentions' });
    const half = await api.request('DELETE', `/memory/link?src=${src}`);
    expect([half.status, half.body.detail]).toEqual([400, expect.stringContaining('dst: expected a string')]);
    const both = await api.request('DELETE', `/memory/link?src=${src}`, { body: { src, dst, type: 'mentions' } });
    expect([both.status, both.body.detail]).toEqual([400, expect.stringContaining('not in both')]);
    const foreign = await api.request('DELETE', '/memory/link', {
      body: { src, dst, type: 'mentions', user_id: 'ann' },
    });
    expect(foreign.status).toBe(404);
    expect(await linksOf(src)).toHaveLength(1);
  });
});

const START = Date.UTC(2026, 0, 5);

describe('POST /memory/supersede', () => {
  test('gives the old memory’s place to the new one, for queries too, until the two are unlinked', async () => {
    const old_id = await add({ content: 'the ferry to Helgoland leaves at nine', user_id: 'ann', event_time: START });
    const new_id = await add({ content: 'departure moved to ten', user_id: 'ann', event_time: START + 5_000 });
    const reply = await post('/memory/supersede', { old_id, new_id, user_id: 'ann' });
    expect(reply.status).toBe(200);
    expect(reply.body).toEqual({ ok: true, old_id, new_id, status: 'superseded', valid_to: START + 5_000, version: 2 });
    const ask = async (more: object = {}) =>
      (
        await post('/memory/query', {
          query: 'ferry Helgoland',
          user_id: 'ann',
          reinforce: false,
          min_score: 0,
          ...more,
        })
      ).body.matches as unknown as { id: string; supersedes?: string }[];
    expect((await ask()).map(({ id, supersedes }) => [id, supersedes])).toEqual([[new_id, old_id]]);
    expect((await ask({ as_of: START + 3_000 })).map(({ id }) => id)).toEqual([old_id]);
    expect((await ask({ as_of: { valid: START + 3_000, recorded: START + 3_000 } })).map(({ id }) => id)).toEqual([]);
    expect((await ask({ deep_recall: true })).map(({ id }) => id)).toContain(old_id);
    await api.request('DELETE', '/memory/link', { body: { src: new_id, dst: old_id, type: 'supersedes' } });
    expect((await ask()).map(({ id, supersedes }) => [id, supersedes])).toEqual([[old_id, undefined]]);
  });

  test('refuses a second successor, a circle, and memories of different users', async () => {
    const [one, two, three] = [await add(), await add(), await add()];
    await post('/memory/supersede', { old_id: one, new_id: two });
    const second = await post('/memory/supersede', { old_id: one, new_id: three });
    expect([second.status, second.body.detail]).toEqual([
      409,
      `old_id: already superseded by ${two}; supersede that one, or unlink the two first`,
    ]);
    const circle = await post('/memory/supersede', { old_id: two, new_id: one });
    expect([circle.status, circle.body.detail]).toEqual([409, expect.stringContaining('circle')]);
    const foreign = await add({ user_id: 'bob' });
    const strangers = await post('/memory/supersede', { old_id: two, new_id: foreign });
    expect([strangers.status, strangers.body.detail]).toEqual([400, 'the two memories belong to different users']);
    const unknown = await post('/memory/supersede', { old_id: two, new_id: 'nobody' });
    expect([unknown.status, unknown.body.detail]).toEqual([404, 'new_id: no memory with this id']);
    const notMine = await post('/memory/supersede', { old_id: two, new_id: three, user_id: 'ann' });
    expect([notMine.status, notMine.body.detail]).toEqual([404, 'old_id: no memory with this id']);
  });
});

describe('POST /memory/contradict', () => {
  test('marks the one that is not the winner, from whichever side it is said', async () => {
    const [a, b] = [await add(), await add()];
    const reply = await post('/memory/contradict', { a, b });
    expect(reply.body).toEqual({
      ok: true,
      a,
      b,
      weight: 0.8,
      created_at: expect.any(Number),
      updated_at: expect.any(Number),
      written_by: expect.any(String),
    });
    expect([await statusOf(a), await statusOf(b)]).toEqual(['active', 'active']);
    expect((await post('/memory/contradict', { a: b, b: a, winner: b })).status).toBe(200);
    expect([await statusOf(a), await statusOf(b)]).toEqual(['contradicted', 'active']);
    expect(await linksOf(b)).toMatchObject([{ id: a, type: 'contradicts' }]);
  });

  test('refuses a winner that is neither, and a memory against itself', async () => {
    const [a, b] = [await add(), await add()];
    const third = await post('/memory/contradict', { a, b, winner: await add() });
    expect([third.status, third.body.detail]).toEqual([400, 'winner: expected the id given as a or b']);
    const itself = await post('/memory/contradict', { a, b: a });
    expect([itself.status, itself.body.detail]).toEqual([400, 'b: a memory cannot contradict itself']);
  });
});

describe('POST /memory/add with supersedes', () => {
  test('stores a memory and puts it in the place of another in one step; of several at once one does', async () => {
    const old = await add({ user_id: 'sue' });
    const contents = ['one', 'two', 'three'].map((word) => `The new fact is ${word}.`);
    const replies = await Promise.all(
      contents.map((content) => post('/memory/add', { content, user_id: 'sue', supersedes: old })),
    );
    expect(replies.map(({ status }) => status).sort()).toEqual([202, 409, 409]);
    expect(await statusOf(old)).toBe('superseded');
    const living = await api.request('GET', '/memory/all?user_id=sue');
    expect(living.body.items).toHaveLength(1);
    const refused = replies.find(({ status }) => status === 409)!.body.detail;
    expect(refused).toMatch(/^supersedes: already superseded by /);

    // The same again is the answer to a retry, and a text that is there already can take the place, too.
    const won = contents[replies.findIndex(({ status }) => status === 202)]!;
    const again = await post('/memory/add', { content: won, user_id: 'sue', supersedes: old });
    expect([again.status, again.body['deduplicated']]).toEqual([200, true]);
    const [other, successor] = [await add({ user_id: 'sue' }), 'It is known.'];
    await add({ content: successor, user_id: 'sue' });
    expect((await post('/memory/add', { content: successor, user_id: 'sue', supersedes: other })).status).toBe(200);
    expect(await statusOf(other)).toBe('superseded');
  });

  test('refuses one of another user, an unknown one and the same text, and stores nothing then', async () => {
    const old = await add({ user_id: 'tom', content: 'Tom rows.' });
    const tries: [object, number, RegExp][] = [
      [{ user_id: 'tim', supersedes: old }, 400, /^supersedes: .*another user/],
      [{ user_id: 'tom', supersedes: 'nobody' }, 404, /^supersedes: no memory/],
      [{ user_id: 'tom', supersedes: old, content: 'Tom rows.' }, 409, /^supersedes: .*says the same/],
    ];
    for (const [fields, status, message] of tries) {
      const reply = await post('/memory/add', { content: 'Refused.', ...fields });
      expect([reply.status, reply.body.detail]).toEqual([status, expect.stringMatching(message)]);
    }
    expect((await api.request('GET', '/memory/all?user_id=tom')).body.items).toHaveLength(1);
    expect((await api.request('GET', '/users?prefix=tim')).body.items).toEqual([]);

    const items = [
      { content: 'Kept.', user_id: 'tom' },
      { content: 'Refused.', user_id: 'tom', supersedes: 'nobody' },
    ];
    const batch = await post('/memory/add/batch', { items });
    expect(batch.body['results']).toMatchObject([{ state: 'queued' }, { error: { code: 'not_found' } }]);
  });

  test('is not for keys that only add, and reaches nothing beyond the bounds of a key', async () => {
    const old = await add({ user_id: 'una' });
    const keyOf = (key: object) =>
      api.engine.control.createKey({ tenantId: 'default', role: 'write', ...key } as never).secret;
    const withKey = (key: string) =>
      api.request('POST', '/memory/add', { body: { content: 'Taken over.', supersedes: old }, key });
    expect((await withKey(keyOf({ role: 'add' }))).status).toBe(403);
    expect((await withKey(keyOf({ userId: 'vic' }))).status).toBe(404);
    expect(await statusOf(old)).toBe('active');
    expect((await withKey(keyOf({ userId: 'una' }))).status).toBe(202);
  });
});

test('a look back to no time at all is refused', async () => {
  const reply = await post('/memory/query', { query: 'x', as_of: {} });
  expect([reply.status, reply.body.detail]).toEqual([400, expect.stringContaining('as_of')]);
});

test('asks for a key that may write, and knows nothing of another tenant’s memories', async () => {
  const [src, dst] = [await add(), await add()];
  const { control } = api.engine;
  const { secret: reader } = control.createKey({ tenantId: 'default', role: 'read' });
  control.createTenant('other');
  const { secret: stranger } = control.createKey({ tenantId: 'other', role: 'admin' });
  const calls: [string, string, object][] = [
    ['POST', '/memory/link', { src, dst, type: 'supports' }],
    ['DELETE', '/memory/link', { src, dst, type: 'supports' }],
    ['POST', '/memory/supersede', { old_id: src, new_id: dst }],
    ['POST', '/memory/contradict', { a: src, b: dst }],
  ];
  for (const [method, path, body] of calls) {
    expect((await api.request(method, path, { body, key: reader })).status, path).toBe(403);
    expect((await api.request(method, path, { body, key: stranger })).status, path).toBe(404);
  }
  expect(await linksOf(src)).toEqual([]);
});

describe('GET /memory/contradictions', () => {
  test('lists what is proposed for a user, until it is dismissed', async () => {
    await using working = await startApi({ folder: tempFolder(), workers: true });
    const listed = async (query: string) => (await working.request('GET', `/memory/contradictions${query}`)).body.items;
    const say = async (content: string) => {
      const body = { content, user_id: 'cleo' };
      return (await working.request('POST', '/memory/add?wait=20000', { body })).body.id;
    };
    const first = await say('The request timeout is 30 seconds.');
    const second = await say('The request timeout is 60 seconds.');
    expect(await listed('?user_id=cleo')).toEqual([
      {
        user_id: 'cleo',
        earlier: expect.objectContaining({ id: first, content: 'The request timeout is 30 seconds.' }),
        later: expect.objectContaining({ id: second }),
        by: 'form',
        similarity: null,
        created_at: expect.any(Number),
      },
    ]);
    expect(await listed('?user_id=dora')).toEqual([]);
    await working.request('DELETE', '/memory/link', { body: { src: first, dst: second, type: 'contradicts' } });
    expect(await listed('?user_id=cleo')).toEqual([]);
  });

  test('refuses a limit out of bounds', async () => {
    const { status, body } = await api.request('GET', '/memory/contradictions?limit=201');
    expect([status, body.detail]).toEqual([400, expect.stringMatching(/^limit: /)]);
  });
});

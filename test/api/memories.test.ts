import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

let api: TestApi;
beforeAll(async () => void (api = await startApi({ folder: tempFolder(), workers: true })));
afterAll(() => api.stop());

const STORED_FIELDS = [
  'id, user_id, session_id, content, title, type, tags, files, metadata, primary_sector, sectors, sector_confidence, state',
  'status, salience, strength, decay_lambda, confidence, importance, access_count, last_seen_at, created_at, updated_at',
  'event_time, valid_from, valid_to, expires_at, external_id, written_by, version',
].flatMap((line) => line.split(', '));
const ITEM_FIELDS = [...STORED_FIELDS, 'gist', 'entities'];

const EVERYTHING = {
  content: 'Ada moved the meeting with Grace to Thursday.',
  user_id: 'ada',
  session_id: 's1',
  tags: ['work', 'calendar'],
  metadata: { source: 'chat', nested: { a: [1, null, true] } },
  type: 'note',
  title: 'Meeting moved',
  gist: 'The meeting is on Thursday.',
  entities: ['Ada', 'Grace'],
  files: ['calendar.ics'],
  event_time: 1_700_000_000_000,
  valid_from: 1_600_000_000_000,
  valid_to: 4_000_000_000_000,
  expires_at: 4_000_000_000_001,
  importance: 0.9,
  confidence: 0.8,
  external_id: 'ext-1',
};

describe('POST /memory/add', () => {
  test('answers 202 with the ids, where to look, and what to wait for', async () => {
    const reply = await api.request('POST', '/memory/add', { body: { content: 'The kettle is blue.' } });
    expect(reply.status).toBe(202);
    expect(reply.body).toEqual({
      id: expect.any(String),
      job_id: expect.any(String),
      state: 'queued',
      token: expect.any(String),
    });
    expect(reply.headers.get('location')).toBe(`/jobs/${reply.body.job_id}`);
    expect(reply.headers.get('content-type')).toBe('application/json; charset=utf-8');
  });

  test.each(['plain ASCII', 'Latin-1: café, ÿ', 'beyond: 日本 🗻', `long: ${'é'.repeat(20_000)}`])(
    'answers with the bytes of the text, and their number: %.20s',
    async (content) => {
      const { id } = (await api.request('POST', '/memory/add', { body: { content } })).body as { id: string };
      const reply = await api.request('GET', `/memory/${id}`);
      expect(reply.body.content).toBe(content);
      expect(reply.headers.get('content-length')).toBe(String(Buffer.byteLength(reply.text)));
    },
  );

  test.each([
    ['?wait', '/memory/add?wait=60000', {}],
    ['Prefer', '/memory/add', { prefer: 'respond-async, wait=60' }],
  ])('%s answers with the finished memory', async (name, path, headers) => {
    const reply = await api.request('POST', path, { body: { content: `I felt happy on Monday, ${name}.` }, headers });
    expect(reply.status).toBe(200);
    expect(reply.body).toEqual({
      id: expect.any(String),
      primary_sector: expect.any(String),
      sectors: expect.arrayContaining([reply.body.primary_sector]),
      chunks: 1,
      state: 'ready',
    });
  });

  test.each([
    ['wait=100000', 'wait=60'],
    ['respond-async, WAIT = "7"; foo', 'wait=7'],
    ['wait=0', 'wait=0'],
    ['wait=3, wait=5', 'wait=3'],
    ['wait=soon', null],
    ['foo="a, wait=5"', null],
  ])('Prefer: %s is answered with the wait that holds', async (prefer, applied) => {
    const body = { content: 'A text whose second add is a duplicate.' };
    const reply = await api.request('POST', '/memory/add', { body, headers: { prefer } });
    expect(reply.status).toBeLessThan(300);
    expect(reply.headers.get('preference-applied')).toBe(applied);
  });

  test('the parameter `wait` has priority over Prefer, and one over its maximum is refused', async () => {
    const body = { content: 'Another text that is added twice.' };
    const headers = { prefer: 'wait=5' };
    const reply = await api.request('POST', '/memory/add?wait=0', { body, headers });
    expect([reply.status, reply.headers.get('preference-applied')]).toEqual([202, null]);
    const refused = await api.request('POST', '/memory/add?wait=60001', { body, headers });
    expect([refused.status, refused.body.detail]).toEqual([400, expect.stringContaining('wait: expected 0..60000')]);
  });

  test('keeps every field, and reads it back as it was given', async () => {
    const { id } = await api.add(EVERYTHING);
    const reply = await api.request('GET', `/memory/${id}`);
    expect(reply.status).toBe(200);
    expect(reply.headers.get('etag')).toMatch(/^"1-[0-9a-f-]{36}"$/);
    expect(reply.body).toMatchObject(EVERYTHING);
    expect(Object.keys(reply.body as object)).toEqual(ITEM_FIELDS);
  });

  test('takes times as ISO 8601 too, and null or nothing for none', async () => {
    const { id } = await api.add({
      content: 'A time with an offset.',
      event_time: '2024-02-29T12:00:00+02:00',
      valid_from: '2024-02-29',
      user_id: null,
      tags: null,
      metadata: null,
      external_id: null,
    });
    const { body } = await api.request('GET', `/memory/${id}`);
    expect(body).toMatchObject({
      event_time: Date.UTC(2024, 1, 29, 10),
      valid_from: Date.UTC(2024, 1, 29),
      user_id: '',
      tags: [],
      metadata: {},
      external_id: null,
    });
  });

  test('says the same thing twice: the second answer names the first memory', async () => {
    const item = { content: 'Rice needs eighteen minutes.', user_id: 'twice' };
    const first = await api.request('POST', '/memory/add?wait=60000', { body: item });
    const second = await api.request('POST', '/memory/add', { body: item });
    expect(second.status).toBe(200);
    expect(second.body).toEqual({
      id: first.body.id,
      primary_sector: first.body.primary_sector,
      sectors: first.body.sectors,
      deduplicated: true,
      state: 'ready',
    });
  });

  test('refuses an external_id that stands for another text', async () => {
    await api.add({ content: 'one text', external_id: 'taken' });
    const reply = await api.request('POST', '/memory/add', { body: { content: 'another text', external_id: 'taken' } });
    expect(reply.status).toBe(409);
    expect(reply.body).toMatchObject({ code: 'conflict', detail: expect.stringContaining('external_id') });
  });

  test('metadata.sector forces the sector', async () => {
    const body = { content: 'Nothing in here says so.', metadata: { sector: 'reflective' } };
    const reply = await api.request('POST', '/memory/add?wait=60000', { body });
    expect(reply.body.primary_sector).toBe('reflective');
  });

  test('OM_ADD_WAIT_MS waits where the request says nothing', async () => {
    await using waiting = await startApi({
      folder: tempFolder(),
      workers: true,
      settings: { OM_ADD_WAIT_MS: '60000' },
    });
    const finished = await waiting.request('POST', '/memory/add', { body: { content: 'waited for' } });
    expect([finished.status, finished.body.state]).toEqual([200, 'ready']);
    const accepted = await waiting.request('POST', '/memory/add?wait=0', { body: { content: 'not waited for' } });
    expect([accepted.status, accepted.body.state]).toEqual([202, 'queued']);
  });
});

describe('POST /memory/add/batch', () => {
  test('answers one result an item, in order; a wrong item spares the rest', async () => {
    const items = [
      { content: 'batch one' },
      { content: '' },
      { content: 'batch one' },
      7,
      { content: 'batch two', colour: 1 },
    ];
    const reply = await api.request('POST', '/memory/add/batch', { body: { items } });
    expect(reply.status).toBe(202);
    expect(reply.body).toEqual({
      results: [
        { id: expect.any(String), state: 'queued', job_id: expect.any(String) },
        { error: { code: 'invalid', message: expect.stringContaining('content') } },
        expect.objectContaining({ id: reply.body.results[0]!.id, deduplicated: true }),
        { error: { code: 'invalid', message: expect.stringContaining('object') } },
        { error: { code: 'invalid', message: expect.stringContaining('"colour"; allowed: content, user_id') } },
      ],
      accepted: 2,
      rejected: 3,
      token: expect.any(String),
    });
  });

  test('is atomic in what it says: its token covers all of it', async () => {
    const items = Array.from({ length: 100 }, (_, index) => ({ content: `batch item ${index}`, user_id: 'batch' }));
    const { body } = await api.request('POST', '/memory/add/batch', { body: { items } });
    const query = { query: 'batch item', k: 200, user_id: 'batch', token: body.token, reinforce: false };
    expect(new Set(body.results.map(({ id }) => id)).size).toBe(100);
    // A query waits two seconds for its token, in which a busy machine may not encode a hundred memories.
    const ask = async () => (await api.request('POST', '/memory/query', { body: query })).body;
    while (!(await ask()).token_satisfied);
    for (const { id } of body.results) expect((await api.request('GET', `/memory/${id}`)).body.state).toBe('ready');
  });

  test('answers lines when asked for them', async () => {
    const headers = { accept: 'application/x-ndjson' };
    const reply = await api.request('POST', '/memory/add/batch', {
      body: { items: [{ content: 'as a line' }, {}] },
      headers,
    });
    expect(reply.headers.get('content-type')).toBe('application/x-ndjson; charset=utf-8');
    const lines = reply.text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as object);
    expect(lines).toEqual([
      { id: expect.any(String), state: 'queued', job_id: expect.any(String) },
      { error: { code: 'invalid', message: expect.any(String) } },
      { accepted: 1, rejected: 1, token: expect.any(String) },
    ]);
  });
});

describe('POST /memory/query', () => {
  test('answers with matches and, on demand, with the reason for each', async () => {
    const added = await api.add({
      content: 'The lighthouse keeper paints at night.',
      user_id: 'q',
      tags: ['sea'],
      metadata: { a: 1 },
    });
    // A query waits for its token no longer than two seconds.
    await (await api.engine.tenant('default')).waitFor(added.token, 120_000);
    const body = { query: 'lighthouse', user_id: 'q', token: added.token, explain: true };
    const reply = await api.request('POST', '/memory/query', { body });
    expect(reply.status).toBe(200);
    expect(Object.keys(reply.body as object)).toEqual([
      'query',
      'matches',
      'degraded',
      'recall_id',
      'token_satisfied',
      ...(reply.body.trace ? ['trace'] : []),
    ]);
    expect(reply.body).toMatchObject({ query: 'lighthouse', degraded: false, token_satisfied: true });
    const [match] = reply.body.matches;
    expect(match).toMatchObject({
      id: added.id,
      content: 'The lighthouse keeper paints at night.',
      tags: ['sea'],
      metadata: { a: 1 },
      user_id: 'q',
      session_id: '',
      path: [added.id],
      explain: { lexical: { rank: 1 }, features: expect.any(Object), weights: expect.any(Object) },
    });
    expect(match!.score).toBeGreaterThan(0);
    expect(match!.score).toBeLessThanOrEqual(1);
    expect(match!.raw_score).toEqual(expect.any(Number));
    expect(Object.keys(match as object)).toEqual([...STORED_FIELDS, 'score', 'raw_score', 'path', 'explain']);
  });

  test("takes OpenMemory's filters and ours, and a user named twice must be both", async () => {
    await using own = await startApi({ folder: tempFolder(), workers: true });
    const items = [
      {
        content: 'saffron risotto',
        user_id: 'f1',
        tags: ['food', 'rice'],
        type: 'recipe',
        session_id: 'a',
        metadata: { n: 1 },
      },
      {
        content: 'saffron paella',
        user_id: 'f2',
        tags: ['food'],
        external_id: 'paella',
        event_time: '1970-01-01T00:00:01Z',
        metadata: { n: 2 },
      },
      { content: 'saffron crocus', user_id: 'f2', metadata: { sector: 'reflective' } },
    ];
    const { body } = await own.request('POST', '/memory/add/batch', { body: { items } });
    await (await own.engine.tenant('default')).waitFor(body.token, 120_000);
    const ids = body.results.map(({ id }) => id);
    const found = async (fields: object) => {
      const reply = await own.request('POST', '/memory/query', {
        body: { query: 'saffron', k: 50, reinforce: false, ...fields },
      });
      expect(reply.status, reply.text).toBe(200);
      return reply.body.matches.map(({ id }) => ids.indexOf(id)).sort();
    };
    expect(await found({})).toEqual([0, 1, 2]);
    expect(await found({ user_id: 'f2' })).toEqual([1, 2]);
    expect(await found({ filters: { user_id: 'f2' } })).toEqual([1, 2]);
    expect(await found({ filters: { users: ['f1', 'f2'] } })).toEqual([0, 1, 2]);
    expect(await found({ user_id: 'f1', filters: { users: ['f2'] } })).toEqual([]);
    expect(await found({ filters: { sector: 'reflective' } })).toEqual([2]);
    expect(await found({ filters: { sectors: ['reflective'] } })).toEqual([2]);
    expect(await found({ filters: { tags: ['food'] } })).toEqual([0, 1]);
    expect(await found({ filters: { tags: ['food', 'rice'] } })).toEqual([0]);
    expect(await found({ filters: { types: ['recipe', 'other'] } })).toEqual([0]);
    expect(await found({ filters: { sessions: ['a'] } })).toEqual([0]);
    expect(await found({ filters: { external_ids: ['paella'] } })).toEqual([1]);
    expect(
      await found({ filters: { event_time: { from: '1970-01-01T00:00:01Z', to: '1970-01-01T00:00:01.001Z' } } }),
    ).toEqual([1]);
    expect(await found({ filters: { event_time: { to: '1970-01-01T00:00:01Z' } } })).toEqual([]);
    expect(await found({ filters: { created_at: { from: '2020-01-01' } } })).toEqual([0, 1, 2]);
    expect(await found({ startTime: 1_600_000_000_000 })).toEqual([0, 1, 2]);
    expect(await found({ filters: { endTime: 1_600_000_000_000 } })).toEqual([]);
    expect(await found({ filters: { metadata: { n: 1 } } })).toEqual([0]);
    expect(await found({ filters: { metadata: { n: { $gte: 2 } } } })).toEqual([1]);
    expect(await found({ filters: { statuses: ['archived'] } })).toEqual([]);
    expect(await found({ filters: { min_score: 1 } })).toEqual([]);
    expect(await found({ min_score: 0, k: 1 })).toHaveLength(1);
  });

  test('says so when the writes behind a token are not finished in time', async () => {
    await using idle = await startApi({ folder: tempFolder(), threads: false });
    const { token } = await idle.add({ content: 'nobody works on this' });
    const reply = await idle.request('POST', '/memory/query', { body: { query: 'works', token } });
    expect(reply.body.token_satisfied).toBe(false);
    expect(reply.body.matches).toHaveLength(1);
  });

  test.each([
    [{ as_of: 'yesterday' }, 'as_of: expected a time, or an object {valid, recorded} of times'],
    [{ deep_recall: 1 }, 'deep_recall: expected true or false'],
    [{ format: 'xml' }, 'format: expected one of json, prompt, text'],
    [{ profile: 'best' }, 'profile: expected one of composite, activation, retention, fusion'],
    [{ max_hops: 5 }, 'max_hops: expected 0..4'],
    [
      { profile: 'activation', weights: { alpha: 1 } },
      'weights: the profile activation does not read alpha; allowed: activation, recency, strength, confidence',
    ],
    [{ token: 'forged' }, 'token'],
    [{ filters: { metadata: { a: { $regex: 'x' } } } }, 'operator'],
  ])('%j is refused with what is allowed', async (fields, named) => {
    const reply = await api.request('POST', '/memory/query', { body: { query: 'x', ...fields } });
    expect(reply.status).toBe(400);
    expect(reply.body.detail).toContain(named);
  });
});

describe('one memory', () => {
  test('is patched, with its history and its version', async () => {
    const { id } = await api.add({
      content: 'The door code is 1234.',
      metadata: { room: 'lab', floor: 2 },
      tags: ['door'],
    });
    const patched = await api.request('PATCH', `/memory/${id}`, {
      body: { content: 'The door code is 5678.', metadata: { floor: null, building: 'B' }, type: null },
      headers: { 'if-match': '"1"' },
    });
    expect(patched.status, patched.text).toBe(200);
    expect(patched.headers.get('etag')).toBe(`"2-${id}"`);
    expect(patched.body).toMatchObject({
      id,
      updated: true,
      version: 2,
      content: 'The door code is 5678.',
      metadata: { room: 'lab', building: 'B' },
      tags: ['door'],
    });
    const history = await api.request('GET', `/memory/${id}/history`);
    expect(history.body).toEqual({
      id,
      items: [
        {
          version: 1,
          replaced_at: expect.any(Number),
          written_by: expect.any(String),
          replaced: expect.objectContaining({ content: 'The door code is 1234.' }),
        },
      ],
    });
    for (const header of ['"1"', '1', '"99"', `"1-${id}"`, '"2-another"']) {
      const stale = await api.request('PATCH', `/memory/${id}`, {
        body: { title: 'x' },
        headers: { 'if-match': header },
      });
      expect([header, stale.status, stale.body.code]).toEqual([header, 409, 'conflict']);
    }
    for (const header of ['W/"2"', 'abc', '"2", "3"', '-1']) {
      const wrong = await api.request('PATCH', `/memory/${id}`, {
        body: { title: 'x' },
        headers: { 'if-match': header },
      });
      expect([header, wrong.status, wrong.body.detail]).toEqual([header, 400, expect.stringContaining('such as "3"')]);
    }
    const any = await api.request('PATCH', `/memory/${id}`, { body: { title: 'x' }, headers: { 'if-match': '*' } });
    expect([any.status, any.body.version]).toEqual([200, 3]);
    const plain = await api.request('PATCH', `/memory/${id}`, { body: { title: 'y' }, headers: { 'if-match': '3' } });
    expect([plain.status, plain.body.version]).toEqual([200, 4]);
  });

  test('belongs to its user where one is named', async () => {
    const { id } = await api.add({ content: 'owned', user_id: 'owner' });
    expect((await api.request('GET', `/memory/${id}?user_id=owner`)).status).toBe(200);
    expect((await api.request('GET', `/memory/${id}?user_id=other`)).status).toBe(404);
    const body = { title: 'x' };
    expect((await api.request('PATCH', `/memory/${id}?user_id=other`, { body })).status).toBe(404);
    expect((await api.request('PATCH', `/memory/${id}?user_id=owner`, { body })).status).toBe(200);
    expect((await api.request('DELETE', `/memory/${id}?user_id=other`)).status).toBe(404);
    const unknown = await api.request('DELETE', `/memory/${id}?owner=owner`);
    expect([unknown.status, unknown.body.detail]).toEqual([400, 'unknown field "owner"; allowed: user_id']);
    expect((await api.request('GET', `/memory/${id}`)).status).toBe(200);
    expect((await api.request('PATCH', `/memory/${id}`, { body: { title: 'x', user_id: 'other' } })).status).toBe(404);
    expect((await api.request('PATCH', `/memory/${id}`, { body: { title: 'x', user_id: 'owner' } })).status).toBe(200);
    expect((await api.request('DELETE', `/memory/${id}?user_id=owner`)).status).toBe(200);
  });

  test('is reinforced', async () => {
    const { id } = await api.add({ content: 'worth more' });
    const before = (await api.request('GET', `/memory/${id}`)).body.salience;
    const reply = await api.request('POST', '/memory/reinforce', { body: { id, boost: 0.2 } });
    expect(reply.status).toBe(200);
    expect(reply.body).toEqual({
      ok: true,
      id,
      salience: expect.closeTo(before + 0.2, 3),
      strength: expect.any(Number),
    });
    expect((await api.request('POST', '/memory/reinforce', { body: { id, boost: 100 } })).body.salience).toBeCloseTo(
      before + 0.5,
      3,
    );
    expect((await api.request('POST', '/memory/reinforce', { body: { id: 'absent' } })).status).toBe(404);
  });

  test('shows its links', async () => {
    const items = ['Espresso grind size for the machine', 'Espresso grind size for the machine today'].map(
      (content) => ({
        content,
        user_id: 'links',
      }),
    );
    const { body } = await api.request('POST', '/memory/add/batch', { body: { items } });
    await (await api.engine.tenant('default')).waitFor(body.token, 120_000);
    const [first, second] = body.results;
    const reply = await api.request('GET', `/memory/${second!.id}/links`);
    expect(reply.status).toBe(200);
    expect(reply.body.id).toBe(second!.id);
    expect(reply.body.items).toContainEqual({
      id: first!.id,
      type: 'waypoint',
      direction: 'out',
      similarity: expect.any(Number),
      weight: expect.any(Number),
      automatic: true,
      created_at: expect.any(Number),
      updated_at: expect.any(Number),
      written_by: null,
    });
  });

  test('is deleted with a receipt, once', async () => {
    const { id } = await api.add({ content: 'to be forgotten' });
    const reply = await api.request('DELETE', `/memory/${id}`);
    expect(reply.status).toBe(200);
    expect(Object.keys(reply.body.removed)).toEqual([
      'memories',
      'documents',
      'vectors',
      'edges',
      'revisions',
      'jobs',
      'cached_embeddings',
      'stored_replies',
    ]);
    expect(reply.body).toMatchObject({ ok: true, deleted: 1, removed: { memories: 1 } });
    for (const [method, path] of [
      ['GET', ''],
      ['DELETE', ''],
      ['GET', '/history'],
      ['GET', '/links'],
    ] as const) {
      expect((await api.request(method, `/memory/${id}${path}`)).status).toBe(404);
    }
  });
});

describe('many memories', () => {
  test('are listed newest first, by page, sector and user', async () => {
    const items = [0, 1, 2].map((index) => ({
      content: `listed ${index}`,
      user_id: 'list & co',
      metadata: { sector: 'procedural' },
    }));
    const { body } = await api.request('POST', '/memory/add/batch', { body: { items } });
    await (await api.engine.tenant('default')).waitFor(body.token, 120_000);
    const contents = async (path: string) => {
      const reply = await api.request('GET', path);
      expect(reply.status, reply.text).toBe(200);
      return reply.body.items.map(({ content }) => content);
    };
    expect(await contents('/memory/all?user_id=list+%26+co')).toEqual(['listed 2', 'listed 1', 'listed 0']);
    expect(await contents('/memory/all?user_id=list+%26+co&l=1&u=1')).toEqual(['listed 1']);
    expect(await contents('/memory/all?user_id=list+%26+co&sector=procedural')).toHaveLength(3);
    expect(await contents('/memory/all?user_id=list+%26+co&sector=emotional')).toEqual([]);
    expect(await contents('/users/list%20%26%20co/memories?l=2')).toEqual(['listed 2', 'listed 1']);
    const deleted = await api.request('DELETE', '/users/list%20%26%20co/memories');
    expect(deleted.body).toMatchObject({ ok: true, deleted: 3 });
    expect(await contents('/users/list%20%26%20co/memories')).toEqual([]);
  });

  test('are deleted by filter, in the query string or in a body', async () => {
    const items = [
      { content: 'gone 1', user_id: 'del', session_id: 'a', tags: ['x', 'y,z'] },
      { content: 'gone 2', user_id: 'del', session_id: 'a', tags: ['x'] },
      { content: 'gone 3', user_id: 'del', session_id: 'b' },
      { content: 'stays', user_id: 'del2', session_id: 'a', tags: ['x', 'y,z'] },
    ];
    await api.request('POST', '/memory/add/batch', { body: { items } });
    const byTags = await api.request('DELETE', '/memory?user_id=del&tags=x&tags=y,z');
    expect(byTags.body, byTags.text).toMatchObject({ ok: true, deleted: 1 });
    const byBody = await api.request('DELETE', '/memory', { body: { user_id: 'del', session_id: 'a' } });
    expect(byBody.body).toMatchObject({ ok: true, deleted: 1 });
    expect((await api.request('DELETE', '/memory?user_id=del')).body).toMatchObject({ deleted: 1 });
    expect((await api.request('DELETE', '/memory?user_id=del2')).body).toMatchObject({ deleted: 1 });
  });

  test.each([
    ['/memory', undefined],
    ['/memory?user_id=', undefined],
    ['/memory?user=del', undefined],
    ['/memory', {}],
    ['/memory', { tags: [] }],
    ['/memory', { user_id: '' }],
    ['/memory', { user_id: null }],
    ['/memory?user_id=a', { user_id: 'a' }],
  ])('a delete of %s with %j names nothing and is refused', async (path, body) => {
    const reply = await api.request('DELETE', path, body === undefined ? {} : { body });
    expect(reply.status).toBe(400);
    expect(reply.body.code).toBe('invalid');
  });
});

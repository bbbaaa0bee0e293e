import { once } from 'node:events';
import net from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { NAUGHTY_STRINGS } from '../support/naughty-strings.ts';
import { ADMIN_KEY, startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

let api: TestApi;
beforeAll(async () => void (api = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none' } })));
afterAll(() => api.stop());
afterEach(async () => {
  expect(Object.keys(Object.prototype)).toEqual([]);
  expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  expect((await api.request('GET', '/health')).status).toBe(200);
});

let serial = 0;
/** A content of its own each time, so that nothing is a duplicate. */
const fresh = (fields: object = {}) => ({ content: `limit ${serial++}`, ...fields });
const letters = (count: number) => 'x'.repeat(count);
const list = (count: number, size = 1) =>
  Array.from({ length: count }, (_, index) => String(index).padStart(size, 'x'));
const nested = (depth: number): unknown => JSON.parse('{"a":'.repeat(depth) + '1' + '}'.repeat(depth));
const keyed = (count: number) => Object.fromEntries(list(count).map((key) => [key, 1]));
const metadataOf = (bytes: number) => ({ a: letters(bytes - '{"a":""}'.length) });

describe('a field of an add', () => {
  test.each<[string, object, object, number]>([
    ['content', { content: '1' + letters(262_143) }, { content: '2' + letters(262_144) }, 413],
    ['content', { content: '1' + 'é'.repeat(131_071) + 'x' }, { content: '2' + 'é'.repeat(131_072) }, 413],
    ['content', { content: '!' }, { content: '' }, 400],
    ['user_id', { user_id: letters(256) }, { user_id: letters(257) }, 400],
    ['user_id', { user_id: 'ü 你 😀' }, { user_id: 'a\nb' }, 400],
    ['user_id', { user_id: '\u00a0' }, { user_id: '\u0000' }, 400],
    ['session_id', { session_id: letters(256) }, { session_id: letters(257) }, 400],
    ['external_id', { external_id: letters(256) }, { external_id: letters(257) }, 400],
    ['external_id', { external_id: 'x' }, { external_id: '' }, 400],
    ['tags', { tags: list(64) }, { tags: list(65) }, 400],
    ['tags', { tags: [letters(128)] }, { tags: [letters(129)] }, 400],
    ['tags', { tags: [] }, { tags: [''] }, 400],
    ['tags', { tags: ['a'] }, { tags: 'a' }, 400],
    ['tags', { tags: ['a'] }, { tags: [1] }, 400],
    ['entities', { entities: list(64, 128) }, { entities: list(65, 128) }, 400],
    ['files', { files: list(64, 200) }, { files: list(65, 200) }, 400],
    ['title', { title: letters(1_024) }, { title: letters(1_025) }, 400],
    ['gist', { gist: letters(4_096) }, { gist: letters(4_097) }, 400],
    ['type', { type: letters(128) }, { type: letters(129) }, 400],
    ['metadata', { metadata: metadataOf(16_384) }, { metadata: metadataOf(16_385) }, 400],
    ['metadata', { metadata: nested(64) }, { metadata: nested(65) }, 400],
    ['metadata', { metadata: {} }, { metadata: [] }, 400],
    ['metadata', { metadata: { sector: 'semantic' } }, { metadata: { sector: 'other' } }, 400],
    ['metadata', { metadata: { sector: null } }, { metadata: { sector: 1 } }, 400],
    ['importance', { importance: 0 }, { importance: -0.001 }, 400],
    ['importance', { importance: 1 }, { importance: 1.001 }, 400],
    ['confidence', { confidence: 1 }, { confidence: '1' }, 400],
    ['event_time', { event_time: 253_402_300_799_999 }, { event_time: 253_402_300_800_000 }, 400],
    ['event_time', { event_time: -62_135_596_800_000 }, { event_time: -62_135_596_800_001 }, 400],
    ['event_time', { event_time: '2024-02-29' }, { event_time: '2023-02-29' }, 400],
    ['event_time', { event_time: '2024-01-01T00:00:00Z' }, { event_time: '2024-01-01T00:00:00' }, 400],
    ['event_time', { event_time: -1 }, { event_time: 1.5 }, 400],
    ['event_time', { event_time: 10_000_000_000 }, { event_time: 2026 }, 400],
    ['event_time', { event_time: 0 }, { event_time: 20_260_131 }, 400],
    ['expires_at', { expires_at: 9e12 }, { expires_at: 9_999_999_999 }, 400],
    ['valid_to', { valid_from: -1, valid_to: 0 }, { valid_from: 0, valid_to: 0 }, 400],
  ])('%s passes at its limit and is refused one over it', async (field, good, bad, status) => {
    const passed = await api.request('POST', '/memory/add', { body: fresh(good) });
    expect(passed.status, passed.text.slice(0, 300)).toBe(202);
    const stored = await api.request('GET', `/memory/${passed.body.id}`);
    const [name, value] = Object.entries(good)[0] as [string, unknown];
    if (!(name === 'event_time' && typeof value === 'string')) expect(stored.body[name]).toEqual(value);
    const refused = await api.request('POST', '/memory/add', { body: fresh(bad) });
    expect(refused.status).toBe(status);
    expect(refused.body.errors.join()).toContain(field);
    if (status === 413) expect(refused.body.detail).toContain('/memory/ingest');
  });

  test('that nobody knows is named together with those that are known', async () => {
    for (const key of ['colour', '__proto__', 'constructor', 'toString', 'Content']) {
      const body = `{"content": "x", ${JSON.stringify(key)}: {"polluted": true}}`;
      const reply = await api.request('POST', '/memory/add', { body });
      expect(reply.status).toBe(400);
      expect(reply.body.detail).toMatch(/^unknown field ".*"; allowed: content, user_id, session_id/);
      expect(reply.body.detail).toContain(JSON.stringify(key));
    }
  });

  test('is repeated with two others at most, and its first 32 characters', async () => {
    const names = ['a', 'b', 'c', 'd', 'e'].map((first) => first + 'ж'.repeat(60));
    const body = { content: 'x', ...Object.fromEntries(names.map((name) => [name, 1])) };
    const { detail } = (await api.request('POST', '/memory/add', { body })).body;
    const shown = names.slice(0, 3).map((name) => `"${name.slice(0, 32)}"`);
    expect(detail).toMatch(new RegExp(`^unknown field ${shown.join(', ')} and 2 more; allowed: content, user_id`));
  });

  test('inside a nested object is named with its path', async () => {
    const body = {
      query: 'x',
      filters: { event_time: { since: 1 }, tag: 'a' },
      weights: { similarity: 2, luck: 1 },
      column_weights: { body: 1 },
    };
    const reply = await api.request('POST', '/memory/query', { body });
    expect(reply.body.errors).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^filters: unknown field "tag"; allowed: sectors, types/),
        'filters.event_time: unknown field "since"; allowed: from, to',
        'weights.similarity: expected 0..1',
        'weights: unknown field "luck"; allowed: similarity, salience, recency, waypoint, activation, strength, confidence, alpha',
        'column_weights: unknown field "body"; allowed: context, title, content, gist, entities, tags, identifiers',
      ]),
    );
  });
});

describe('a limit elsewhere', () => {
  test.each<[string, object, object]>([
    ['query', { query: letters(8_192) }, { query: letters(8_193) }],
    ['query', { query: 'x' }, { query: '' }],
    ['k', { k: 200 }, { k: 201 }],
    ['k', { k: 1 }, { k: 0 }],
    ['k', { k: 2 }, { k: 2.5 }],
    ['k', { k: 2 }, { k: '2' }],
    ['min_score', { min_score: 1 }, { min_score: 1.1 }],
    ['vector_weight', { vector_weight: 0 }, { vector_weight: -0.1 }],
    ['max_hops', { max_hops: 4 }, { max_hops: 5 }],
    ['max_hops', { max_hops: 0 }, { max_hops: -1 }],
    ['decay_per_hop', { decay_per_hop: 1 }, { decay_per_hop: 1.01 }],
    ['k_sparse', { k_sparse: 1_000 }, { k_sparse: 1_001 }],
    ['k_dense', { k_dense: 1 }, { k_dense: 0 }],
    ['dense_sectors', { dense_sectors: 'candidate' }, { dense_sectors: 'some' }],
    ['session_prior', { session_prior: 1 }, { session_prior: -0.1 }],
    ['entity_graph', { entity_graph: false }, { entity_graph: 0 }],
    ['relative_floor', { relative_floor: 1 }, { relative_floor: 2 }],
    ['per_document', { per_document: 0 }, { per_document: 201 }],
    ['weights.salience', { weights: { salience: 1 } }, { weights: { salience: 1.5 } }],
    ['weights.salience', { weights: { salience: 0 } }, { weights: { salience: null } }],
    ['weights', { weights: {} }, { weights: [1] }],
    ['column_weights.title', { column_weights: { title: 10 } }, { column_weights: { title: 10.1 } }],
    ['token_budget', { token_budget: 1_000_000 }, { token_budget: 1_000_001 }],
    ['filters.users', { filters: { users: list(100) } }, { filters: { users: list(101) } }],
    ['filters.sessions', { filters: { sessions: ['a'] } }, { filters: { sessions: [] } }],
    ['filters.sectors', { filters: { sectors: ['semantic'] } }, { filters: { sectors: ['other'] } }],
    ['filters.metadata', { filters: { metadata: metadataOf(16_384) } }, { filters: { metadata: metadataOf(16_385) } }],
    ['filters.metadata', { filters: { metadata: keyed(32) } }, { filters: { metadata: keyed(33) } }],
    [
      'filters.metadata: at most 32 conditions',
      { filters: { metadata: { ...keyed(30), more: { $gt: 0, $lt: 1 } } } },
      { filters: { metadata: { ...keyed(30), more: { $gt: 0, $lt: 1, $ne: 2 } } } },
    ],
    ['filters.metadata', { filters: { metadata: {} } }, { filters: { metadata: null } }],
    ...['$in', '$nin'].map((operator): [string, object, object] => [
      `filters.metadata.a.${operator}: at most 100 entries`,
      { filters: { metadata: { a: { [operator]: list(100) } } } },
      { filters: { metadata: { a: { [operator]: list(101) } } } },
    ]),
    ['filters.metadata', { filters: { metadata: nested(64) } }, { filters: { metadata: nested(65) } }],
  ])('of a query: %s', async (field, good, bad) => {
    const passed = await api.request('POST', '/memory/query', { body: { query: 'x', ...good } });
    expect(passed.status, passed.text.slice(0, 300)).toBe(200);
    const refused = await api.request('POST', '/memory/query', { body: { query: 'x', ...bad } });
    expect(refused.status).toBe(400);
    expect(refused.body.errors.join()).toContain(field);
  });

  test('every filter at its limit at once still finds what passes them all', async () => {
    const words = list(100);
    const condition = {
      $eq: 1,
      $ne: null,
      $gt: 0,
      $gte: 1,
      $lt: 2,
      $lte: 1,
      $in: [1, null],
      $nin: [0, null],
      $exists: true,
    };
    const fields = { user_id: words[0], session_id: words[0], type: words[0], external_id: words[0] };
    await api.add(fresh({ ...fields, tags: list(64), metadata: keyed(64), event_time: '1970-01-02' }));
    const [first, second, third, ...others] = list(64);
    const conditions = { [first!]: condition, [second!]: condition, [third!]: condition };
    const atItsLimit = { ...conditions, ...Object.fromEntries(others.slice(0, 5).map((key) => [key, 1])) };
    const range = { from: 0, to: '9999-12-31' };
    const body = {
      query: 'limit',
      min_score: 0,
      user_id: words[0],
      filters: {
        types: words,
        tags: list(64),
        users: words,
        sessions: words,
        statuses: ['active', 'superseded', 'contradicted', 'archived'],
        external_ids: words,
        event_time: range,
        created_at: range,
        metadata: atItsLimit,
      },
    };
    const ask = (filters: object) => api.request('POST', '/memory/query', { body: { ...body, filters } });
    const found = await ask(body.filters);
    expect(found.status, found.text.slice(0, 300)).toBe(200);
    expect(found.body.matches).toHaveLength(1);
    // Sectors are known once a worker has looked, and none does here.
    const sectors = ['episodic', 'semantic', 'procedural', 'emotional', 'reflective'];
    const unclassified = await ask({ ...body.filters, sectors });
    expect([unclassified.status, unclassified.body.matches]).toEqual([200, []]);
  });

  test.each([
    ['/memory/all?l=10000', '/memory/all?l=10001'],
    ['/memory/all?l=1', '/memory/all?l=0'],
    ['/memory/all?u=100000000', '/memory/all?u=100000001'],
    ['/memory/all?sector=semantic', '/memory/all?sector=other'],
    ['/memory/all?l=5', '/memory/all?l=5&l=6'],
    ['/memory/all?l=5', '/memory/all?limit=5'],
    ['/memory/all?user_id=a', '/memory/all?user_id=%ff'],
    ['/memory/all', '/memory/all?%'],
    ['/jobs?state=dead&kind=memory', '/jobs?state=lost'],
    ['/jobs?l=1000', '/jobs?l=1e3'],
    ['/users/%C3%BC/memories', '/users/%FC/memories'],
    ['/users/a/memories?l=1000', `/users/${letters(257)}/memories`],
  ])('of a path: %s passes, %s does not', async (good, bad) => {
    expect((await api.request('GET', good)).status).toBe(200);
    const refused = await api.request('GET', bad);
    expect(refused.status).toBe(400);
    expect(refused.headers.get('content-type')).toBe('application/problem+json; charset=utf-8');
  });

  test('a page that is too long is told how to page', async () => {
    expect((await api.request('GET', '/memory/all?l=10001')).body.detail).toContain('1..10000; page with u');
  });

  test('a batch holds 1 to 100 items', async () => {
    const items = (count: number) => ({ items: Array.from({ length: count }, () => fresh()) });
    expect((await api.request('POST', '/memory/add/batch', { body: items(100) })).status).toBe(202);
    const over = await api.request('POST', '/memory/add/batch', { body: items(101) });
    expect([over.status, over.body.detail]).toEqual([400, expect.stringContaining('application/x-ndjson')]);
    for (const body of [items(0), {}, [], { items: {} }]) {
      expect((await api.request('POST', '/memory/add/batch', { body })).status).toBe(400);
    }
  });

  test('a batch does not wait, and says what to use instead', async () => {
    for (const [path, type] of [
      ['/memory/add/batch?wait=5', 'application/json'],
      ['/memory/add/batch?wait=5', 'application/x-ndjson'],
      ['/memory/add/batch?user_id=a', 'application/json'],
    ] as const) {
      const reply = await api.request('POST', path, { body: { items: [fresh()] }, headers: { 'content-type': type } });
      expect([reply.status, reply.body.detail]).toEqual([
        400,
        expect.stringMatching(/none are allowed on a batch.*token/),
      ]);
    }
  });

  test('a wait is at most a minute', async () => {
    expect((await api.request('POST', '/memory/add?wait=60001', { body: fresh() })).status).toBe(400);
    expect((await api.request('POST', '/memory/add?wait=1', { body: fresh() })).status).toBe(202);
    expect((await api.request('POST', '/memory/add?wait=-1', { body: fresh() })).status).toBe(400);
  });

  test('a JSON body holds 1 MiB, whether its length is announced or not', async () => {
    const body = (bytes: number) => `{"items":[${JSON.stringify(fresh())}]}`.padEnd(bytes, ' ');
    expect((await api.request('POST', '/memory/add/batch', { body: body(1_048_576) })).status).toBe(202);
    const over = await api.request('POST', '/memory/add/batch', { body: body(1_048_577) });
    expect([over.status, over.body.code]).toEqual([413, 'too_large']);
    const chunked = await fetch(`${api.url}/memory/add/batch`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${ADMIN_KEY}` },
      body: new Blob([body(1_048_577)]).stream(),
      duplex: 'half',
    });
    expect(chunked.status).toBe(413);
  });

  test('a body that announces 100 MB is refused before it was sent', async () => {
    const socket = net.connect(api.port, '127.0.0.1');
    socket.write(
      `POST /memory/add HTTP/1.1\r\nhost: localhost\r\nx-api-key: ${ADMIN_KEY}\r\ncontent-type: application/json\r\ncontent-length: 100000000\r\n\r\n{`,
    );
    const [reply] = (await once(socket, 'data')) as [Buffer];
    expect(reply.toString()).toMatch(/^HTTP\/1.1 413 /);
    socket.destroy();
  });
});

describe('a body that is none', () => {
  test.each<[string, string | Uint8Array, Record<string, string>, number]>([
    ['malformed', '{"content":', {}, 400],
    ['empty', '', {}, 400],
    ['a string', '"x"', {}, 400],
    ['a number', '1', {}, 400],
    ['null', 'null', {}, 400],
    ['an array', '[]', {}, 400],
    ['two values', '{}{}', {}, 400],
    ['NaN', '{"content":NaN}', {}, 400],
    ['single quotes', "{'content':'x'}", {}, 400],
    ['deep arrays', '{"content":"x","metadata":' + '['.repeat(5_000) + ']'.repeat(5_000) + '}', {}, 400],
    [
      'deep arrays in metadata',
      '{"content":"x","metadata":{"a":' + '['.repeat(5_000) + ']'.repeat(5_000) + '}}',
      {},
      400,
    ],
    ['the deepest that fits', '['.repeat(524_288) + ']'.repeat(524_288), {}, 400],
    ['a huge number', '{"content":"x","importance":1e999}', {}, 400],
    ['bytes that are no UTF-8', new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x7d]), {}, 400],
    ['UTF-16', new Uint8Array(Buffer.from('\ufeff{"content":"x"}', 'utf16le')), {}, 400],
    ['another type', '{"content":"x"}', { 'content-type': 'text/plain' }, 415],
    ['a form', 'content=x', { 'content-type': 'application/x-www-form-urlencoded' }, 415],
    ['another charset', '{"content":"x"}', { 'content-type': 'application/json; charset=utf-16' }, 415],
    ['compressed', 'x', { 'content-encoding': 'gzip' }, 415],
  ])('%s', async (_name, body, headers, status) => {
    const reply = await api.request('POST', '/memory/add', { body, headers });
    expect(reply.status).toBe(status);
    expect(reply.headers.get('content-type')).toBe('application/problem+json; charset=utf-8');
    expect(reply.body).toMatchObject({
      type: 'about:blank',
      title: status === 400 ? 'Bad Request' : 'Unsupported Media Type',
      status,
      code: status === 400 ? 'invalid' : 'unsupported',
      detail: expect.any(String),
      request_id: reply.headers.get('x-request-id'),
    });
    if (status === 415 && headers['content-type'] && !headers['content-type'].startsWith('application/json')) {
      expect(reply.body.detail).toContain('application/json');
    }
  });
});

describe('what went in', () => {
  test('keys of metadata that look like a prototype are data, through PATCH too', async () => {
    const metadata =
      '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":2}},"toJSON":"x","a":{"__proto__":[3]}}';
    const added = await api.request('POST', '/memory/add', { body: `{"content":"proto keys","metadata":${metadata}}` });
    expect(added.status, added.text).toBe(202);
    const stored = await api.request('GET', `/memory/${added.body.id}`);
    expect(JSON.stringify(stored.body.metadata)).toBe(metadata);
    const patched = await api.request('PATCH', `/memory/${added.body.id}`, {
      body: '{"metadata":{"__proto__":{"polluted":4},"b":1}}',
    });
    expect(patched.status, patched.text).toBe(200);
    const after = Object.entries(patched.body.metadata);
    expect(after).toContainEqual(['__proto__', { polluted: 4 }]);
    expect(after).toContainEqual(['constructor', { prototype: { polluted: 2 } }]);
    const filter = '{"query":"proto","filters":{"metadata":{"__proto__":{"polluted":4}}}}';
    expect((await api.request('POST', '/memory/query', { body: filter })).status).toBe(200);
  });

  test.each([
    'content',
    'title',
    'gist',
    'type',
    'user_id',
    'session_id',
    'external_id',
    'tags',
    'entities',
    'files',
    'metadata',
    'key',
  ])('comes back equal or was refused: naughty strings as %s', async (field) => {
    expect(NAUGHTY_STRINGS.length).toBeGreaterThan(150);
    const wrap = (text: string): Record<string, unknown> => {
      if (field === 'key') return { metadata: { [text]: text } };
      if (field === 'metadata') return { metadata: { text } };
      return { [field]: ['tags', 'entities', 'files'].includes(field) ? [text] : text };
    };
    let accepted = 0;
    for (const text of NAUGHTY_STRINGS) {
      const wrapped = wrap(text);
      const shown = JSON.stringify(text.slice(0, 40));
      // User ids keep the contents of one field apart from those of another, which would make them duplicates.
      const body = field === 'content' ? { user_id: 'naughty', ...wrapped } : fresh(wrapped);
      const reply = await api.request('POST', '/memory/add', { body });
      expect([200, 202, 400, 409], `${shown}: ${reply.text}`).toContain(reply.status);
      if (!text.isWellFormed()) expect(reply.status, shown).toBe(400);
      if (reply.status >= 400) continue;
      accepted++;
      const stored = await api.request('GET', `/memory/${reply.body.id}`);
      const [name, value] = Object.entries(wrapped)[0]!;
      // A duplicate is the same text after normalisation: the first of them is what was kept.
      // A gist of nothing is none, and then it is read off the text.
      if (reply.status === 202 && !(name === 'gist' && value === '')) expect(stored.body[name], shown).toEqual(value);
    }
    expect(accepted).toBeGreaterThan(80);
  });

  test.each(['query', 'filters.tags', 'filters.users', 'filters.metadata'])(
    'naughty strings as %s are answered',
    async (field) => {
      for (const text of NAUGHTY_STRINGS) {
        const filters = {
          'filters.tags': { tags: [text] },
          'filters.users': { users: [text] },
          'filters.metadata': { metadata: { [text]: text } },
        };
        const body =
          field === 'query' ? { query: text } : { query: 'x', filters: filters[field as keyof typeof filters] };
        const reply = await api.request('POST', '/memory/query', { body });
        expect([200, 400], `${JSON.stringify(text.slice(0, 40))}: ${reply.text}`).toContain(reply.status);
      }
    },
  );

  test('naughty strings in a path are answered', async () => {
    for (const text of NAUGHTY_STRINGS.filter((candidate) => candidate.isWellFormed())) {
      const segment = encodeURIComponent(text);
      for (const path of [
        `/memory/${segment}/links`,
        `/jobs/${segment}`,
        `/users/${segment}/memories`,
        `/memory/all?user_id=${segment}`,
      ]) {
        const reply = await api.request('GET', path);
        expect([200, 400, 404], `${path}: ${reply.text}`).toContain(reply.status);
      }
    }
  });
});

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { ADMIN_KEY, startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { fileTest } from '../support/store-settings.ts';

const PATH = '/settings/retrieval';
/** Every option, none at its default. */
const ALL = {
  profile: 'composite',
  weights: { similarity: 0.5, salience: 0, alpha: 1 },
  column_weights: { title: 3, context: 0 },
  vector_weight: 0,
  k_sparse: 40,
  k_dense: 30,
  dense_sectors: 'candidate',
  session_prior: 0.1,
  max_hops: 0,
  decay_per_hop: 0.25,
  entity_graph: false,
  rerank: 'none',
  min_score: 0,
  relative_floor: 0.1,
  cut: 'none',
  per_document: 0,
};

describe('a tenant’s defaults for its queries', () => {
  let api: TestApi;
  const put = (body: unknown, key?: string) =>
    api.request('PUT', PATH, { body, ...(key === undefined ? {} : { key }) });
  const get = async (key?: string) => (await api.request('GET', PATH, key === undefined ? {} : { key })).body;
  const explain = async (fields: object = {}, key?: string) => {
    const body = { query: 'otter river', min_score: 0, explain: true, reinforce: false, ...fields };
    const reply = await api.request('POST', '/memory/query', { body, ...(key === undefined ? {} : { key }) });
    expect(reply.status, reply.text).toBe(200);
    const [match] = reply.body.matches as unknown as { explain: { profile: string; weights: object } }[];
    return match!.explain;
  };

  beforeAll(async () => {
    api = await startApi({ folder: tempFolder() });
    await api.add({ content: 'an otter swims in the river' });
  });
  beforeEach(async () => void (await put({})));
  afterAll(() => api.stop());

  test('are empty at first, come back as they were put, and can be put back as they came', async () => {
    expect(await get()).toEqual({});
    const reply = await put(ALL);
    expect([reply.status, reply.body]).toEqual([200, ALL]);
    expect(await get()).toEqual(ALL);
    await put(await get());
    expect(await get()).toEqual(ALL);
  });

  test('are replaced as a whole, and null is not said', async () => {
    await put(ALL);
    expect((await put({ max_hops: 1, profile: null, weights: null })).body).toEqual({ max_hops: 1 });
    expect((await put({})).body).toEqual({});
  });

  test('apply to the next query that says nothing itself, name by name where it says something', async () => {
    expect(await explain()).toMatchObject({
      profile: 'composite',
      weights: { similarity: 0.7, salience: 0.1, recency: 0.1, waypoint: 0.1 },
    });
    await put({ profile: 'activation', weights: { recency: 0.5, strength: 0 } });
    expect(await explain()).toMatchObject({
      profile: 'activation',
      weights: { activation: 0.5, recency: 0.5, strength: 0, confidence: 0.1 },
    });
    expect(await explain({ weights: { strength: 0.3 } })).toMatchObject({
      weights: { activation: 0.5, recency: 0.5, strength: 0.3, confidence: 0.1 },
    });
    // The recency that was set counts in each profile that reads one.
    expect(await explain({ profile: 'composite' })).toMatchObject({
      profile: 'composite',
      weights: { similarity: 0.7, salience: 0.1, recency: 0.5, waypoint: 0.1 },
    });
  });

  test('come before the settings, and the request before them', async () => {
    await using strict = await startApi({ folder: tempFolder(), settings: { OM_MIN_SCORE: '1' }, threads: false });
    await strict.add({ content: 'an otter swims in the river' });
    const count = async (fields: object) => {
      const body = { query: 'otter of another river', reinforce: false, ...fields };
      return (await strict.request('POST', '/memory/query', { body })).body.matches.length;
    };
    expect(await count({})).toBe(0);
    await strict.request('PUT', PATH, { body: { min_score: 0 } });
    expect(await count({})).toBe(1);
    expect(await count({ min_score: 1 })).toBe(0);
    await strict.request('PUT', PATH, { body: { min_score: null } });
    expect(await count({})).toBe(0);
  });

  fileTest('are seen at once by another process that serves the same files', async () => {
    const folder = tempFolder();
    await using one = await startApi({ folder, threads: false });
    await using other = await startApi({ folder, threads: false });
    await one.add({ content: 'an otter swims in the river' });
    const profiles = async () => {
      const body = { query: 'otter', min_score: 0, explain: true, reinforce: false };
      const reply = await other.request('POST', '/memory/query', { body });
      return (reply.body.matches as unknown as { explain: { profile: string } }[]).map(
        ({ explain }) => explain.profile,
      );
    };
    expect(await profiles()).toEqual(['composite']);
    await one.request('PUT', PATH, { body: { profile: 'retention' } });
    expect(await profiles()).toEqual(['retention']);
  });

  test('are a tenant’s own', async () => {
    api.engine.control.createTenant('second');
    const { secret } = api.engine.control.createKey({ tenantId: 'second', role: 'admin' });
    await api.add({ content: 'an otter swims in the river' }, secret);
    await put({ profile: 'fusion' });
    expect(await get(secret)).toEqual({});
    expect((await explain({}, secret)).profile).toBe('composite');
    await put({ profile: 'retention' }, secret);
    expect([await get(), await get(secret)]).toEqual([{ profile: 'fusion' }, { profile: 'retention' }]);
    expect((await explain()).profile).toBe('fusion');
  });

  test('are read by any key and put by an admin’s', async () => {
    const { control } = api.engine;
    for (const [role, status] of [
      ['read', 403],
      ['write', 403],
      ['admin', 200],
    ] as const) {
      const { secret } = control.createKey({ tenantId: 'default', role });
      expect((await api.request('GET', PATH, { key: secret })).status).toBe(200);
      expect((await put({ max_hops: 1 }, secret)).status).toBe(status);
    }
    expect((await api.request('GET', PATH, { key: null })).status).toBe(401);
  });

  test.each([
    [{ colour: 1 }, /^unknown field "colour"; allowed: profile, similarity, penalties, weights, column_weights/],
    // What belongs to one query is no default.
    [{ k: 5 }, /^unknown field "k"; allowed: profile/],
    [{ weights: { luck: 1 } }, /^weights: unknown field "luck"; allowed: similarity, salience, recency, waypoint/],
    [{ weights: { recency: 1.5 } }, /^weights.recency: expected 0\.\.1$/],
    [{ max_hops: 5 }, /^max_hops: expected 0\.\.4$/],
    // As in a query that asks for it: this server has no model.
    [{ rerank: 'llm' }, /^rerank: llm needs a language model/],
    [[], /^expected a JSON object$/],
  ])('%j is refused and changes nothing', async (body, detail) => {
    await put({ max_hops: 1 });
    const reply = await put(body);
    expect(reply.status).toBe(400);
    expect(reply.body.detail).toMatch(detail);
    expect(await get()).toEqual({ max_hops: 1 });
  });

  test('take no query parameters but force', async () => {
    for (const method of ['GET', 'PUT']) {
      const reply = await api.request(method, `${PATH}?profile=fusion`, method === 'PUT' ? { body: {} } : {});
      const detail =
        method === 'GET' ? 'query parameters: none are allowed here' : 'unknown field "profile"; allowed: force';
      expect([reply.status, reply.body.detail]).toEqual([400, detail]);
    }
  });

  test('a page of another origin may put them where CORS allows it', async () => {
    await using open = await startApi({
      folder: tempFolder(),
      settings: { OM_CORS_ORIGINS: 'https://app.example' },
      threads: false,
    });
    const reply = await fetch(`${open.url}${PATH}`, {
      method: 'OPTIONS',
      headers: {
        origin: 'https://app.example',
        'access-control-request-method': 'PUT',
        authorization: `Bearer ${ADMIN_KEY}`,
      },
    });
    expect(reply.headers.get('access-control-allow-methods')).toContain('PUT');
  });
});

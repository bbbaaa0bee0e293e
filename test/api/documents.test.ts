import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { EngineError } from '../../src/engine/errors.ts';
import { openEvents } from '../support/event-stream.ts';
import { FORM_TYPE, multipart } from '../support/multipart.ts';
import { startApi, type Reply, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { fileTest } from '../support/store-settings.ts';

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const idOf = (reply: Reply) => reply.body['document_id'] as string;

describe('a document that waits', () => {
  /** Without workers: it stays as it was handed in. */
  const folder = tempFolder();
  let api: TestApi;
  beforeAll(async () => void (api = await startApi({ folder, settings: { OM_EMBEDDINGS: 'none' } })));
  afterAll(() => api.stop());

  let serial = 0;
  const freshText = () => `Text number ${serial++} of these tests.`;
  const add = async (fields: object = {}) =>
    idOf(await api.request('POST', '/memory/ingest', { body: { text: freshText(), user_id: 'ana', ...fields } }));
  const listed = async (query: string) => {
    const { items, total } = (await api.request('GET', `/documents?${query}`)).body;
    return { ids: items.map(({ id }) => id), total };
  };
  const listUploads = () => fs.readdirSync(path.join(folder, 'cairn.uploads'));

  test('is shown with everything that is known of it', async () => {
    const text = freshText();
    const id = await add({ text, file_name: 'a.txt' });
    const { status, body } = await api.request('GET', `/documents/${id}`);
    expect([status, body]).toEqual([
      200,
      {
        id,
        user_id: 'ana',
        session_id: '',
        external_id: null,
        state: 'queued',
        error: null,
        source: 'upload',
        url: null,
        file_name: 'a.txt',
        format: 'text',
        bytes: text.length,
        sha256: sha256(text),
        title: '',
        authors: [],
        language: null,
        published_at: null,
        modified_at: null,
        type: null,
        tags: [],
        metadata: {},
        event_time: null,
        expires_at: null,
        written_by: expect.any(String),
        root_memory_id: null,
        chunks: 0,
        pages: null,
        characters: 0,
        tokens: 0,
        progress: { pages_done: 0, chunks: 0, embedded: 0, linked: 0, failed: 0, stages: {} },
        receipt: null,
        warnings: [],
        job_id: expect.any(String),
        created_at: expect.any(Number),
        updated_at: expect.any(Number),
        shown_at: null,
        ready_at: null,
      },
    ]);
  });

  test('is listed, the newest first, by each filter and page', async () => {
    const text = freshText();
    const one = await add({ user_id: 'lists', session_id: 's1', external_id: 'x1', text });
    const two = await add({ user_id: 'lists', session_id: 's2' });
    const three = await add({ user_id: 'lists' });
    expect(await listed('user_id=lists')).toEqual({ ids: [three, two, one], total: 3 });
    expect(await listed('user_id=lists&l=1&u=1')).toEqual({ ids: [two], total: 3 });
    expect(await listed('user_id=lists&session_id=s2')).toEqual({ ids: [two], total: 1 });
    expect(await listed('user_id=lists&external_id=x1')).toEqual({ ids: [one], total: 1 });
    expect(await listed(`ids=${one},${three},absent`)).toEqual({ ids: [three, one], total: 2 });
    expect(await listed(`sha256=${sha256(text).toUpperCase()}`)).toEqual({ ids: [one], total: 1 });
    expect(await listed('user_id=lists&state=queued')).toEqual({ ids: [three, two, one], total: 3 });
    expect(await listed('user_id=lists&state=ready')).toEqual({ ids: [], total: 0 });
  });

  test.each([
    'state=done',
    'sha256=abc',
    'ids=',
    `ids=${Array.from({ length: 101 }, (_, index) => index).join(',')}`,
    'ids=a&ids=b',
    'external_id=',
    'l=1001',
    'user_id=%00',
    'name=x',
  ])('is not listed by %s', async (query) => {
    expect((await api.request('GET', `/documents?${query}`)).status).toBe(400);
  });

  test('has no content, no chunks and no hits', async () => {
    const id = await add();
    const content = await api.request('GET', `/documents/${id}/content`);
    expect([content.status, content.body.code]).toEqual([409, 'conflict']);
    expect((await api.request('GET', `/documents/${id}/chunks`)).body).toEqual({ id, items: [], total: 0 });
  });

  test.each([
    'GET /documents/:id',
    'GET /documents/:id/content',
    'GET /documents/:id/chunks',
    'GET /documents/:id/events',
    'PUT /documents/:id',
    'POST /documents/:id/cancel',
    'DELETE /documents/:id',
  ])('%s answers for another user as for a document that is absent', async (line) => {
    const [method, route] = line.split(' ') as [string, string];
    const id = await add({ user_id: 'ana' });
    const body = method === 'PUT' ? { text: freshText() } : undefined;
    const ask = (asked: string, query: string) =>
      api.request(method, route.replace(':id', asked) + query, body === undefined ? {} : { body });
    const [foreign, absent] = [await ask(id, '?user_id=ben'), await ask('absent', '?user_id=ben')];
    expect([foreign.status, foreign.body.code]).toEqual([404, 'not_found']);
    expect([absent.status, absent.body.code, absent.body.detail]).toEqual([404, 'not_found', foreign.body.detail]);
    expect((await ask(id, '?user=ana')).status).toBe(400);
    expect((await api.request('GET', `/documents/${id}?user_id=ana`)).body.state).toBe('queued');
  });

  fileTest('is cancelled once, and its file goes', async () => {
    const before = listUploads();
    const id = await add();
    expect(listUploads()).toHaveLength(before.length + 1);
    const cancelled = await api.request('POST', `/documents/${id}/cancel`);
    expect([cancelled.status, cancelled.body]).toEqual([200, expect.objectContaining({ id, state: 'cancelled' })]);
    expect(listUploads()).toEqual(before);
    const again = await api.request('POST', `/documents/${id}/cancel`);
    expect([again.status, again.body.code]).toEqual([409, 'conflict']);
  });

  test('is deleted with its file', async () => {
    const before = listUploads();
    const id = await add();
    const deleted = await api.request('DELETE', `/documents/${id}`);
    expect([deleted.status, deleted.body]).toEqual([
      200,
      {
        ok: true,
        deleted: 0,
        removed: expect.objectContaining({ memories: 0, vectors: 0, jobs: 1 }),
        erasure: expect.any(String),
      },
    ]);
    expect(listUploads()).toEqual(before);
    expect((await api.request('GET', `/documents/${id}`)).status).toBe(404);
    expect((await api.request('DELETE', `/documents/${id}`)).status).toBe(404);
  });

  test('is replaced by a form, JSON or a page, and stays who it is', async () => {
    const id = await add({ external_id: 'r1', session_id: 's1', title: 'Old', tags: ['old'] });
    const put = (body: unknown, headers: Record<string, string> = {}) =>
      api.request('PUT', `/documents/${id}`, { body, headers });
    const text = freshText();
    const replaced = await put({ text, title: 'New' });
    expect([replaced.status, replaced.headers.get('location')], replaced.text).toEqual([202, `/documents/${id}`]);
    const identity = { id, user_id: 'ana', session_id: 's1', external_id: 'r1' };
    const current = async () => (await api.request('GET', `/documents/${id}`)).body;
    expect(await current()).toMatchObject({ ...identity, title: 'New', tags: [], sha256: sha256(text) });
    const form = multipart([{ fileName: 'b.md', content: freshText() }]);
    expect((await put(form, { 'content-type': FORM_TYPE })).status).toBe(202);
    expect(await current()).toMatchObject({ ...identity, file_name: 'b.md' });
    expect((await put({ url: 'https://example.com/replacing' })).status).toBe(202);
    expect(await current()).toMatchObject({ ...identity, source: 'url', url: 'https://example.com/replacing' });
  });

  test('is not replaced by another user, under the external id of another or by what is no document', async () => {
    await add({ external_id: 'r3' });
    const id = await add({ external_id: 'r2' });
    const before = listUploads();
    const put = async (body: unknown, headers: Record<string, string> = {}) =>
      (await api.request('PUT', `/documents/${id}`, { body, headers })).status;
    expect(await put({ text: freshText(), user_id: 'ben' })).toBe(404);
    const form = multipart([{ name: 'user_id', content: 'ben' }, { fileName: 'b.md' }]);
    expect(await put(form, { 'content-type': FORM_TYPE })).toBe(404);
    expect(await put({ text: freshText(), external_id: 'r3' })).toBe(409);
    expect(await put({ text: freshText(), content_type: 'application/pdf' })).toBe(415);
    expect(await put({ url: 'ftp://example.com' })).toBe(400);
    expect(await put({})).toBe(400);
    expect(listUploads()).toEqual(before);
    const unchanged = await api.request('GET', `/documents/${id}`);
    expect(unchanged.body).toMatchObject({ state: 'queued', user_id: 'ana', external_id: 'r2' });
  });

  test('gets another external id, under which it is known from then on', async () => {
    const text = freshText();
    const id = await add({ external_id: 'before', text });
    const renamed = await api.request('PUT', `/documents/${id}`, { body: { text, external_id: 'after' } });
    expect(renamed.status).toBe(202);
    expect((await api.request('GET', `/documents/${id}`)).body).toMatchObject({ external_id: 'after' });
    expect(await add({ external_id: 'after', text: freshText() })).toBe(id);
    expect(await add({ external_id: 'before', text })).not.toBe(id);
    // The name of another user's document is free.
    await add({ external_id: 'of ben', user_id: 'ben', text });
    const own = await api.request('PUT', `/documents/${id}`, { body: { text, external_id: 'of ben' } });
    expect(own.status).toBe(202);
  });

  test('says so on its stream of events when it is cancelled or deleted', async () => {
    const cancelled = await add();
    const first = await openEvents(api, `/documents/${cancelled}/events`);
    expect(first.response.headers).toMatchObject({ 'content-type': 'text/event-stream; charset=utf-8' });
    expect(await first.next()).toMatchObject({ event: 'state', data: { id: cancelled, state: 'queued' } });
    await api.request('POST', `/documents/${cancelled}/cancel`);
    expect(await first.next()).toMatchObject({ event: 'state', data: { state: 'cancelled' } });
    expect(await first.next()).toBeUndefined();
    const deleted = await add();
    const second = await openEvents(api, `/documents/${deleted}/events`);
    await second.next();
    await api.request('DELETE', `/documents/${deleted}`);
    expect(await second.next()).toEqual({ event: 'gone', data: {} });
    expect(await second.next()).toBeUndefined();
  });

  test('is read once a look for all who watch it', async () => {
    const id = await add();
    const tenant = await api.engine.tenant('default');
    const asCaller = vi.spyOn(tenant, 'as').mockReturnValue(tenant);
    onTestFinished(() => asCaller.mockRestore());
    const streams = await Promise.all(Array.from({ length: 20 }, () => openEvents(api, `/documents/${id}/events`)));
    for (const { next } of streams) expect(await next()).toMatchObject({ data: { state: 'queued' } });
    const looks = vi.spyOn(await api.engine.tenant('default'), 'getDocument');
    onTestFinished(() => looks.mockRestore());
    await (await api.engine.tenant('default')).cancelDocument(id);
    for (const { next } of streams) {
      expect(await next()).toMatchObject({ event: 'state', data: { state: 'cancelled' } });
      expect(await next()).toBeUndefined();
    }
    expect(looks.mock.calls.length).toBeGreaterThan(0);
    expect(looks.mock.calls.length).toBeLessThan(streams.length);
  });

  test('has a job among the jobs of its kind', async () => {
    const id = await add();
    const { body: memory } = await api.request('POST', '/memory/add', { body: { content: freshText() } });
    const jobsOf = async (kind: string) =>
      (await api.request('GET', `/jobs?kind=${kind}&l=1000`)).body as unknown as {
        total: number;
        items: readonly { kind: string; document_id: string | null; id: string }[];
      };
    const documents = await jobsOf('document');
    expect(new Set(documents.items.map(({ kind }) => kind))).toEqual(new Set(['document']));
    expect(documents.items.map(({ document_id }) => document_id)).toContain(id);
    expect(documents.total).toBe(documents.items.length);
    const memories = await jobsOf('memory');
    expect(memories.items.map(({ id: job }) => job)).toEqual([memory.job_id]);
    expect(memories.total).toBe(1);
  });

  test('needs a key that may write to be changed, and one that may read to be seen', async () => {
    const id = await add();
    const { secret } = api.engine.control.createKey({ tenantId: 'default', role: 'read', label: '' });
    for (const [method, route] of [
      ['PUT', ''],
      ['DELETE', ''],
      ['POST', '/cancel'],
    ] as const) {
      expect((await api.request(method, `/documents/${id}${route}`, { key: secret })).status).toBe(403);
    }
    for (const route of ['', '/chunks', '/content', '/events']) {
      expect((await api.request('GET', `/documents/${id}${route}`, { key: null })).status).toBe(401);
    }
    expect((await api.request('GET', `/documents/${id}`, { key: secret })).status).toBe(200);
  });
});

describe('a document that was read', () => {
  let api: TestApi;
  const topics = ['harbour', 'lighthouse', 'bakery', 'orchard', 'library', 'station', 'theatre', 'market'];
  const section = (topic: string) =>
    `## The ${topic}\n\n${Array.from({ length: 12 }, (_, index) => `Sentence ${index} tells of the ${topic} in some detail.`).join(' ')}\n\n`;
  const text = `# A town 😀\n\n${topics.map(section).join('')}`;
  let id: string;
  beforeAll(async () => {
    const settings = { OM_VEC_DIM: '256', OM_CHUNK_TOKENS: '128', OM_CHUNK_OVERLAP_TOKENS: '16' };
    api = await startApi({ folder: tempFolder(), workers: true, settings });
    const body = { data: text, content_type: 'md', user_id: 'ana', file_name: 'town.md' };
    const reply = await api.request('POST', '/memory/ingest?wait=60000', { body });
    expect([reply.status, reply.body.state], reply.text).toEqual([200, 'ready']);
    id = idOf(reply);
  });
  afterAll(() => api.stop());

  test('gives back its text whole, also to a client that only wants to know', async () => {
    const content = await api.request('GET', `/documents/${id}/content`);
    expect(content.headers.get('content-type')).toBe('text/markdown; charset=utf-8');
    expect(content.text.trim()).toBe(text.trim());
    const head = await api.request('HEAD', `/documents/${id}/content`);
    expect([head.status, head.text]).toEqual([200, '']);
  });

  test('breaks the connection off where it is replaced while its text is sent', async () => {
    const tenant = await api.engine.tenant('default');
    const asCaller = vi.spyOn(tenant, 'as').mockReturnValue(tenant);
    onTestFinished(() => asCaller.mockRestore());
    const cutOff = vi.spyOn(tenant, 'documentContent').mockImplementation(async () => cutShort());
    onTestFinished(() => cutOff.mockRestore());
    await expect(api.request('GET', `/documents/${id}/content`)).rejects.toThrow();
  });

  test('has chunks, each a memory, whose places rejoin to the text', async () => {
    type Item = { memory_id: string; chunk: number; start_offset: number; end_offset: number; heading_path: string[] };
    const page = async (query: string) =>
      (await api.request('GET', `/documents/${id}/chunks?${query}`)).body as unknown as {
        items: Item[];
        total: number;
      };
    const { items, total } = await page('l=1000');
    expect(total).toBe(items.length);
    expect(total).toBeGreaterThanOrEqual(topics.length);
    expect(items.map(({ chunk }) => chunk)).toEqual(items.map((_, index) => index));
    expect((await page('l=2&u=3')).items).toEqual(items.slice(3, 5));
    const { text: content } = await api.request('GET', `/documents/${id}/content`);
    let covered = 0;
    for (const { memory_id, start_offset, end_offset } of items) {
      expect(start_offset).toBeLessThanOrEqual(covered);
      const memory = (await api.request('GET', `/memory/${memory_id}`)).body;
      expect(memory['content']).toBe(content.slice(start_offset, end_offset));
      covered = end_offset;
    }
    expect(covered).toBe(content.length);
    expect(items.find(({ heading_path }) => heading_path.includes('The bakery'))).toBeDefined();
  });

  test('is found by its words, with its place', async () => {
    const body = { query: 'orchard', user_id: 'ana', filters: { documents: [id] }, min_score: 0 };
    const { matches } = (await api.request('POST', '/memory/query', { body })).body;
    const [first] = matches as unknown as { document: object }[];
    expect(first!.document).toMatchObject({ document_id: id, title: 'A town 😀', file_name: 'town.md' });
  });

  test('is seen to its end by who watches it', async () => {
    const body = { text: `${text}\nOne more sentence.\n`, content_type: 'text/markdown', external_id: 'watched' };
    const added = await api.request('POST', '/memory/ingest', { body });
    const { next } = await openEvents(api, `/documents/${idOf(added)}/events`);
    const states: (string | undefined)[] = [];
    for (let event = await next(); event !== undefined; event = await next()) states.push(event.data.state);
    expect(states.at(-1)).toBe('ready');
    for (const state of states.slice(0, -1)) expect(state).toBeOneOf(['queued', 'processing']);
  });

  test('is deleted with all its memories', async () => {
    const body = { text: 'A document that is about to go: quixotry.', user_id: 'ana' };
    const added = await api.request('POST', '/memory/ingest?wait=60000', { body });
    const { items } = (await api.request('GET', `/documents/${idOf(added)}/chunks`)).body;
    const [{ memory_id }] = items as unknown as [{ memory_id: string }];
    const deleted = await api.request('DELETE', `/documents/${idOf(added)}?user_id=ana`);
    expect([deleted.status, deleted.body.deleted]).toEqual([200, 2]);
    expect((await api.request('GET', `/memory/${memory_id}`)).status).toBe(404);
    const found = await api.request('POST', '/memory/query', { body: { query: 'quixotry', min_score: 0 } });
    expect(found.body.matches.filter(({ content }) => content.includes('quixotry'))).toEqual([]);
  });

  test('keeps the chunks that a replacement has too, and loses the others', async () => {
    const before = (await api.request('GET', `/documents/${id}`)).body;
    const body = { text: text.replaceAll('market', 'museum'), content_type: 'md', file_name: 'town.md' };
    const replaced = await api.request('PUT', `/documents/${id}?wait=60000`, { body });
    expect([replaced.status, replaced.body['outcome'], replaced.body.state], replaced.text).toEqual([
      200,
      'replaced',
      'ready',
    ]);
    const receipt = replaced.body['receipt'] as { stored: number; kept: number; removed: number };
    expect(receipt.kept).toBeGreaterThan(0);
    expect(receipt.stored + receipt.kept).toBe(replaced.body['chunks']);
    expect(receipt.kept + receipt.removed).toBe(before['chunks']);
    const { text: content } = await api.request('GET', `/documents/${id}/content`);
    expect([content.includes('museum'), content.includes('market')]).toEqual([true, false]);
  });
});

/** A text whose document is replaced after its first piece. */
async function* cutShort(): AsyncIterable<string> {
  yield '# A town';
  throw new EngineError('conflict', 'the document was replaced');
}

import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { openEvents as openEventStream } from '../support/event-stream.ts';
import { startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** Without workers: a job stays where a test puts it. */
let api: TestApi;
beforeAll(async () => void (api = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none' } })));
afterAll(() => api.stop());

const openEvents = (from: TestApi, jobId: string) => openEventStream(from, `/jobs/${jobId}/events`);

describe('jobs', () => {
  test('are listed with their counts, by state and page', async () => {
    const { id, job_id } = await api.add({ content: 'a job to look at' });
    const one = await api.request('GET', `/jobs/${job_id}`);
    expect(one.body).toEqual({
      id: job_id,
      kind: 'memory',
      memory_id: id,
      document_id: null,
      step: 'encode',
      state: 'queued',
      priority: 0,
      attempts: 0,
      crashes: 0,
      run_at: expect.any(Number),
      error: null,
      created_at: expect.any(Number),
      updated_at: expect.any(Number),
      finished_at: null,
      timeline: [{ event: 'queued', at: expect.any(Number) }],
    });
    const queued = await api.request('GET', '/jobs?state=queued&kind=memory&l=1000');
    expect(queued.body.items).toContainEqual(one.body);
    expect(queued.body.total).toBe(queued.body.items.length);
    expect(Object.keys(queued.body.counts).sort()).toEqual(['active', 'cancelled', 'dead', 'done', 'failed', 'queued']);
    expect((await api.request('GET', '/jobs?state=dead')).body).toMatchObject({ items: [], total: 0 });
    expect((await api.request('GET', '/jobs?l=1&u=100000')).body.items).toEqual([]);
  });

  test('that have not ended are counted by step, with the age of the oldest', async () => {
    const idle = await startApi({ folder: tempFolder() });
    onTestFinished(() => idle.stop());
    const backlog = async () => (await idle.request('GET', '/jobs?state=dead')).body['backlog'];
    expect(await backlog()).toEqual([]);
    for (const content of ['first', 'second']) await idle.add({ content });
    const body = { content_type: 'text/plain', data: Buffer.from('a page').toString('base64') };
    expect((await idle.request('POST', '/memory/ingest', { body })).status).toBe(202);
    expect(await backlog()).toEqual([
      { step: 'ingest', queued: 1, active: 0, failed: 0, oldest_age_ms: expect.any(Number) },
      { step: 'encode', queued: 2, active: 0, failed: 0, oldest_age_ms: expect.any(Number) },
    ]);
  });

  test('are cancelled, retried and discarded', async () => {
    const { id, job_id } = await api.add({ content: 'a job to cancel' });
    const cancelled = await api.request('POST', `/jobs/${job_id}/cancel`);
    expect([cancelled.status, cancelled.body.state]).toEqual([200, 'cancelled']);
    expect((await api.request('POST', `/jobs/${job_id}/cancel`)).status).toBe(409);
    const retried = await api.request('POST', `/jobs/${job_id}/retry`);
    expect([retried.status, retried.body.state]).toEqual([200, 'queued']);
    expect((await api.request('DELETE', `/jobs/${job_id}`)).status).toBe(409);
    await api.request('POST', `/jobs/${job_id}/cancel`);
    const discarded = await api.request('DELETE', `/jobs/${job_id}`);
    expect([discarded.status, discarded.body]).toEqual([200, { ok: true }]);
    expect((await api.request('GET', `/jobs/${job_id}`)).status).toBe(404);
    expect((await api.request('GET', `/memory/${id}`)).status).toBe(200);
  });

  test.each([
    'GET /jobs/absent',
    'GET /jobs/absent/events',
    'POST /jobs/absent/retry',
    'POST /jobs/absent/cancel',
    'DELETE /jobs/absent',
  ])('%s is a 404', async (line) => {
    const [method, path] = line.split(' ') as [string, string];
    expect((await api.request(method, path)).status).toBe(404);
  });
});

test('an id in another spelling is nobody’s', async () => {
  const { job_id } = await api.add({ content: 'spelled once' });
  for (const spelled of [job_id.toUpperCase(), job_id.replaceAll('-', ''), `-${job_id}`]) {
    expect((await api.request('GET', `/jobs/${spelled}`)).status).toBe(404);
    expect((await api.request('POST', `/jobs/${spelled}/retry`)).status).toBe(404);
  }
});

describe('GET /jobs/:id/events', () => {
  test('tells the state on connect, each change, and ends with the job', async () => {
    const { job_id } = await api.add({ content: 'a job to watch' });
    const { response, next } = await openEvents(api, job_id);
    expect(response.headers).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'x-accel-buffering': 'no',
      'cache-control': 'no-store',
    });
    expect(await next()).toMatchObject({ event: 'state', data: { id: job_id, state: 'queued' } });
    await api.request('POST', `/jobs/${job_id}/cancel`);
    expect(await next()).toMatchObject({ event: 'state', data: { id: job_id, state: 'cancelled' } });
    expect(await next()).toBeUndefined();
    const late = await openEvents(api, job_id);
    expect(await late.next()).toMatchObject({ data: { state: 'cancelled' } });
    expect(await late.next()).toBeUndefined();
  });

  test('says so when the job is gone', async () => {
    const { id, job_id } = await api.add({ content: 'a job to remove' });
    const { next } = await openEvents(api, job_id);
    await next();
    await api.request('DELETE', `/memory/${id}`);
    const last = await next();
    expect([last?.event, last?.data.state]).toBeOneOf([
      ['gone', undefined],
      ['state', 'cancelled'],
    ]);
    expect(await next()).toBeUndefined();
  });

  test('says so when the job leaves the bounds of the key', async () => {
    const { id, job_id } = await api.add({ content: 'a job on the quay', user_id: 'watch-ida', tags: ['quay'] });
    const bounds = { tenantId: 'default', role: 'read', userId: 'watch-ida', tags: ['quay'] };
    const { secret } = api.engine.control.createKey(bounds as never);
    const own = await openEventStream(api, `/jobs/${job_id}/events`, { key: secret });
    const all = await openEvents(api, job_id);
    for (const { next } of [own, all]) expect(await next()).toMatchObject({ data: { state: 'queued' } });
    await api.request('PATCH', `/memory/${id}`, { body: { tags: ['ship'] } });
    const now = performance.now.bind(performance);
    const later = vi.spyOn(performance, 'now').mockImplementation(() => now() + 6_000);
    onTestFinished(() => later.mockRestore());
    expect(await own.next()).toMatchObject({ event: 'gone' });
    expect(await own.next()).toBeUndefined();
    await api.request('POST', `/jobs/${job_id}/cancel`);
    expect(await all.next()).toMatchObject({ data: { state: 'cancelled' } });
  });

  test('survives a client that leaves, and ends when the server stops', async () => {
    const stopping = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none' } });
    const { job_id } = await stopping.add({ content: 'a job to leave' });
    const left = await openEvents(stopping, job_id);
    await left.next();
    left.request.destroy();
    const stays = await openEvents(stopping, job_id);
    await stays.next();
    const stopped = stopping.stop();
    expect(await stays.next()).toBeUndefined();
    await stopped;
  });
});

test('a watched job is seen to the end of its work', async () => {
  await using working = await startApi({ folder: tempFolder(), workers: true });
  const { job_id } = await working.add({ content: 'a job that gets done' });
  const { next } = await openEvents(working, job_id);
  const states: (string | undefined)[] = [];
  for (let event = await next(); event !== undefined; event = await next()) states.push(event.data.state);
  expect(states.at(-1)).toBe('done');
});

import { expect, onTestFinished, test } from 'vitest';
import { runCairn } from '../cli/run-cairn.ts';
import { startFakeServer } from '../support/fake-server.ts';
import { ADMIN_KEY, startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

const POOL = [
  'Ana swims every Monday morning at the city pool before work.',
  'Ana swims every Monday morning at the city pool before work, and in winter too.',
];

interface Made {
  readonly id: string;
  readonly job_id: string;
  readonly memory_id: string | null;
  readonly source_ids: readonly string[];
}

async function start({ workers = true } = {}): Promise<{
  api: TestApi;
  ids: string[];
  keyOf: (key: object) => string;
}> {
  const api = await startApi({ folder: tempFolder(), settings: { OM_VEC_DIM: '256' }, workers });
  onTestFinished(() => api.stop());
  const ids: string[] = [];
  for (const content of POOL) {
    const added = await api.request('POST', `/memory/add${workers ? '?wait=60000' : ''}`, {
      body: { content, user_id: 'ana' },
    });
    ids.push(added.body['id']);
  }
  const keyOf = (key: object) =>
    api.engine.control.createKey({ tenantId: 'default', role: 'write', ...key } as never).secret;
  return { api, ids, keyOf };
}

const listOf = async (api: TestApi, query = '', key?: string) =>
  (await api.request('GET', `/consolidations${query}`, key === undefined ? {} : { key })).body
    .items as unknown as Made[];

test('memories are gathered, listed and undone over HTTP, and the audit log says so', async () => {
  const { api, ids } = await start();
  const dry = await api.request('POST', '/consolidations', { body: { user_id: 'ana', dry_run: true } });
  expect([dry.status, dry.body]).toMatchObject([
    200,
    { proposals: [{ user_id: 'ana', content: POOL[1], source_ids: ids }], truncated: false },
  ]);
  expect(await listOf(api)).toEqual([]);

  const run = await api.request('POST', '/consolidations?wait=60000');
  expect([run.status, run.body]).toMatchObject([200, { state: 'done' }]);
  expect(run.headers.get('location')).toBe(`/jobs/${run.body.job_id}`);
  const [made] = await listOf(api, `?job_id=${run.body.job_id}`);
  expect(made).toMatchObject({ job_id: run.body.job_id, source_ids: ids });
  expect((await api.request('GET', `/memory/${made!.memory_id}`)).body).toMatchObject({ content: POOL[1] });
  expect((await api.request('GET', '/jobs?kind=consolidation')).body).toMatchObject({ total: 1 });
  expect((await api.request('GET', `/consolidations?before=${made!.id}`)).body).toEqual({ items: [] });
  expect((await api.request('GET', '/consolidations?before=none')).status).toBe(400);

  expect((await api.request('POST', `/consolidations/${made!.id}/undo`)).body).toEqual({ undone: 1 });
  expect((await api.request('GET', `/memory/${made!.memory_id}`)).status).toBe(404);
  expect(await listOf(api)).toMatchObject([{ id: made!.id, memory_id: null, source_ids: ids }]);
  expect((await api.request('POST', '/consolidations/none/undo')).status).toBe(404);
  expect((await api.request('POST', '/consolidations', { body: { user_id: 'eve' } })).status).toBe(404);
  const { items } = (await api.request('GET', '/audit')).body as unknown as { items: { action: string }[] };
  expect(items.map(({ action }) => action)).toEqual(
    expect.arrayContaining(['consolidation.request', 'consolidation.undo']),
  );
});

test('a run under way answers a request for more than it does with 409, and the audit log has its cancelling', async () => {
  const { api } = await start({ workers: false });
  const run = await api.request('POST', '/consolidations');
  expect(run.status).toBe(202);
  const again = await api.request('POST', '/consolidations', { body: { again: true } });
  expect([again.status, again.body.detail]).toEqual([409, expect.stringContaining(run.body.job_id)]);
  expect((await api.request('POST', `/consolidations/${run.body.job_id}/undo`)).body).toEqual({ undone: 0 });
  const { items } = (await api.request('GET', '/audit')).body as unknown as { items: { action: string }[] };
  expect(items.find(({ action }) => action === 'consolidation.undo')).toMatchObject({
    detail: { id: run.body.job_id, undone: 0, cancelled: 1 },
  });
});

test('a key that is bound to a user gathers, sees and undoes only what is its user’s; one bound to tags nothing', async () => {
  const { api, keyOf } = await start();
  const [ana, eve, tagged] = [keyOf({ userId: 'ana' }), keyOf({ userId: 'eve' }), keyOf({ tags: ['work'] })];
  for (const [method, path] of [
    ['POST', '/consolidations'],
    ['GET', '/consolidations'],
    ['POST', '/consolidations/none/undo'],
  ] as const)
    expect((await api.request(method, path, { key: tagged })).status).toBe(403);
  expect((await api.request('POST', '/consolidations', { key: eve, body: { user_id: 'ana' } })).status).toBe(403);
  expect((await api.request('POST', '/consolidations', { key: eve })).status).toBe(404);
  const run = await api.request('POST', '/consolidations?wait=60000', { key: ana });
  expect([run.status, run.body]).toMatchObject([200, { state: 'done' }]);
  const [made] = await listOf(api, '', ana);
  expect(await listOf(api, '', eve)).toEqual([]);
  for (const id of [made!.id, made!.job_id])
    expect((await api.request('POST', `/consolidations/${id}/undo`, { key: eve })).status).toBe(404);
  expect((await api.request('POST', `/consolidations/${made!.job_id}/undo`, { key: ana })).body).toEqual({ undone: 1 });
});

test('a key that is bound to a user follows the run that it asked for, and none over all users', async () => {
  const { api, keyOf } = await start({ workers: false });
  const [ana, eve] = [keyOf({ userId: 'ana' }), keyOf({ userId: 'eve' })];
  const { body } = await api.request('POST', '/consolidations', { key: ana });
  const statusFor = async (id: string, key: string) => (await api.request('GET', `/jobs/${id}`, { key })).status;
  expect((await api.request('GET', `/jobs/${body.job_id}`, { key: ana })).body).toMatchObject({ state: 'queued' });
  expect(await statusFor(body.job_id, eve)).toBe(404);
  expect(await statusFor(body.job_id, keyOf({ userId: 'ana', tags: ['work'] }))).toBe(404);
  const ofAll = await api.request('POST', '/consolidations');
  expect(await statusFor(ofAll.body.job_id, ana)).toBe(404);
});

test('the command line gathers, lists and undoes', async () => {
  const { api } = await start();
  const settings = { CAIRN_URL: api.url, CAIRN_API_KEY: ADMIN_KEY };
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await runCairn(args, { settings });
    expect([code, stderr]).toEqual([0, '']);
    return stdout;
  };
  expect(await run('consolidate', '--user', 'ana', '--dry-run')).toMatch(/2 memories of ana[^]*1 memory would be made/);
  const made = await run('consolidate');
  expect(made).toMatch(/2 memories were gathered into 1 memory\.[^]*cairn consolidations undo \S+/);
  expect(await run('consolidations')).toContain('ana');
  const job = /consolidations undo (\S+)/.exec(made)![1]!;
  expect(await run('consolidations', 'undo', job)).toContain('1 gathered memory erased');
  expect(await run('consolidate')).toContain('nothing to gather');
});

test('a run that failed ends the command with an error, after its reply as JSON', async () => {
  const reply = { job_id: 'j', state: 'dead', error: { code: 'internal', message: 'the disk is broken' } };
  await using server = await startFakeServer((response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(reply));
  });
  const settings = { CAIRN_URL: server.url, CAIRN_API_KEY: ADMIN_KEY };
  const { code, stdout, stderr } = await runCairn(['consolidate', '--json'], { settings });
  expect([code, JSON.parse(stdout)]).toEqual([1, reply]);
  expect(stderr).toContain('job j is dead: the disk is broken');
});

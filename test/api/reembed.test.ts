import { expect, test } from 'vitest';
import { ADMIN_KEY, startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { runCairn } from '../cli/run-cairn.ts';

const OLD = { provider: 'synthetic', model: 'hashed-v1', dimensions: 256 };
const NEW = { ...OLD, dimensions: 512 };

/** A file whose memories are by another model than the settings name, with no worker at it. */
async function startChanged(): Promise<TestApi> {
  const folder = tempFolder();
  {
    await using before = await startApi({ folder, settings: { OM_VEC_DIM: '256' }, workers: true, threads: false });
    const { token } = await before.add({ content: 'The ferry to Oslo leaves at noon' });
    await (await before.engine.tenant('default')).waitFor(token, 120_000);
  }
  return startApi({ folder, settings: { OM_VEC_DIM: '512' } });
}

test('a change of the model is begun, watched, paused and given up', async () => {
  await using api = await startChanged();
  const needed = { state: 'needed', phase: null, live: OLD, configured: NEW, done: 0, total: 1, failed: 0 };
  const { status, body } = await api.request('GET', '/admin/reembed');
  expect([status, body]).toMatchObject([200, { ...needed, estimate: { memories: 1, tokens: 8 }, error: null }]);
  for (const path of ['/admin/reembed/pause', '/admin/reembed']) {
    const method = path.endsWith('pause') ? 'POST' : 'DELETE';
    expect(await api.request(method, path)).toMatchObject({ status: 409, body: { code: 'conflict' } });
  }
  const begun = { status: 202, body: { state: 'running', phase: 'embed', live: OLD } };
  expect(await api.request('POST', '/admin/reembed')).toMatchObject(begun);
  expect(await api.request('POST', '/admin/reembed')).toMatchObject(begun); // Twice is once.
  expect((await api.request('GET', '/jobs?kind=reembed')).body.items).toMatchObject([
    { kind: 'reembed', step: 'link' },
  ]);
  expect(await api.request('POST', '/admin/reembed/pause')).toMatchObject({ status: 200, body: { state: 'paused' } });
  expect(await api.request('POST', '/admin/reembed')).toMatchObject(begun);
  expect(await api.request('DELETE', '/admin/reembed')).toMatchObject({ status: 200, body: needed });
  expect((await api.request('GET', '/jobs')).body.counts).toMatchObject({ queued: 0, dead: 0 });
});

test('a start says whether it goes live without what the model refuses, and nothing else', async () => {
  await using api = await startChanged();
  const start = (body: object) => api.request('POST', '/admin/reembed', { body });
  expect(await start({ without_refused: true })).toMatchObject({ status: 202, body: { state: 'running' } });
  expect(await start({ without_refused: 'yes' })).toMatchObject({ status: 400, body: { code: 'invalid' } });
  expect(await start({ model: 'other' })).toMatchObject({ status: 400, body: { code: 'invalid' } });
});

test('memories without vectors of the live model are said to need them', async () => {
  const folder = tempFolder();
  {
    await using words = await startApi({ folder, settings: { OM_EMBEDDINGS: 'none' }, workers: true, threads: false });
    const { token } = await words.add({ content: 'The ferry to Oslo leaves at noon' });
    await (await words.engine.tenant('default')).waitFor(token, 120_000);
  }
  await using api = await startApi({ folder, settings: { OM_VEC_DIM: '256' }, threads: false });
  expect((await api.request('GET', '/admin/reembed')).body).toMatchObject({
    state: 'needed',
    done: 0,
    total: 1,
    failed: 0,
    estimate: { memories: 1 },
  });
  const { stdout } = await runCairn(['reembed', '--status', '--url', api.url, '--key', ADMIN_KEY]);
  expect(stdout).toContain('1 memory of 1 without vectors of synthetic hashed-v1 (256 dimensions).');
  expect(stdout).toContain('To embed: 1 memory');
});

test('which model answers stands in /health, /ready and /stats', async () => {
  await using api = await startChanged();
  expect((await api.request('GET', '/health')).body['embedding']).toMatchObject({ ...NEW, live: OLD, degraded: false });
  expect((await api.request('GET', '/ready')).body).toMatchObject({ ready: true, embedding: { live: OLD } });
  expect((await api.request('GET', '/stats')).body['embedding']).toEqual({
    live: OLD,
    configured: NEW,
    degraded: null,
  });
});

test('only an admin may, and with OM_EMBEDDINGS=none nobody', async () => {
  await using api = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none' }, threads: false });
  expect(await api.request('GET', '/admin/reembed')).toMatchObject({
    status: 200,
    body: { state: 'current', live: null },
  });
  expect(await api.request('POST', '/admin/reembed')).toMatchObject({ status: 400 });
  expect((await api.request('POST', '/admin/reembed', { key: null })).status).toBe(401);
  expect((await api.request('GET', '/admin/reembed?all=1')).status).toBe(400);
});

test('cairn reembed says what it will take before it begins', async () => {
  await using api = await startChanged();
  const cairn = (...args: string[]) =>
    runCairn(['reembed', ...args, '--url', api.url, '--key', String(api.engine.config.OM_API_KEY)]);
  const { stdout: needed } = await cairn('--status');
  expect(needed).toContain('The vectors are by synthetic hashed-v1 (256 dimensions)');
  expect(needed).toContain('the settings name synthetic hashed-v1 (512 dimensions)');
  expect(needed).toContain('To embed: 1 memory, some 8 tokens.');
  const { stdout: begun } = await cairn();
  expect(begun.indexOf('To embed')).toBeLessThan(begun.indexOf('running: embedding, 0 of 1 memory'));
  expect((await cairn('--pause')).stdout).toContain('paused: embedding');
  expect((await cairn('--cancel')).stdout).toContain('The vectors are by');
  expect(await cairn('--cancel')).toMatchObject({ code: 1, stdout: '' });
});

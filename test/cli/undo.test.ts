import { afterAll, beforeAll, expect, test } from 'vitest';
import { ADMIN_KEY, startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { runCairn } from './run-cairn.ts';

const folder = tempFolder();
let api: TestApi;
const cairn = (...args: string[]) =>
  runCairn(args, { settings: { CAIRN_URL: api.url, CAIRN_API_KEY: ADMIN_KEY, OM_DB_PATH: `${folder}/none` }, folder });

beforeAll(async () => {
  api = await startApi({ folder: tempFolder(), threads: false, settings: { OM_EMBEDDINGS: 'none' } });
});
afterAll(() => api.stop());

test('the lists of standing queries and webhooks name their key, and an undo of the key counts what it removed', async () => {
  const { record, secret: key } = api.engine.control.createKey({ tenantId: 'default', role: 'write' });
  const webhook = { url: 'https://example.com/hook' };
  await api.request('POST', '/standing', { body: { query: 'Who swims?', webhook }, key });
  await api.request('POST', '/webhooks', { body: webhook, key });
  await api.request('POST', '/memory/add', { body: { content: 'The pool is closed.' }, key });
  for (const list of ['standing', 'webhooks']) expect((await cairn(list, 'list')).stdout).toContain(record.id);
  const undone = await cairn('audit', 'undo', record.id, '--yes');
  expect([undone.code, undone.stderr]).toEqual([0, '']);
  expect(undone.stdout).toContain('erased 1 memory and 0 documents');
  expect(undone.stdout).toContain('erased 1 standing query and 2 webhooks');
  const receipt = /told this once: (\S+)\.\S+/.exec(undone.stdout)?.[1];
  expect((await cairn('erasures')).stdout).toContain(receipt);
  for (const list of ['standing', 'webhooks']) expect((await cairn(list, 'list')).stdout).not.toContain(record.id);
});

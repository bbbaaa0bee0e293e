import fs from 'node:fs';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import yazl from 'yazl';
import { ADMIN_KEY, startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { runCairn } from './run-cairn.ts';

/** What a memory, a question or a file holds is shown and not obeyed, whatever command shows it. */

/** Sets the title of a terminal and clears it, by both ways to begin a sequence. */
const ORDERS = '\u001b]0;owned\u0007\u001b[2J\u009b2J';
/** Control characters but for the line break and the tab. */
const CONTROL = /[^\P{Cc}\n\t]/u;

const folder = tempFolder();
let api: TestApi;
const cairn = (...args: string[]) =>
  runCairn(args, { settings: { CAIRN_URL: api.url, CAIRN_API_KEY: ADMIN_KEY, OM_DB_PATH: `${folder}/none` }, folder });

beforeAll(async () => {
  api = await startApi({ folder: tempFolder(), workers: true, settings: { OM_VEC_DIM: '256' } });
  for (const end of ['', ', and in winter too'])
    await api.request('POST', '/memory/add?wait=60000', {
      body: { content: `Ana ${ORDERS} swims every Monday at the city pool before work${end}.`, user_id: 'ana' },
    });
  await api.request('POST', '/standing', { body: { query: `Who ${ORDERS} swims?`, user_id: 'ana' } });
});
afterAll(() => api.stop());

test.each([
  ['consolidate', '--dry-run', '--user', 'ana'],
  ['standing', 'list'],
])('%s shows no control character of a text', async (...args) => {
  const { code, stdout, stderr } = await cairn(...args);
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).toContain('swims');
  expect(stdout).not.toMatch(CONTROL);
});

test('JSON holds the text as it is', async () => {
  const { stdout } = await cairn('standing', 'list', '--json');
  expect(stdout).not.toMatch(CONTROL);
  expect(JSON.parse(stdout)).toMatchObject({ items: [{ query: `Who ${ORDERS} swims?` }] });
});

test('names of files are shown without control characters, in what is damaged and in errors', async () => {
  const zip = new yazl.ZipFile();
  const damaged = '[{"uuid":"c1","chat_messages":[{"uuid":"m1","text":"hello","sender":"human"}, nonsense ]}]';
  zip.addBuffer(Buffer.from(damaged), `a${ORDERS}/conversations.json`);
  zip.addBuffer(Buffer.from('[]'), 'users.json');
  zip.end();
  fs.writeFileSync(path.join(folder, 'export.zip'), await buffer(zip.outputStream));
  const imported = await cairn('import', 'claude', 'export.zip');
  expect(imported.code).toBe(1);
  expect(imported.stdout).toContain('conversations.json');
  const missing = await cairn('import', `none${ORDERS}.json`);
  expect([missing.code, missing.stderr]).toEqual([1, expect.stringContaining('no such file')]);
  for (const shown of [imported.stdout, imported.stderr, missing.stderr]) expect(shown).not.toMatch(CONTROL);
});

import fs from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { createRandom } from '../../src/engine/random.ts';
import { plantedValues } from '../engine/privacy/planted-values.ts';
import { startApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { runCairn } from './run-cairn.ts';

test('scan names kinds and ids, never values, and redacts only when confirmed, earlier versions too', async () => {
  const folder = tempFolder();
  const settings = { OM_DB_PATH: path.join(folder, 'cairn.sqlite') };
  const key = plantedValues(createRandom(2), 1).find(({ kind }) => kind === 'github_key')!.value;
  let id = '';
  {
    await using api = await startApi({ folder });
    ({ id } = await api.add({ content: `the deploy key is ${key}`, user_id: 'ana' }));
    await api.request('PATCH', `/memory/${id}`, { body: { tags: [key] } });
    await api.add({ content: 'nothing to see', user_id: 'ben' });
  }
  const found = await runCairn(['scan'], { settings });
  expect(found).toMatchObject({ code: 0, stdout: expect.stringMatching(/github_key +2 +1/) as string });
  expect(found.stdout).toContain(`github_key: ${id}`);
  expect(found.stdout + found.stderr).not.toContain(key);
  expect((await runCairn(['scan', '--user', 'ben'], { settings })).stdout).toContain('No sensitive values');
  expect((await runCairn(['scan', '--redact'], { settings })).stdout).toContain('would redact 1 memory');
  expect((await runCairn(['scan'], { settings })).stdout).toContain('found in 1 memory');
  expect((await runCairn(['scan', '--redact', '--yes'], { settings })).stdout).toContain('redacted: 1 memory');
  expect((await runCairn(['scan'], { settings })).stdout).toContain('No sensitive values');
  {
    await using api = await startApi({ folder });
    const { body } = await api.request('GET', `/memory/${id}`);
    expect(body['content']).toBe('the deploy key is [REDACTED:github_key]');
    expect((await api.request('GET', `/memory/${id}/history`)).body.items).toEqual([]);
  }
  for (const name of fs.readdirSync(folder)) {
    if (fs.statSync(path.join(folder, name)).isFile()) {
      expect(fs.readFileSync(path.join(folder, name)).includes(key)).toBe(false);
    }
  }
});

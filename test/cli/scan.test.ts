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

test('scan looks through items, earlier versions, session logs, recalls and evaluation sets', async () => {
  const folder = tempFolder();
  const settings = { OM_DB_PATH: path.join(folder, 'cairn.sqlite') };
  const key = plantedValues(createRandom(3), 1).find(({ kind }) => kind === 'github_key')!.value;
  const item = { user_id: 'ana', namespace: 'settings', key: 'deploy', content: 'how to deploy' };
  let former = '';
  {
    await using api = await startApi({ folder });
    await api.request('PUT', '/items', { body: { ...item, value: { token: key } } });
    ({ id: former } = await api.add({ content: `once the key was ${key}`, user_id: 'ana' }));
    await api.request('PATCH', `/memory/${former}`, { body: { content: 'the key is in the vault' } });
    const items = [
      { role: 'user', content: 'hello' },
      { role: 'user', content: `use ${key}` },
    ];
    await api.request('POST', '/sessions/trip/log', { body: { user_id: 'ana', items } });
    await api.request('POST', '/sessions/trip/log', { body: { user_id: 'ben', items: ['nothing'] } });
    await api.request('POST', '/memory/query', { body: { query: `what is ${key} for`, user_id: 'ana' } });
    const question = { query: 'which key', user_id: 'ana', expected: [key] };
    await api.request('POST', '/evals', { body: { name: 'keys', items: [question] } });
  }
  const found = await runCairn(['scan'], { settings });
  expect(found.stdout).toMatch(/github_key +5 +5/);
  expect(found.stdout).toContain('ana/trip#1');
  expect(found.stdout).toContain(former);
  expect(found.stdout).toContain('keys#0');
  expect(found.stdout).toContain('found in 2 memories, 1 log item, 1 recall, 1 evaluation item');
  expect(found.stdout + found.stderr).not.toContain(key);
  expect((await runCairn(['scan', '--user', 'ben'], { settings })).stdout).toContain('No sensitive values');
  expect((await runCairn(['scan', '--redact', '--yes'], { settings })).stdout).toContain('redacted: 2 memories');
  expect((await runCairn(['scan'], { settings })).stdout).toContain('No sensitive values');
  {
    await using api = await startApi({ folder });
    const put = await api.request('GET', '/items?user_id=ana&namespace=settings&key=deploy');
    expect(put.body['value']).toEqual({ token: '[REDACTED:github_key]' });
    const log = (await api.request('GET', '/sessions/trip/log?user_id=ana')).body.items;
    expect(log).toMatchObject([{ item: { content: 'hello' } }, { item: { content: 'use [REDACTED:github_key]' } }]);
    expect((await api.request('GET', `/memory/${former}/history`)).body.items).toEqual([]);
    const records = (await api.request('GET', '/audit?action=scan.redact')).body.items;
    const id = expect.any(String) as string;
    expect(records.map(({ key, detail }) => [key, detail] as unknown[])).toEqual([
      ['cli', { place: 'evaluation item' }],
      ['cli', { place: 'recall', id }],
      ['cli', { place: 'log item' }],
      ['cli', { place: 'memory', id: former }],
      ['cli', { place: 'memory', id }],
    ]);
    const { items } = (await api.request('GET', '/evals/keys')).body;
    expect(items).toMatchObject([{ user_id: 'ana', expected: ['[REDACTED:github_key]'] }]);
  }
});

test('scan looks through the fields of documents and standing queries, and lists addresses that it cannot redact', async () => {
  const folder = tempFolder();
  const settings = { OM_DB_PATH: path.join(folder, 'cairn.sqlite') };
  const key = plantedValues(createRandom(4), 1).find(({ kind }) => kind === 'github_key')!.value;
  const document = {
    content_type: 'md',
    text: '# Notes',
    title: `Notes on ${key}`,
    metadata: { by: key },
    user_id: 'ana',
  };
  const question = { query: `who uses ${key}`, filters: { tags: [key] }, user_id: 'ana' };
  let [documentId, standingId] = ['', ''];
  {
    await using api = await startApi({ folder });
    const handedIn = await api.request('POST', '/memory/ingest', { body: { ...document, external_id: key } });
    documentId = String(handedIn.body['document_id']);
    standingId = String((await api.request('POST', '/standing', { body: question })).body['id']);
  }
  const found = await runCairn(['scan'], { settings });
  expect(found.stdout).toContain(`github_key: ${documentId} ${documentId} ${standingId}`);
  expect(found.stdout).toContain('found in 1 document, 1 standing query; 1 address of documents');
  expect(found.stdout + found.stderr).not.toContain(key);
  expect((await runCairn(['scan', '--user', 'ben'], { settings })).stdout).toContain('No sensitive values');
  expect((await runCairn(['scan', '--redact', '--yes'], { settings })).stdout).toContain(
    'redacted: 1 document, 1 standing query; 1 address of documents: hand the documents in again',
  );
  expect((await runCairn(['scan'], { settings })).stdout).toContain('found in 0 memories; 1 address of documents');
  {
    await using api = await startApi({ folder });
    const { body } = await api.request('GET', `/documents/${documentId}`);
    expect(body).toMatchObject({ title: 'Notes on [REDACTED:github_key]', metadata: { by: '[REDACTED:github_key]' } });
    const { body: standing } = await api.request('GET', `/standing/${standingId}`);
    expect(standing).toMatchObject({ query: 'who uses [REDACTED:github_key]' });
    expect(JSON.stringify(standing)).not.toContain(key);
  }
});

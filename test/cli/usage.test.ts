import fs from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { tempFolder } from '../support/temp-folder.ts';
import { runCairn } from './run-cairn.ts';

test('help lists every command, and each command has its own', async () => {
  const { code, stdout } = await runCairn(['--help']);
  expect(code).toBe(0);
  for (const command of [
    'serve',
    'api',
    'worker',
    'demo',
    'add',
    'query',
    'explain',
    'import',
    'ingest',
    'stats',
    'jobs',
    'tenants',
    'keys',
    'models',
    'backup',
    'restore',
    'rebuild-index',
    'scan',
    'decay',
  ]) {
    expect(stdout).toMatch(new RegExp(`^ {2}${command} `, 'm'));
  }
  expect(await runCairn(['import', '--help'])).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('--url <url>') as string,
  });
  expect((await runCairn(['--version'])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
});

test.each([
  [['nothing-like-it'], 'unknown command'],
  [[], 'Usage'],
  [['query'], 'missing required argument'],
  [['query', 'x', '--url', 'ftp://example.org'], 'expected an address'],
  [['decay'], '--preview'],
  [['decay', '--preview', '2001-01-01'], 'a day to come'],
  [['decay', '--preview', '2130-02-31'], 'a day to come'],
  [['decay', '--preview', '2130-'], 'a day to come'],
  [['decay', '--preview', '2130-1-31'], 'a day to come'],
  [['fading', '--by', '2130-01-31 (or so)'], 'a day to come'],
  [['restore', 'file'], '--yes'],
  [['tenants', 'erase', 'x'], '--yes'],
  [['keys', 'create', '--role', 'king'], 'Allowed choices'],
])('%j is an error of usage', async (args, message) => {
  const { code, stderr } = await runCairn(args, { settings: { OM_DB_PATH: `${tempFolder()}/cairn.sqlite` } });
  expect(stderr).toContain(message);
  expect(code).toBe(2);
});

test('a server that does not run is one line with what to do, and never shows the key', async () => {
  const key = 'a-secret-that-nobody-should-see';
  for (const args of [['stats'], ['import', import.meta.filename]]) {
    const { code, stdout, stderr } = await runCairn(args, { settings: { OM_PORT: '9', OM_API_KEY: key } });
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toBe(
      'cairn: no server at http://127.0.0.1:9: start it with `npm start` (or `cairn serve`), or name another with --url\n',
    );
  }
});

test('another program at the address is named as such', async () => {
  const server = http.createServer((_, response) => void response.end('<html>'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const url = `http://user:pass@127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { code, stderr } = await runCairn(['query', 'x', '--url', url.replace('user:pass@', '')]);
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: expect.stringMatching(/^cairn: what answers at .* is not a Cairn server.*\n$/) as string,
  });
});

test('wrong settings are one line that names each, without a stack', async () => {
  const { code, stderr } = await runCairn(['serve'], { settings: { OM_PORT: 'many', OM_MIN_SCORE: '7' } });
  expect(code).toBe(1);
  expect(stderr).toMatch(/^cairn: wrong settings: OM_PORT=many: .*; OM_MIN_SCORE=7: .*\n$/);
});

test('a data path that cannot be one names its setting and what to do', async () => {
  const folder = tempFolder();
  const file = path.join(folder, 'file');
  fs.writeFileSync(file, '');
  const settings = { OM_PORT: '0', OM_LOG_LEVEL: 'silent' };
  for (const [args, OM_DB_PATH] of [
    [['serve'], folder],
    [['keys', 'list'], path.join(file, 'cairn.sqlite')],
    [['keys', 'list'], path.join(file, 'below', 'cairn.sqlite')],
  ] as const) {
    const { code, stderr } = await runCairn(args, { settings: { ...settings, OM_DB_PATH } });
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(
        /^cairn: cannot open or make .*: set OM_DB_PATH to a file, not a folder, .*\n$/,
      ) as string,
    });
  }
});

test('a port in use is one line that says what to do', async () => {
  const server = http.createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const port = String((server.address() as AddressInfo).port);
  const settings = { OM_PORT: port, OM_DB_PATH: `${tempFolder()}/cairn.sqlite`, OM_LOG_LEVEL: 'silent' };
  const { code, stderr } = await runCairn(['serve'], { settings });
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: expect.stringMatching(/^cairn: cannot listen on .* \(OM_HOST, OM_PORT\): another program.*\n$/) as string,
  });
});

import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { callTool, connectStdio, ERAS, type Era } from '../support/mcp-client.ts';
import { ADMIN_KEY, startApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { runCairn } from './run-cairn.ts';

const LAUNCHER = path.resolve(import.meta.dirname, '../../bin/cairn.cjs');
/** A port at which nothing listens, so that no other server of this machine is found. */
const SILENT_PORT = '1';

/** Starts `cairn mcp` as an AI client does. */
async function startMcp(args: readonly string[], settings: Record<string, string>, era: Era = 'modern') {
  const { PATH = '', HOME = '' } = process.env;
  const env = { PATH, HOME, OM_PORT: SILENT_PORT, OM_VEC_DIM: '256', ...settings };
  const started = await connectStdio({ command: process.execPath, args: [LAUNCHER, 'mcp', ...args], env }, era);
  onTestFinished(() => started.client.close());
  return started;
}

test.each(ERAS)('starts a server where none answers, and ends it with standard input: %s client', async (era) => {
  const folder = tempFolder();
  const { client, stderr } = await startMcp([], { OM_DB_PATH: path.join(folder, 'cairn.sqlite') }, era);
  expect(await callTool(client, 'remember', { content: 'The bridge is open.' })).toContain('Stored as memory');
  expect(await callTool(client, 'recall', { query: 'is the bridge open?' })).toContain('The bridge is open.');
  expect((await client.listResources()).resources).toHaveLength(1);
  const address = fs.readFileSync(path.join(folder, 'cairn.address'), 'utf8');
  expect(stderr.join('')).toContain(`"url":"${address}"`);
  expect((await fetch(`${address}/health`)).status).toBe(200);
  await client.close();
  await vi.waitFor(() => expect(fetch(`${address}/health`)).rejects.toThrow(), { timeout: 120_000 });
});

test('two clients share the server of the first, and the second outlives it', async () => {
  const settings = { OM_DB_PATH: path.join(tempFolder(), 'cairn.sqlite') };
  const first = await startMcp([], settings);
  const second = await startMcp([], settings);
  await callTool(first.client, 'remember', { content: 'Said by the first client.' });
  expect(await callTool(second.client, 'list_recent')).toContain('Said by the first client.');
  await first.client.close();
  expect(await callTool(second.client, 'list_recent')).toContain('Said by the first client.');
});

test('talks to a running server with the key, the user and the tools of its options', async () => {
  await using api = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none' } });
  await api.add({ content: 'A secret of Ben.', user_id: 'ben' });
  const options = ['--url', api.url, '--key', ADMIN_KEY, '--user', 'ana smith'];
  const { client } = await startMcp([...options, '--allow-delete'], {});
  expect((await client.listTools()).tools.map(({ name }) => name)).toContain('forget');
  await callTool(client, 'remember', { content: 'Ünïcode goes through.' });
  const listed = await callTool(client, 'list_recent');
  expect(listed).toContain('user "ana smith"] Ünïcode goes through.');
  expect(listed).not.toContain('Ben');
  await expect(client.readResource({ uri: 'cairn://entity/Zürich' })).rejects.toMatchObject({ code: -32602 });
  await client.close();

  const { client: careful } = await startMcp(options, {});
  expect((await careful.listTools()).tools.map(({ name }) => name)).not.toContain('forget');
  await careful.close();
});

test('a redirect is told and not followed, so the key goes nowhere else', async () => {
  const seen: (string | undefined)[] = [];
  const elsewhere = http.createServer(({ headers }, response) => {
    seen.push(headers.authorization);
    response.end('{}');
  });
  const here = http.createServer(({ url }, response) => {
    if (url === '/health') return void response.end('{"ok":true,"embedding":{}}');
    response.writeHead(307, { location: addressOf(elsewhere) }).end();
  });
  for (const server of [elsewhere, here]) await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => [elsewhere, here].forEach((server) => server.close()));
  const input = `${JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'tools/list' })}\n`;
  const { stdout } = await runCairn(['mcp', '--url', addressOf(here), '--key', 'mine'], { input });
  expect(JSON.parse(stdout)).toMatchObject({
    id: 7,
    error: { message: expect.stringContaining('redirects to') as string },
  });
  expect(seen).toEqual([]);
});

test.each([
  ['without a body', {}, ''],
  ['with JSON of its own', { 'content-type': 'application/json' }, '{"message":"Forbidden"}'],
  ['with half a document', { 'content-type': 'application/json' }, '{"jsonrpc"'],
])('an error of a proxy %s answers the request with its status', async (_, headers, body) => {
  const proxy = http.createServer(({ url }, response) => {
    if (url === '/health') return void response.end('{"ok":true,"embedding":{}}');
    response.writeHead(502, headers).end(body);
  });
  await once(proxy.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void proxy.close());
  const input = `${JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'tools/list' })}\n`;
  const { stdout } = await runCairn(['mcp', '--url', addressOf(proxy)], { input });
  expect(JSON.parse(stdout)).toEqual({
    jsonrpc: '2.0',
    id: 7,
    error: { code: -32603, message: 'the server answered 502' },
  });
});

function addressOf(server: http.Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test('a wrong key, a line that is no JSON and a server that is not there are told', async () => {
  await using api = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none' } });
  const input = `nonsense\n${JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'tools/list' })}\n`;
  const refused = await runCairn(['mcp', '--url', api.url, '--key', 'wrong'], { input });
  const replies = refused.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { id: unknown; error: { code: number; message: string } });
  expect(replies).toEqual([
    { jsonrpc: '2.0', id: null, error: { code: -32700, message: 'the line is no JSON' } },
    { jsonrpc: '2.0', id: 7, error: { code: -32603, message: expect.stringContaining('--key') as string } },
  ]);
  expect(refused.code).toBe(0);
  const missing = await runCairn(['mcp', '--url', 'http://127.0.0.1:1']);
  expect([missing.code, missing.stdout]).toEqual([1, '']);
  expect(missing.stderr).toContain('no Cairn server answers at http://127.0.0.1:1');
});

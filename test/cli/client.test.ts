import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { connect, ConnectionError, RefusalError, type Client } from '../../src/cli/client.ts';
import { ChangedFileError } from '../../src/cli/file-form.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** Hands each request to `answer`, and notes its method. */
async function startServer(
  answer: http.RequestListener,
): Promise<{ readonly client: Client; readonly seen: string[]; readonly url: string }> {
  const seen: string[] = [];
  const server = http.createServer((request, response) => {
    seen.push(request.method!);
    answer(request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { client: connect({ url }, {}), seen, url };
}

function fileWith(content: string | Buffer, name = 'a.txt'): string {
  const file = path.join(tempFolder(), name);
  fs.writeFileSync(file, content);
  return file;
}

/** Answers the first request of each connection and ends the connection at the next. */
function forget(): http.RequestListener {
  const answered = new WeakSet<object>();
  return (request, response) => {
    if (answered.has(request.socket)) return void request.socket.destroy();
    answered.add(request.socket);
    request.resume().on('end', () => response.end('{"ok":true}'));
  };
}

test.for<[name: string, method: string, ask: (client: Client) => Promise<unknown>]>([
  ['a question', 'GET', (client) => client.getStats()],
  ['an order', 'POST', (client) => client.pauseReembed()],
  ['an order with a body', 'POST', (client) => client.queryMemories({ query: 'words of mine' })],
  ['a deletion', 'DELETE', (client) => client.cancelReembed()],
  ['a file', 'POST', (client) => client.sendForm('POST', '/a', { fields: {}, file: fileWith('Words.') })],
  [
    'a large file',
    'POST',
    (client) => client.sendForm('POST', '/a', { fields: {}, file: fileWith(Buffer.alloc(5_000_000)) }),
  ],
])('%s that a kept connection does not answer is sent again on a new one', async ([, method, ask]) => {
  const { client, seen } = await startServer(forget());
  expect(await client.getHealth()).toEqual({ ok: true });
  expect(await ask(client)).toEqual({ ok: true });
  expect(seen).toEqual(['GET', method, method]);
});

test('what a new connection does not answer is not sent again', async () => {
  const { client, seen } = await startServer((request) => request.socket.destroy());
  await expect(client.getStats()).rejects.toThrow(ConnectionError);
  await expect(client.startReembed({})).rejects.toThrow(ConnectionError);
  expect(seen).toEqual(['GET', 'POST']);
});

test('an answer that breaks off is not asked for again, and ends no more than its request', async () => {
  let requests = 0;
  const { client, seen } = await startServer((request, response) => {
    if (++requests === 1) return void response.end('{}');
    response.writeHead(200, { 'content-length': '100' }).write('{', () => request.socket.resetAndDestroy());
  });
  await client.getHealth();
  await expect(client.getStats()).rejects.toThrow(ConnectionError);
  expect(seen).toEqual(['GET', 'GET']);
});

test('a file that is refused while it is sent is told, and what is sent after it arrives', async () => {
  const { client } = await startServer((request, response) => {
    if (request.method === 'GET') return void response.end('{"ok":true}');
    // Answered in the middle, and read on, as Cairn does: so that the next piece of the file is just being read.
    request.once('data', () => response.writeHead(413).end('{"code":"too_large","detail":"it is too large"}')).resume();
  });
  const file = fileWith(Buffer.alloc(20_000_000));
  for (let upload = 0; upload < 10; upload++) {
    const refusal: unknown = await client
      .sendForm('POST', '/memory/ingest', { fields: {}, file })
      .catch((error: unknown) => error);
    expect(refusal).toMatchObject({ status: 413, code: 'too_large', message: 'it is too large' });
    expect(refusal).toBeInstanceOf(RefusalError);
    expect(await client.listDocuments()).toEqual({ ok: true });
  }
});

test('a form arrives as it was given, with its length', async () => {
  let received: { readonly length: string | undefined; readonly form: FormData; readonly bytes: number } | undefined;
  const read = async (request: http.IncomingMessage) => {
    const body = await buffer(request);
    const headers = { 'content-type': request.headers['content-type']! };
    const form = await new Response(body, { headers }).formData();
    received = { length: request.headers['content-length'], form, bytes: body.length };
  };
  const { client } = await startServer((request, response) => {
    void read(request).finally(() => response.end('{}'));
  });
  const content = Buffer.from(Array.from({ length: 100_000 }, (_, n) => n % 256));
  const file = fileWith(content, 'Ünïcode "quoted" \n name.bin');
  await client.sendForm('POST', '/a', { fields: { user_id: 'Zoë', metadata: '{"a":"\\n\\""}' }, file });
  const { length, form, bytes } = received!;
  expect(length).toBe(String(bytes));
  expect([...form.keys()]).toEqual(['user_id', 'metadata', 'file']);
  expect([form.get('user_id'), form.get('metadata')]).toEqual(['Zoë', '{"a":"\\n\\""}']);
  const sent = form.get('file') as File;
  expect(sent.name).toBe('Ünïcode "quoted"   name.bin');
  expect(Buffer.from(await sent.arrayBuffer()).equals(content)).toBe(true);
});

test.for<[what: string, change: (file: string) => void]>([
  ['grows', (file) => fs.appendFileSync(file, 'more')],
  ['shrinks', (file) => fs.truncateSync(file, 3_000_000)],
  ['is written again', (file) => fs.utimesSync(file, 0, 0)],
])('a file that %s while it is sent is an error of the file', async ([, change]) => {
  const file = fileWith(Buffer.alloc(5_000_000));
  const { client } = await startServer((request) => {
    request.once('data', () => change(file)).resume();
  });
  await expect(client.sendForm('POST', '/a', { fields: {}, file })).rejects.toThrow(ChangedFileError);
});

test.each<[name: string, ask: (client: Client) => Promise<unknown>]>([
  ['a question', (client) => client.getStats()],
  ['a file', (client) => client.sendForm('POST', '/a', { fields: {}, file: fileWith('Words.') })],
  ['lines', (client) => drain(client.exchangeLines('/a', Readable.from(['{}\n'])))],
  ['a long reply', (client) => drain(client.receive('/a'))],
])('a redirect is told and not followed: %s', async (_, ask) => {
  const elsewhere = await startServer((_request, response) => void response.end('{}'));
  const { client } = await startServer((request, response) => {
    request.resume().on('end', () => response.writeHead(307, { location: `${elsewhere.url}/a` }).end('moved'));
  });
  await expect(ask(client)).rejects.toThrow(`redirects to ${elsewhere.url}/a, which is not followed`);
  expect(elsewhere.seen).toEqual([]);
});

async function drain(values: AsyncIterable<unknown>): Promise<void> {
  for await (const value of values) expect(value).toBeDefined();
}

import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';

/** The client of the console, as in a browser whose page a server of the test has sent. */

/** What is tested of the client. Its own types are those of a browser, which this folder does not know. */
interface Client {
  readonly Refusal: new (...parts: never[]) => Error;
  readonly isUp: { readonly value: boolean };
  send(method: string, path: string): Promise<unknown>;
  follow(path: string, onEvent: (event: string, data: unknown) => boolean, stop: AbortSignal): Promise<void>;
}

const CLIENT = path.resolve('src/console/client.ts');

let answer: http.RequestListener;
let server: http.Server;
let client: Client;

beforeEach(async () => {
  server = http.createServer((request, response) => {
    if (request.url === '/health') response.end();
    else answer(request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const realFetch = fetch;
  vi.stubGlobal('fetch', (url: string, init?: RequestInit) =>
    realFetch(new URL(url, `http://127.0.0.1:${port}/`), init),
  );
  vi.stubGlobal('location', { hash: '' });
  vi.stubGlobal('addEventListener', () => {});
  client = (await import(CLIENT)) as Client;
});

afterEach(async () => {
  await expect.poll(() => client.isUp.value).toBe(true);
  vi.unstubAllGlobals();
  server.closeAllConnections();
  server.close();
});

test.each(['application/json', 'text/plain'])('an answer that breaks off is refused as none: %s', async (type) => {
  answer = (_request, response) => {
    response.writeHead(200, { 'content-type': type, 'content-length': 1_000 });
    response.write('{"items":', () => response.socket!.resetAndDestroy());
  };
  const refused = await client.send('GET', '/memories').catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(client.Refusal);
  expect(refused).toMatchObject({ status: 0, code: 'offline' });
});

test('an answer that is no JSON though it says so is refused', async () => {
  answer = (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end('<html>');
  };
  const refused = await client.send('GET', '/memories').catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(client.Refusal);
  expect(refused).toMatchObject({ status: 200, code: 'internal' });
});

test.each(['\n', '\r\n'])('events are followed whose lines end with %j', async (end) => {
  answer = (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const lines = [': ping', '', 'event: state', 'data: {"of":"a\u2028b"}', '', 'event: gone', 'data: {}', '', ''];
    response.write(lines.join(end));
  };
  const seen: unknown[] = [];
  const stop = new AbortController();
  const isLast = (event: string, data: unknown) => seen.push([event, data]) === 2;
  await client.follow('/jobs/j/events', isLast, stop.signal);
  expect(seen).toEqual([
    ['state', { of: 'a\u2028b' }],
    ['gone', {}],
  ]);
});

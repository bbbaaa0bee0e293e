import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { connect, ConnectionError } from '../../src/cli/client.ts';

/** Answers the first request of each connection and ends the connection at the next. */
async function startForgetfulServer(): Promise<{ readonly url: string; readonly seen: string[] }> {
  const seen: string[] = [];
  const answered = new WeakSet<object>();
  const server = http.createServer((request, response) => {
    seen.push(request.method!);
    if (answered.has(request.socket)) return void request.socket.destroy();
    answered.add(request.socket);
    response.setHeader('content-type', 'application/json');
    response.end('{"ok":true}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
}

test('what a kept connection does not answer is asked again on a new one, if it is a question', async () => {
  const { url, seen } = await startForgetfulServer();
  const client = connect({ url }, {});
  expect(await client.get('/a')).toEqual({ ok: true });
  expect(await client.get('/b')).toEqual({ ok: true });
  expect(seen).toEqual(['GET', 'GET', 'GET']);
  await expect(client.post('/c', {})).rejects.toThrow(ConnectionError);
  expect(seen).toEqual(['GET', 'GET', 'GET', 'POST']);
});

import { once } from 'node:events';
import { IncomingMessage, ServerResponse } from 'node:http';
import net from 'node:net';
import type { Response } from 'express';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { openStream } from '../../src/api/event-stream.ts';
import { localsOf } from '../../src/api/reply.ts';
import type { TenantCall } from '../../src/api/route.ts';
import { startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

let api: TestApi;
beforeAll(async () => {
  api = await startApi({
    folder: tempFolder(),
    settings: { OM_EMBEDDINGS: 'none', OM_TENANT_EVENT_STREAMS: '1' },
    threads: false,
  });
});
afterAll(() => api.stop());

const STREAM = 'accept: text/event-stream\r\n';
const get = (path: string, key: string, headers = '') =>
  `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${key}\r\n${headers}\r\n`;

/** Opens a connection on which these requests are sent at once. */
async function send(requests: string) {
  const socket = net.connect({ port: api.port, host: '127.0.0.1' });
  await once(socket, 'connect');
  let text = '';
  socket.setEncoding('latin1').on('data', (piece: string) => (text += piece));
  socket.write(requests);
  const statuses = () => [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status));
  return { socket, statuses };
}

test('a request is not handled before the answer to an earlier one of its connection has ended', async () => {
  const key = api.engine.control.createKey({ tenantId: 'default', role: 'read' });
  const stream = get('/events', key.secret, STREAM);
  // Handled at once, the second stream would be one more than the tenant may have open, a 503.
  const { socket, statuses } = await send(stream + stream.replace('host', 'connection: close\r\nhost'));
  await vi.waitUntil(() => statuses().length === 1, 120_000);
  api.engine.control.revokeKey(key.record.id);
  await once(socket, 'close');
  expect(statuses()).toEqual([200, 401]);
});

test('a client that leaves has none of its waiting requests handled', async () => {
  const { secret } = api.engine.control.createKey({ tenantId: 'default', role: 'write' });
  const body = JSON.stringify({ content: 'sent behind a stream' });
  const add =
    `POST /memory/add HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${secret}\r\n` +
    `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
  const { socket, statuses } = await send(get('/events', secret, STREAM) + add);
  await vi.waitUntil(() => statuses().length === 1, 120_000);
  socket.destroy();
  // Its stream has ended once another one may be open.
  await vi.waitUntil(async () => {
    const next = await send(get('/events', secret, STREAM));
    await vi.waitUntil(() => next.statuses().length === 1, 120_000);
    next.socket.destroy();
    return next.statuses()[0] === 200;
  }, 120_000);
  expect((await api.request('GET', '/memory/all')).body.items).toEqual([]);
});

test('a connection on which more than 16 requests wait is closed, and one with 16 is not', async () => {
  const { secret } = api.engine.control.createKey({ tenantId: 'default', role: 'read' });
  const many = await send(get('/events', secret, STREAM) + get('/health', secret).repeat(17));
  await once(many.socket, 'close');
  const key = api.engine.control.createKey({ tenantId: 'default', role: 'read' });
  const few = await send(get('/events', key.secret, STREAM) + get('/health', key.secret).repeat(16));
  await vi.waitUntil(() => few.statuses().length === 1, 120_000);
  api.engine.control.revokeKey(key.record.id);
  await vi.waitUntil(() => few.statuses().length === 17, 120_000);
  few.socket.destroy();
});

test('a stream that has ended and was not read to its end gets no more pings', async () => {
  const response = new ServerResponse(new IncomingMessage(new net.Socket())) as Response;
  response.locals = {};
  const errors: Error[] = [];
  response.on('error', (error: Error) => errors.push(error));
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  try {
    const tenant = await api.engine.tenant('default');
    openStream({ api: { engine: api.engine, stop: new AbortController().signal }, response, tenant } as TenantCall);
    localsOf(response).onAdmissionLost!();
    vi.advanceTimersByTime(60_000);
    await new Promise(setImmediate);
  } finally {
    vi.useRealTimers();
    response.emit('close');
  }
  expect(errors).toEqual([]);
});

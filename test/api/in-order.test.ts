import { once } from 'node:events';
import { createServer, IncomingMessage, ServerResponse } from 'node:http';
import net, { type AddressInfo } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import type { Response } from 'express';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { inOrder } from '../../src/api/in-order.ts';
import { parseInTurns } from '../../src/api/parse-in-turns.ts';
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

test('a request behind an answer that closes the connection is not handled', async () => {
  const { secret } = api.engine.control.createKey({ tenantId: 'default', role: 'write' });
  const body = JSON.stringify({ content: 'sent behind a refusal' });
  const add =
    `POST /memory/add HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${secret}\r\n` +
    `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
  const { socket, statuses } = await send(`GET /health HTTP/1.1\r\n\r\n${add}`);
  await once(socket, 'close');
  expect(statuses()).toEqual([400]);
  // What was handled would have been stored before this add is.
  await api.request('POST', '/memory/add', { body: { content: 'sent afterwards' } });
  const { items } = (await api.request('GET', '/memory/all')).body;
  expect(items.map(({ content }) => content)).toEqual(['sent afterwards']);
  await api.request('DELETE', `/memory/${items[0]!.id}`);
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

test('a connection on which more than 4 requests wait is closed, and one with 4 is not', async () => {
  const { secret } = api.engine.control.createKey({ tenantId: 'default', role: 'read' });
  const many = await send(get('/events', secret, STREAM) + get('/health', secret).repeat(5));
  await once(many.socket, 'close');
  const key = api.engine.control.createKey({ tenantId: 'default', role: 'read' });
  const few = await send(get('/events', key.secret, STREAM) + get('/health', key.secret).repeat(4));
  await vi.waitUntil(() => few.statuses().length === 1, 120_000);
  api.engine.control.revokeKey(key.record.id);
  await vi.waitUntil(() => few.statuses().length === 5, 120_000);
  few.socket.destroy();
});

test.each([
  ['without a host', 'GET / HTTP/1.1\r\n\r\n'],
  ['with an unknown expectation', 'GET / HTTP/1.1\r\nhost: a\r\nexpect: x\r\n\r\n'],
])('a connection on which more than 4 requests %s wait is closed', async (_, request) => {
  const { secret } = api.engine.control.createKey({ tenantId: 'default', role: 'read' });
  const { socket, statuses } = await send(get('/events', secret, STREAM) + request.repeat(4));
  await vi.waitUntil(() => statuses().length === 1, 120_000);
  expect(await Promise.race([once(socket, 'close').then(() => 'closed'), setTimeout(200, 'open')])).toBe('open');
  socket.write(request);
  await once(socket, 'close');
  expect(statuses()).toEqual([200]);
});

describe('on a server that never answers', () => {
  /** Serves `GET /` without an answer; counts the requests that were parsed, and those that were handled. */
  async function startSilent() {
    const counts = { parsed: 0, handled: 0 };
    const server = createServer();
    parseInTurns(server, () => false);
    server.on('request', () => (counts.parsed += 1));
    server.on(
      'request',
      inOrder(
        () => (counts.handled += 1),
        () => false,
      ),
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void (server.close(), server.closeAllConnections()));
    const connect = async (requests: number) => {
      const socket = net.connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1' });
      socket.on('error', () => {});
      await once(socket, 'connect');
      socket.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n'.repeat(requests));
      return socket;
    };
    return { counts, connect };
  }

  test('what was read of a connection is not parsed on once it is closed', async () => {
    const { counts, connect } = await startSilent();
    const socket = await connect(1_000);
    await once(socket, 'close');
    expect(counts.handled).toBe(1);
    // At most 4 KiB are parsed at once.
    expect(counts.parsed).toBeLessThanOrEqual(4096 / 'GET / HTTP/1.1\r\nhost: a\r\n\r\n'.length + 1);
  });

  test('the requests that wait are bounded for all connections of a network', async () => {
    const { counts, connect } = await startSilent();
    const sockets = await Promise.all(Array.from({ length: 62 }, () => connect(5)));
    const last = await connect(3);
    await expect.poll(() => counts).toEqual({ parsed: 62 * 5 + 3, handled: 63 });
    await once(await connect(2), 'close');
    // Requests that have none before them are not bounded, and what a closed connection had waiting counts no more.
    for (const socket of [...sockets.slice(0, 2), last]) socket.destroy();
    await expect
      .poll(async () => {
        const again = await connect(5);
        return Promise.race([once(again, 'close').then(() => 'closed'), setTimeout(100, 'open')]);
      })
      .toBe('open');
  });
});

/** Opens an event stream whose client reads nothing, and gathers the errors of its response. */
async function openUnreadStream() {
  const response = new ServerResponse(new IncomingMessage(new net.Socket())) as Response;
  response.locals = {};
  const errors: Error[] = [];
  response.on('error', (error: Error) => errors.push(error));
  const tenant = await api.engine.tenant('default');
  openStream({ api: { engine: api.engine, stop: new AbortController().signal }, response, tenant } as TenantCall);
  return { response, errors };
}

test('a stream that has ended and was not read to its end gets no more pings', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const { response, errors } = await openUnreadStream();
  try {
    localsOf(response).onAdmissionLost!();
    vi.advanceTimersByTime(60_000);
    await new Promise(setImmediate);
  } finally {
    vi.useRealTimers();
    response.emit('close');
  }
  expect(errors).toEqual([]);
});

test('a stream that has ended and was not read to its end is closed once its key ends', async () => {
  const { response, errors } = await openUnreadStream();
  // As after the last state of a job, or when the server stops.
  response.end();
  localsOf(response).onAdmissionLost!();
  await new Promise(setImmediate);
  expect(errors).toEqual([]);
  expect(response.destroyed).toBe(true);
  response.emit('close');
});

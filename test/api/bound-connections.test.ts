import { once } from 'node:events';
import { createServer } from 'node:http';
import net from 'node:net';
import { expect, test } from 'vitest';
import { boundConnections } from '../../src/api/bound-connections.ts';
import { networkOf } from '../../src/engine/control/network-of.ts';
import { until } from '../support/attacks/silent-readers.ts';
import { startApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

test('one address has half of the connections, and gets new ones when it closes some', async () => {
  await using api = await startApi({
    folder: tempFolder(),
    settings: { OM_EMBEDDINGS: 'none', OM_MAX_CONNECTIONS: '8' },
  });
  const connect = async () => {
    const socket = net.connect({ port: api.port, host: '127.0.0.1' });
    await once(socket, 'connect');
    return socket;
  };
  const held = [await connect(), await connect(), await connect(), await connect()];
  const fifth = await connect();
  fifth.resume();
  await once(fifth, 'close');
  for (const socket of held) socket.destroy();
  await until(async () => (await api.request('GET', '/health').catch(() => undefined))?.status === 200);
});

test('a trusted proxy may have all connections, since they are those of many clients', async () => {
  await using api = await startApi({
    folder: tempFolder(),
    settings: { OM_EMBEDDINGS: 'none', OM_MAX_CONNECTIONS: '8', OM_TRUSTED_PROXIES: '127.0.0.0/8' },
  });
  const held = [];
  for (let no = 0; no < 7; no++) {
    const socket = net.connect({ port: api.port, host: '127.0.0.1' });
    await once(socket, 'connect');
    held.push(socket);
  }
  expect((await api.request('GET', '/health')).status).toBe(200);
  for (const socket of held) socket.destroy();
});

test('a client that reads nothing of small replies is cut off', async () => {
  await using api = await startApi({
    folder: tempFolder(),
    settings: { OM_EMBEDDINGS: 'none', OM_READER_TIMEOUT_MS: '300' },
  });
  const socket = net.connect({ port: api.port, host: '127.0.0.1' });
  await once(socket, 'connect');
  socket.on('error', () => {});
  const request = 'GET /openapi.json HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n';
  // As many as may wait on a connection: their replies are longer than what the system takes of them unread.
  socket.write(request.repeat(17));
  // A client that reads nothing notices by what it writes that the connection is closed. An empty line asks nothing.
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  socket.once('close', () => resolve());
  const timer = setInterval(() => socket.write('\r\n'), 5);
  await closed;
  clearInterval(timer);
  expect((await api.request('GET', '/health')).status).toBe(200);
});

test('what all connections leave unread is bounded: the largest are cut', async () => {
  const reply = Buffer.alloc(24 * 1024 * 1024);
  const server = createServer((request, response) => void response.end(request.url === '/large' ? reply : 'small'));
  boundConnections(server, { most: 100, readerTimeoutMs: 60_000, isProxy: () => false });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as net.AddressInfo;
  const held = Array.from({ length: 10 }, () => net.connect({ port, host: '127.0.0.1' }));
  for (const socket of held) {
    socket.pause().on('error', () => {});
    socket.write('GET /large HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n');
  }
  const connections = () => new Promise<number>((resolve) => server.getConnections((_, count) => resolve(count)));
  await until(async () => (await connections()) === 10);
  await until(async () => (await connections()) < 10);
  expect(await connections()).toBeGreaterThan(2);
  expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toBe('small');
  for (const socket of held) socket.destroy();
  server.closeAllConnections();
  server.close();
});

test('addresses of IPv6 count by their /64', () => {
  expect(networkOf('2001:db8:1:2:3:4:5:6')).toBe('2001:db8:1:2');
  expect(networkOf('2001:db8::5')).toBe('2001:db8:0:0');
  expect(networkOf('::1')).toBe('0:0:0:0');
  expect(networkOf('::ffff:10.0.0.1')).toBe('10.0.0.1');
  expect(networkOf('10.0.0.1')).toBe('10.0.0.1');
});

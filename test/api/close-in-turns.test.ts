import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import net, { type AddressInfo, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { closeInTurns } from '../../src/api/close-in-turns.ts';
import { parseInTurns } from '../../src/api/parse-in-turns.ts';
import { onDestroyed } from '../../src/api/on-destroyed.ts';
import { countTurns } from '../support/turns-during.ts';

test.each([
  ['by their clients', (clients: readonly Socket[]) => clients],
  ['by the server', (_: readonly Socket[], served: readonly Socket[]) => served],
])('connections that are closed together %s end 32 in each turn', async (_, chosen) => {
  const server = createServer();
  parseInTurns(server, () => false);
  closeInTurns(server);
  const served: Socket[] = [];
  server.on('connection', (socket: Socket) => served.push(socket));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const clients = await Promise.all(
    Array.from({ length: 200 }, async () => {
      const socket = net.connect({ port, host: '127.0.0.1' });
      await once(socket, 'connect');
      socket.on('error', () => {}); // It is reset.
      socket.write('POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\nhalf');
      return socket;
    }),
  );
  await expect.poll(() => served.filter(({ bytesRead }) => bytesRead > 0).length).toBe(200);
  const turns = countTurns();
  const closedIn = served.map(async (socket) => {
    await new Promise((resolve) => socket.once('close', resolve));
    return turns.turn;
  });
  // Bytes that are still on their way to a connection that waits to be closed are passed over.
  for (const client of clients) client.write('more');
  for (const socket of chosen(clients, served)) socket.destroy();
  const counts = Object.values(Object.groupBy(await Promise.all(closedIn), (turn) => turn)).map((some) => some!.length);
  turns.stop();
  expect(counts.reduce((sum, here) => sum + here)).toBe(200);
  // What was closed before others waited, and the first of those that did, may fall in one turn.
  expect(Math.max(...counts)).toBeLessThanOrEqual(64);
});

test('what connections hold is given back as soon as they are destroyed', async () => {
  const server = createServer();
  closeInTurns(server);
  const served: Socket[] = [];
  let [given, closed] = [0, 0];
  server.on('connection', (socket: Socket) => {
    served.push(socket);
    onDestroyed(socket, () => (given += 1));
    socket.once('close', () => (closed += 1));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  for (let count = 0; count < 100; count += 1) net.connect({ port, host: '127.0.0.1' }).on('error', () => {});
  await expect.poll(() => served.length).toBe(100);
  for (const socket of served) socket.destroy();
  expect([given, closed]).toEqual([100, 0]);
  await new Promise((resolve) => setImmediate(resolve));
  expect(closed).toBeLessThanOrEqual(64);
  await expect.poll(() => closed).toBe(100);
});

test('connections whose heads are late are refused 32 in each turn', async () => {
  const server = createServer({ headersTimeout: 50, connectionsCheckingInterval: 1_000 });
  parseInTurns(server, () => false);
  closeInTurns(server);
  const turns = countTurns();
  const refusedIn: number[] = [];
  server.on('connection', (socket: Socket) => onDestroyed(socket, () => refusedIn.push(turns.turn)));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const answers = Array.from({ length: 200 }, async () => {
    const socket = net.connect({ port, host: '127.0.0.1' });
    socket.write('G');
    return text(socket);
  });
  expect(new Set(await Promise.all(answers))).toEqual(
    new Set(['HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n']),
  );
  turns.stop();
  const counts = Object.values(Object.groupBy(refusedIn, (turn) => turn)).map((some) => some!.length);
  expect(counts.reduce((sum, here) => sum + here)).toBe(200);
  expect(Math.max(...counts)).toBeLessThanOrEqual(64);
});

test.each([
  ['no request', 'no request\r\n\r\n'],
  ['a head that is too long', `GET / HTTP/1.1\r\nhost: a\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`],
  [
    'too long extensions of a chunk',
    `POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n2;${'y'.repeat(20_000)}\r\nxx\r\n0\r\n\r\n`,
  ],
])('%s is answered as by Node itself', async (_, bytes) => {
  const answerOf = async (server: Server) => {
    server.on('request', (request) => request.resume());
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const socket = net.connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1' });
    socket.write(bytes);
    return text(socket);
  };
  const server = createServer();
  closeInTurns(server);
  const answer = await answerOf(server);
  expect(answer).toMatch(/^HTTP\/1.1 4\d\d /);
  expect(answer).toBe(await answerOf(createServer()));
});

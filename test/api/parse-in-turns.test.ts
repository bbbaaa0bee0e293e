import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import net, { type AddressInfo } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { inOrder } from '../../src/api/in-order.ts';
import { parseInTurns } from '../../src/api/parse-in-turns.ts';
import { PacedRequest } from '../../src/api/paced-request.ts';
import { countTurns } from '../support/turns-during.ts';

async function serve(handle: RequestListener) {
  const server = createServer({ IncomingMessage: PacedRequest }, handle);
  parseInTurns(server, () => false);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void (server.close(), server.closeAllConnections()));
  const { port } = server.address() as AddressInfo;
  return async () => {
    const socket = net.connect({ port, host: '127.0.0.1' });
    let text = '';
    socket.setEncoding('latin1').on('data', (piece: string) => (text += piece));
    socket.on('error', () => {});
    await once(socket, 'connect');
    return { socket, text: () => text };
  };
}

const MIB = 1024 * 1024;
const CHUNKED = 'POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n';

const bodyOf = async (request: IncomingMessage) => {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  return Buffer.concat(pieces).toString('latin1');
};

describe('what is read of connections', () => {
  test.each([
    ['requests that Node refuses itself', 'GET / HTTP/1.1\r\n\r\n', 3_000],
    ['requests with an unknown expectation', 'GET / HTTP/1.1\r\nhost: a\r\nexpect: x\r\n\r\n', 1_500],
  ])('is parsed in turns: %s', async (_name, request, count) => {
    const connect = await serve((_request, response) => response.end());
    const clients = await Promise.all(Array.from({ length: 10 }, connect));
    // By this clock each look finds the turn used up.
    let now = performance.now();
    vi.spyOn(performance, 'now').mockImplementation(() => (now += 10));
    onTestFinished(() => void vi.restoreAllMocks());
    const turns = countTurns();
    for (const { socket } of clients) socket.write(request.repeat(count));
    await expect
      .poll(() => clients.every(({ text }) => /HTTP\/1.1 4\d\d/.test(text())), { timeout: 60_000 })
      .toBe(true);
    await expect
      .poll(() => clients.every(({ socket, text }) => socket.closed || text().split('HTTP/1.1 4').length > count), {
        timeout: 60_000,
      })
      .toBe(true);
    turns.stop();
    expect(turns.turn).toBeGreaterThan(10);
  });

  const ORDINARY = `GET / HTTP/1.1\r\nhost: a\r\n${'x: y\r\n'.repeat(29)}\r\n`;
  test.each([
    ['ordinary requests', ORDINARY, ORDINARY.repeat(2), 600],
    ['the last byte of a head', ORDINARY + ORDINARY.slice(0, -1), ORDINARY.slice(-1), 300],
  ])('is parsed in turns, also if each of many connections sends %s', async (_name, first, then, count) => {
    const turns = countTurns();
    const parsedIn: number[] = [];
    const connect = await serve((_request, response) => {
      parsedIn.push(turns.turn);
      response.end();
    });
    const clients = await Promise.all(Array.from({ length: 300 }, connect));
    // A connection is accepted in each turn, so the first requests come one after the other.
    for (const { socket } of clients) socket.write(first);
    await expect.poll(() => parsedIn.length, { timeout: 60_000 }).toBe(300);
    parsedIn.length = 0;
    // By this clock each look finds the turn used up.
    let now = performance.now();
    vi.spyOn(performance, 'now').mockImplementation(() => (now += 10));
    onTestFinished(() => void vi.restoreAllMocks());
    for (const { socket } of clients) socket.write(then);
    await expect.poll(() => parsedIn.length, { timeout: 60_000 }).toBe(count);
    turns.stop();
    const counts = Object.values(Object.groupBy(parsedIn, (turn) => turn)).map((some) => some!.length);
    // 128 connections whose bytes come first, and one that waited.
    expect(Math.max(...counts)).toBeLessThanOrEqual((count / clients.length) * 129);
  });

  test('waits for no request if it is a part of a body', async () => {
    const turns = countTurns();
    const ends: number[] = [];
    const connect = await serve((request, response) => {
      request.resume().on('end', () => ends.push(turns.turn));
      response.end();
    });
    const clients = await Promise.all(Array.from({ length: 300 }, connect));
    for (const { socket } of clients) socket.write('POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\n1234');
    await expect.poll(() => clients.every(({ text }) => text() !== ''), { timeout: 60_000 }).toBe(true);
    let now = performance.now();
    vi.spyOn(performance, 'now').mockImplementation(() => (now += 10));
    onTestFinished(() => void vi.restoreAllMocks());
    for (const { socket } of clients) socket.write('56789');
    await expect.poll(() => ends.length, { timeout: 60_000 }).toBe(300);
    turns.stop();
    expect(new Set(ends).size).toBeLessThan(10);
  });

  test.each([
    ['CR in masses', '\r', 64 * 1024, 4096],
    ['some CR, as in random bytes', `\r${'x'.repeat(255)}`, 256, 64 * 1024],
  ])(
    'is parsed in slices only if its lines take long to count: a body with %s',
    async (_name, unit, count, longest) => {
      const sizes: number[] = [];
      let isBegun = false;
      const connect = await serve((request, response) => {
        isBegun = true;
        request.on('data', (bytes: Buffer) => sizes.push(bytes.length)).on('end', () => response.end());
      });
      const { socket, text } = await connect();
      const body = unit.repeat(count * 8);
      socket.write(`POST / HTTP/1.1\r\nhost: a\r\ncontent-length: ${body.length}\r\n\r\n`);
      await expect.poll(() => isBegun).toBe(true);
      socket.write(body);
      await expect.poll(text).toContain('HTTP/1.1 200');
      expect(sizes.reduce((sum, size) => sum + size)).toBe(body.length);
      expect(Math.max(...sizes)).toBeLessThanOrEqual(longest);
      if (longest > 4096) expect(Math.max(...sizes)).toBeGreaterThan(4096);
    },
  );

  test('is parsed up to some bytes in each turn if it is of bodies, and in the end in whole', async () => {
    const sockets: net.Socket[] = [];
    let parsed = 0;
    const connect = await serve((request) => {
      sockets.push(request.socket);
      request.on('data', (bytes: Buffer) => (parsed += bytes.length));
    });
    const clients = await Promise.all(Array.from({ length: 40 }, connect));
    for (const { socket } of clients) socket.write('POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 9999999\r\n\r\n');
    await expect.poll(() => sockets.length).toBe(40);
    await new Promise(setImmediate);
    // As Node, which reads up to 32 times of each connection that is readable.
    const part = Buffer.alloc(64 * 1024, 'x');
    let sent = 0;
    for (const socket of sockets)
      for (let reads = 0; reads < 32 && !socket.isPaused(); reads += 1) {
        socket.emit('data', part);
        sent += part.length;
      }
    // 2 MiB of bodies, and 64 KiB of each of the 128 connections that are parsed at once.
    expect(parsed).toBeLessThanOrEqual(10 * MIB);
    expect(parsed).toBeGreaterThanOrEqual(2 * MIB);
    await expect.poll(() => parsed).toBe(sent);
  });

  test('arrives whole and in order, in whatever pieces, with the requests behind it', async () => {
    const bodies: string[] = [];
    const connect = await serve((request, response) => {
      void bodyOf(request).then((body) => {
        bodies.push(body);
        response.end(`${body.length}`);
      });
    });
    const { socket, text } = await connect();
    const sent = Array.from({ length: 6 }, (_, no) => `${no}`.repeat(30_000 * no + 7));
    const bytes = sent
      .map((body) => `POST / HTTP/1.1\r\nhost: a\r\ncontent-length: ${body.length}\r\n\r\n${body}`)
      .join('');
    for (let at = 0; at < bytes.length; at += 50_001) {
      socket.write(bytes.slice(at, at + 50_001), 'latin1');
      if (at % 3 === 0) await setTimeout(1);
    }
    await expect.poll(() => bodies.length, { timeout: 60_000 }).toBe(sent.length);
    expect(bodies).toEqual(sent);
    await expect.poll(() => text().match(/HTTP\/1.1 200/g)?.length).toBe(sent.length);
  });

  test('of a body that nobody takes is not read on, and goes on when somebody does', async () => {
    const { promise, resolve } = Promise.withResolvers<IncomingMessage>();
    const connect = await serve((request) => resolve(request));
    const { socket } = await connect();
    const body = 'a'.repeat(20_000_000);
    socket.write(`POST / HTTP/1.1\r\nhost: a\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
    const request = await promise;
    await setTimeout(100);
    expect(request.readableLength).toBeLessThan(300_000);
    expect(request.socket.bytesRead).toBeLessThan(2_000_000);
    expect(await bodyOf(request)).toHaveLength(body.length);
  });

  test.each([
    ['that Node refuses itself', 'GET / HTTP/1.1\r\n\r\n'.repeat(3_000)],
    [
      'whose bodies come a byte a chunk',
      `${CHUNKED}${'1\r\nx\r\n'.repeat(400)}0\r\n\r\n${'GET / HTTP/1.1\r\n\r\n'.repeat(3_000)}`,
    ],
  ])(
    'waits behind an answer with which Node holds the connection, and no request fails: %s',
    async (_name, requests) => {
      const connect = await serve(
        inOrder(
          (_request, response) => void setTimeout(50).then(() => response.end('b'.repeat(300_000))),
          () => false,
        ),
      );
      const { socket } = await connect();
      socket.pause();
      socket.write(`GET / HTTP/1.1\r\nhost: a\r\n\r\n${requests}`);
      await setTimeout(200);
      socket.resume();
      // An error in a later turn would fail the test as an unhandled one.
      await setTimeout(200);
      const other = await connect();
      other.socket.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
      await expect.poll(other.text, { timeout: 60_000 }).toContain('HTTP/1.1 200');
    },
  );

  test('is forgotten with its connection', async () => {
    let handled = 0;
    const connect = await serve((request) => {
      handled += 1;
      request.socket.destroy();
    });
    const { socket } = await connect();
    socket.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n'.repeat(2_000));
    await once(socket, 'close');
    await setTimeout(20);
    expect(handled).toBeLessThan(200);
  });
});

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

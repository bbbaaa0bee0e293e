import { createServer, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import net, { type AddressInfo } from 'node:net';
import { channel } from 'node:diagnostics_channel';
import { gzipSync } from 'node:zlib';
import { Agent, buildConnector, request } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import { pacedReplies } from '../../../src/engine/adapters/paced-replies.ts';
import { paceSocket } from '../../../src/engine/adapters/paced-socket.ts';

const connectPlainly = buildConnector({});

const TEXT = Array.from({ length: 4_000 }, (_, no) => `word${no}`).join(' ');

/** Starts a server that sends this body as it comes, and returns its address. */
async function serve(body: string | Buffer, headers = 'transfer-encoding: chunked'): Promise<string> {
  const server = net.createServer((socket) => {
    socket.on('error', () => {});
    socket.write(`HTTP/1.1 200 OK\r\n${headers}\r\n\r\n`);
    socket.write(body);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function openAgent() {
  const agent = new Agent();
  onTestFinished(() => agent.destroy());
  return pacedReplies(agent);
}

const inChunks = (text: string) => text.replaceAll(/./gs, (byte) => `1\r\n${byte}\r\n`);

/** Counts the greatest number of pieces of bodies that arrive in one turn of the event loop during `work`. */
async function mostPieces(work: () => Promise<unknown>): Promise<number> {
  let [inTurn, most] = [0, 0];
  const note = () => {
    if (inTurn === 0) setImmediate(() => (inTurn = 0));
    inTurn += 1;
    most = Math.max(most, inTurn);
  };
  const received = channel('undici:request:bodyChunkReceived');
  received.subscribe(note);
  try {
    await work();
  } finally {
    received.unsubscribe(note);
  }
  return most;
}

test('bodies that come a byte a chunk are read a few hundred pieces a turn, whole and in order', async () => {
  const dispatcher = openAgent();
  const url = await serve(`${inChunks(TEXT)}0\r\n\r\n`);
  const ask = async () => (await request(url, { dispatcher })).body.text();
  const texts: string[] = [];
  const most = await mostPieces(async () => texts.push(...(await Promise.all(Array.from({ length: 8 }, ask)))));
  expect(new Set(texts)).toEqual(new Set([TEXT]));
  expect(most).toBeLessThan(600);
});

test('long pieces among short ones keep their place, and a body of long ones comes as it is', async () => {
  const dispatcher = openAgent();
  const long = 'x'.repeat(5_000);
  const part = `${inChunks('abc'.repeat(100))}1388\r\n${long}\r\n`;
  const url = await serve(`${part.repeat(20)}0\r\n\r\n`);
  const { body } = await request(url, { dispatcher });
  expect(await body.text()).toBe(`${'abc'.repeat(100)}${long}`.repeat(20));
  const whole = gzipSync(TEXT);
  const plain = await request(await serve(whole, `content-length: ${whole.length}`), { dispatcher });
  expect(Buffer.from(await plain.body.arrayBuffer())).toEqual(whole);
});

test('a piece keeps at most twice its bytes in memory, however much came with it', async () => {
  for (const length of [1, 2_000]) {
    const chunk = `${length.toString(16)};${'a'.repeat(48_000)}\r\n${'x'.repeat(length)}\r\n`;
    const url = await serve(`${chunk.repeat(100)}0\r\n\r\n`);
    const pieces: Buffer[] = [];
    await new Promise<void>((resolve, reject) => {
      openAgent().dispatch(
        { origin: url, path: '/', method: 'GET' },
        {
          onResponseData: (_controller, piece) => void pieces.push(piece),
          onResponseEnd: () => resolve(),
          onResponseError: (_controller, error) => reject(error),
        },
      );
    });
    expect(Buffer.concat(pieces).toString()).toBe('x'.repeat(100 * length));
    expect(pieces.filter((piece) => piece.buffer.byteLength > 2 * piece.length)).toEqual([]);
  }
});

test('a reader that is slow holds the connection up, and one that leaves ends it', async () => {
  const dispatcher = openAgent();
  let reply: ServerResponse | undefined;
  const server = createServer((_request, response) => void (reply = response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void (server.closeAllConnections(), server.close()));
  const asked = request(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, { dispatcher });
  await expect.poll(() => reply).toBeDefined();
  let hasClosed = false;
  reply!.on('close', () => (hasClosed = true));
  for (let written = 0; written < 400; written += 1)
    for (let no = 0; no < 100; no += 1) reply!.write('a'.repeat(1_000));
  const { body } = await asked;
  await expect.poll(() => body.readableLength).toBeGreaterThan(0);
  for (let turn = 0; turn < 200; turn += 1) await new Promise(setImmediate);
  expect(body.readableLength).toBeLessThan(20 * 64 * 1024);
  body.on('error', () => {}).destroy();
  await expect.poll(() => hasClosed).toBe(true);
});

test('a reply comes after a few interim replies, and a server that sends many of them is given up', async () => {
  const dispatcher = openAgent();
  const after = async (interim: number) => {
    const server = net.createServer((socket) => {
      socket.on('error', () => {});
      socket.write(`${'HTTP/1.1 103 E\r\n\r\n'.repeat(interim)}HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok`);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    return request(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, { dispatcher });
  };
  expect(await (await after(8)).body.text()).toBe('ok');
  await expect(after(9)).rejects.toThrow('more than 8 interim replies');
});

test('what came before a connection was reset is taken to the end', async () => {
  const agent = new Agent({
    connect(options, callback) {
      connectPlainly(options, (...result) => {
        if (result[0] === null) paceSocket(result[1]);
        callback(...result);
      });
    },
  });
  onTestFinished(() => agent.destroy());
  const dispatcher = pacedReplies(agent);
  const server = net.createServer((socket) => {
    socket.on('error', () => {});
    socket.write(`HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n${TEXT}`, () => void socket.resetAndDestroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const lengthOf = async () => {
    try {
      return (await (await request(url, { dispatcher })).body.text()).length;
    } catch {
      return 'an error';
    }
  };
  const lengths = await Promise.all(Array.from({ length: 16 }, lengthOf));
  // The kernel may drop what it has not sent when a connection is reset, and then there is an error.
  expect(lengths.filter((length) => length !== 'an error' && length !== TEXT.length)).toEqual([]);
});

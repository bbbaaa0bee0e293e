import { channel } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import net, { type AddressInfo } from 'node:net';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { PacedRequest } from '../../src/api/paced-request.ts';
import { ADMIN_KEY, startApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

const api = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none' }, threads: false });
afterAll(() => api.stop());

/** Most that Node reads of a connection at once, in bytes. */
const READ_BYTES = 64 * 1024;
const WRONG_KEY = 'a-key-that-nobody-has';

/** Writes a text as chunks of one byte each. */
const inChunks = (text: string) => text.replaceAll(/./gs, (byte) => `1\r\n${byte}\r\n`);
const chunkedHead = (key: string, path = '/memory/query') =>
  `POST ${path} HTTP/1.1\r\nhost: localhost\r\nx-api-key: ${key}\r\ncontent-type: application/json\r\n` +
  'transfer-encoding: chunked\r\n\r\n';

/** Connects, and sends the head of a request. */
async function connect(head: string): Promise<net.Socket> {
  const socket = net.connect(api.port, '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  socket.on('error', () => {});
  await once(socket, 'connect');
  socket.write(head);
  return socket;
}

/**
 * Sends the same bytes on 12 connections at once, and returns how many the server read of all of them in each turn of
 * its event loop in which it read any, until it has read `total`. The first turns are left out: the first read of each
 * connection is not held up, since it may be that of an ordinary request.
 */
async function readByTurn(head: string, body: string, total: number): Promise<number[]> {
  const ends = new Set<net.Socket>();
  const note = (message: unknown) => void ends.add((message as { request: IncomingMessage }).request.socket);
  const started = channel('http.server.request.start');
  started.subscribe(note);
  onTestFinished(() => void started.unsubscribe(note));
  const clients = await Promise.all(Array.from({ length: 12 }, () => connect(head)));
  await expect.poll(() => ends.size).toBe(clients.length);
  const readBytes = () => [...ends].reduce((sum, { bytesRead }) => sum + bytesRead, 0);
  for (const client of clients) client.write(body);
  const turns: number[] = [];
  for (let before = readBytes(); before < total; before = readBytes()) {
    await new Promise(setImmediate);
    const bytes = readBytes() - before;
    if (bytes > 0) turns.push(bytes);
  }
  return turns.slice(clients.length);
}

describe('bodies that come a byte a chunk', () => {
  test.each([
    ['with a key', ADMIN_KEY, '{"query":"'],
    ['without one', WRONG_KEY, ''],
  ])('are read from one connection in each turn of the event loop, %s', async (_name, key, start) => {
    const turns = await readByTurn(chunkedHead(key), inChunks(start + 'a'.repeat(100_000)), 4_000_000);
    expect(turns.length).toBeGreaterThan(10);
    expect(Math.max(...turns)).toBeLessThanOrEqual(2 * READ_BYTES);
  });

  test('and end with almost each read are held up like those that go on', async () => {
    const part = `${inChunks('a'.repeat(9_000))}0\r\n\r\n`;
    const turns = await readByTurn(chunkedHead(WRONG_KEY), part + (chunkedHead(WRONG_KEY) + part).repeat(9), 5_000_000);
    expect(turns.length).toBeGreaterThan(10);
    // Beside the reads of a turn there may be the rest of one that ended; all connections read six times as much.
    expect(Math.max(...turns)).toBeLessThanOrEqual(3 * READ_BYTES);
  });

  test('arrive whole and in order, and the connection takes another request', async () => {
    const content = Array.from({ length: 9_000 }, (_, at) => `word${at}`).join(' ');
    const client = await connect(chunkedHead(ADMIN_KEY, '/memory/add'));
    let replies = '';
    client.on('data', (part: Buffer) => (replies += part.toString('latin1')));
    client.write(`${inChunks(JSON.stringify({ content, user_id: 'paced' }))}0\r\n\r\n`);
    await expect.poll(() => replies).toMatch(/^HTTP\/1.1 202 /);
    client.write('GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n');
    await expect.poll(() => replies).toContain('HTTP/1.1 200 ');
    expect((await api.request('GET', '/users/paced/memories')).body.items).toMatchObject([{ content }]);
  });

  test('are read to their end after a refusal, and the connection takes another request', async () => {
    const client = await connect(chunkedHead(WRONG_KEY));
    let replies = '';
    client.on('data', (part: Buffer) => (replies += part.toString('latin1')));
    client.write(`${inChunks('a'.repeat(60_000))}0\r\n\r\nGET /health HTTP/1.1\r\nhost: localhost\r\n\r\n`);
    await expect.poll(() => replies).toMatch(/^HTTP\/1.1 401 [^]*HTTP\/1.1 200 /);
  });
});

test('a body of short chunks that nobody takes is not read on', async () => {
  const requests: IncomingMessage[] = [];
  const server = createServer({ IncomingMessage: PacedRequest }, (request) => void requests.push(request));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const client = net.connect((server.address() as AddressInfo).port, '127.0.0.1');
  onTestFinished(() => void (client.destroy(), server.close()));
  const some = `3e8\r\n${'a'.repeat(1_000)}\r\n`.repeat(50);
  client.write(chunkedHead(WRONG_KEY) + some);
  for (let written = 0; written < 400; written += 1) {
    client.write(some);
    await new Promise(setImmediate);
  }
  await expect.poll(() => requests[0]?.socket.isPaused()).toBe(true);
  expect(requests[0]!.readableLength).toBeLessThan(10 * requests[0]!.readableHighWaterMark);
});

/** How callers of requests in progress are checked again. */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import net, { type AddressInfo } from 'node:net';
import type { Response } from 'express';
import { afterAll, expect, onTestFinished, test, vi } from 'vitest';
import { watchAdmission } from '../../src/api/watch-admission.ts';
import { ADMIN_KEY, startApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

const api = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none' }, threads: false });
afterAll(() => api.stop());

/** Sends requests to a server of its own, and returns their replies, which are not ended. */
async function begin(requests: number): Promise<Response[]> {
  const replies: ServerResponse[] = [];
  const server = createServer((_request, reply) => void replies.push(reply)).listen(0, '127.0.0.1');
  onTestFinished(() => void (server.closeAllConnections(), server.close()));
  await once(server, 'listening');
  for (let no = 0; no < requests; no += 1) {
    const socket = net.connect((server.address() as AddressInfo).port, '127.0.0.1');
    socket.on('error', () => {});
    socket.write('GET / HTTP/1.1\r\nhost: localhost\r\n\r\n');
  }
  await expect.poll(() => replies.length).toBe(requests);
  return replies.map((reply) => Object.assign(reply, { locals: {} }) as unknown as Response);
}

test('a caller is asked about once for all of its requests, and many in several turns', async () => {
  const replies = await begin(400);
  const asked = new Map<number, number>();
  let turn = 0;
  let inTurn = 0;
  let most = 0;
  const note = (caller: number) => {
    asked.set(caller, (asked.get(caller) ?? 0) + 1);
    if (inTurn === 0) setImmediate(() => ((turn += 1), (most = Math.max(most, inTurn)), (inTurn = 0)));
    inTurn += 1;
    return asked.size < 100 || asked.get(caller)! < 2;
  };
  for (const [no, reply] of replies.entries()) watchAdmission(reply, () => note(no % 100), no % 100);
  await expect.poll(() => replies.filter(({ destroyed }) => destroyed).length).toBe(400);
  expect([...asked.values()]).toEqual(Array.from({ length: 100 }, () => 2));
  expect(turn).toBeGreaterThan(4);
  expect(most).toBeLessThanOrEqual(50);
});

test('a session is looked up once for all requests that came by it', async () => {
  const console = { 'x-cairn-console': '1' };
  const body = { key: ADMIN_KEY };
  const signedIn = await api.request('POST', '/console/session', { body, key: null, headers: console });
  const cookie = signedIn.headers.get('set-cookie')!.split(';')[0]!;
  const { sessions } = api.engine.control;
  const find = vi.spyOn(sessions, 'find');
  onTestFinished(() => find.mockRestore());
  const sockets = Array.from({ length: 100 }, () => {
    const socket = net.connect(api.port, '127.0.0.1');
    socket.on('error', () => {});
    socket.write(
      `POST /memory/query HTTP/1.1\r\nhost: localhost\r\ncookie: ${cookie}\r\nx-cairn-console: 1\r\n` +
        'content-type: application/json\r\ncontent-length: 100\r\n\r\n{',
    );
    return socket;
  });
  onTestFinished(() => sockets.forEach((socket) => void socket.destroy()));
  await expect.poll(() => find.mock.calls.length).toBeGreaterThanOrEqual(100);
  // Until all of them are admitted.
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  find.mockClear();
  await expect.poll(() => find.mock.calls.length).toBeGreaterThan(1);
  expect(find.mock.calls.length).toBeLessThan(50);
});

import { once } from 'node:events';
import { createServer } from 'node:http';
import net, { type AddressInfo, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { closeInTurns } from '../../src/api/close-in-turns.ts';
import { countTurns } from '../support/turns-during.ts';

test.each([
  ['by their clients', (clients: readonly Socket[]) => clients],
  ['by the server', (_: readonly Socket[], served: readonly Socket[]) => served],
])('connections that are closed together %s end 32 in each turn', async (_, chosen) => {
  const server = createServer();
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
  for (const socket of chosen(clients, served)) socket.destroy();
  const counts = Object.values(Object.groupBy(await Promise.all(closedIn), (turn) => turn)).map((some) => some!.length);
  turns.stop();
  expect(counts.reduce((sum, here) => sum + here)).toBe(200);
  // What was closed before others waited, and the first of those that did, may fall in one turn.
  expect(Math.max(...counts)).toBeLessThanOrEqual(64);
});

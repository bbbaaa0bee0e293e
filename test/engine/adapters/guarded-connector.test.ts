import { once } from 'node:events';
import net, { type AddressInfo } from 'node:net';
import { Agent, request } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import { type ConnectTo, guardedConnector } from '../../../src/engine/adapters/guarded-connector.ts';

const LOOPBACK = { address: '127.0.0.0', prefix: 8, family: 'ipv4' } as const;

/** Starts a server that sends this reply to every connection, and returns its port. */
async function serve(reply: string): Promise<number> {
  const server = net.createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => socket.write(reply));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

/** Opens an agent whose connections pass `connect`. */
function openAgent(connect: ConnectTo, resolve = async () => ['127.0.0.1']): Agent {
  const { signal } = new AbortController();
  const agent = new Agent({ connect: guardedConnector({ resolve, connect, denied: [], allowed: [LOOPBACK], signal }) });
  onTestFinished(() => agent.destroy());
  return agent;
}

/** Connects to the address itself, and passes on what each read of the connection hands out. */
const reportingReads =
  (onRead: (socket: net.Socket, bytes: number) => void): ConnectTo =>
  ([address], { port }, callback) => {
    const socket = net.connect({ host: address!, port: Number(port) });
    const read = socket.read.bind(socket);
    socket.read = (size?: number) => {
      const piece = read(size) as Buffer | null;
      onRead(socket, piece?.length ?? 0);
      return piece;
    };
    socket.once('connect', () => callback(null, socket)).once('error', (error) => callback(error, null));
  };

test('heads of very many headers are read for a short time a turn, those of all connections together', async () => {
  const port = await serve(`HTTP/1.1 200 OK\r\n${'a:\r\n'.repeat(16_000)}content-length: 2\r\n\r\nok`);
  let [inTurn, most] = [0, 0];
  const note = (_socket: net.Socket, bytes: number) => {
    if (inTurn === 0) setImmediate(() => (inTurn = 0));
    inTurn += bytes;
    most = Math.max(most, inTurn);
  };
  const agent = openAgent(reportingReads(note));
  const ask = async () => {
    const { headers, body } = await request(`http://example.com:${port}`, { dispatcher: agent });
    return [headers.a?.length, await body.text()];
  };
  expect(await Promise.all(Array.from({ length: 6 }, ask))).toEqual(Array(6).fill([16_000, 'ok']));
  // Half of what they have together: 49,000 headers take any machine longer than the time of a turn.
  expect(most).toBeLessThan(3 * 64 * 1024);
});

test('nothing is read of a head after it was found too large', async () => {
  const port = await serve(`HTTP/1.1 200 OK\r\nb:${'x'.repeat(16_000)}\r\n${'a:\r\n'.repeat(10_000)}\r\n`);
  let [before, after] = [0, 0];
  const agent = openAgent(
    reportingReads(({ destroyed }, bytes) => {
      if (destroyed) after += bytes;
      else before += bytes;
    }),
  );
  const asked = request(`http://example.com:${port}`, { dispatcher: agent });
  await expect(asked).rejects.toMatchObject({ code: 'UND_ERR_HEADERS_OVERFLOW' });
  expect([before < 24_000, after]).toEqual([true, 0]);
});

test('a connection that fails is a failure of its request', async () => {
  const connect: ConnectTo = (_addresses, _options, callback) => {
    (callback as unknown as (error: Error) => void)(new Error('nobody there'));
  };
  await expect(request('http://example.com', { dispatcher: openAgent(connect) })).rejects.toThrow('nobody there');
});

test('of a host with very many addresses, some are tried', async () => {
  const tried: (readonly string[])[] = [];
  const connect: ConnectTo = (addresses, _options, callback) => {
    tried.push(addresses);
    callback(new Error('not here'), null);
  };
  const agent = openAgent(connect, async () =>
    Array.from({ length: 4_000 }, (_, no) => (no < 2_000 ? `::1:${no.toString(16)}` : `127.0.${no >> 8}.${no & 255}`)),
  );
  await expect(request('http://example.com', { dispatcher: agent })).rejects.toThrow();
  expect(tried.map(({ length }) => length)).toEqual([8]);
});

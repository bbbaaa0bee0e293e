import { once } from 'node:events';
import net from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { percentile } from '../../bench/report.ts';
import { startServiceProcess } from '../support/running-service.ts';
import { tempFolder } from '../support/temp-folder.ts';

const KEY = 'a-key-for-slow-clients';
const EVERY_MS = 5_000;

/** What each sends at once; what follows comes a byte at a time and would take hours. */
const SLOW = {
  headers: { count: 200, start: 'POST /memory/add HTTP/1.1\r\nhost: localhost\r\nx-slow: ', answer: 'HTTP/1.1 408 ' },
  body: { count: 200, start: requestOf(KEY), answer: 'HTTP/1.1 400 ' },
  'body without a key': { count: 100, start: requestOf('a-wrong-key'), answer: 'HTTP/1.1 401 ' },
};

function requestOf(key: string): string {
  return `POST /memory/add HTTP/1.1\r\nhost: localhost\r\nx-api-key: ${key}\r\ncontent-type: application/json\r\ncontent-length: 10000\r\n\r\n{`;
}

// P15. Node's own bounds would be 60 s for headers and 300 s for a body.
test('500 clients that send a byte every five seconds are answered and closed, and hold up nobody', async () => {
  const service = await startServiceProcess({ folder: tempFolder(), settings: { OM_API_KEY: KEY } });
  onTestFinished(async () => void (await service.end('SIGKILL')));
  const { port } = new URL(await service.ready);
  const startedAt = performance.now();
  const slow = Object.entries(SLOW).flatMap(([kind, { count, start, answer }]) =>
    Array.from({ length: count }, () => trickle(Number(port), start).then((said) => ({ kind, answer, ...said }))),
  );
  let areClosed = false;
  const allClosed = Promise.all(slow).finally(() => (areClosed = true));

  const latencies: number[] = [];
  for (let n = 0; !areClosed; n += 1) {
    const begun = performance.now();
    const headers = { 'x-api-key': KEY };
    const added = await service.request('POST', '/memory/add', { headers, body: { content: `the ferry of day ${n}` } });
    const found = await service.request('POST', '/memory/query', { headers, body: { query: 'ferry', k: 3 } });
    latencies.push((performance.now() - begun) / 2);
    expect([added.status, found.status]).toEqual([202, 200]);
    expect(found.body.matches.length).toBeGreaterThan(0);
    await pause(20);
  }

  const closed = await allClosed;
  for (const kind of Object.keys(SLOW)) {
    const closedAfter = closed.filter((one) => one.kind === kind).map(({ at }) => (at - startedAt) / 1000);
    console.log(
      `${kind}: closed ${Math.min(...closedAfter).toFixed(1)} to ${Math.max(...closedAfter).toFixed(1)} s after the start`,
    );
  }
  console.log(`${latencies.length} adds and queries meanwhile, p99 ${percentile(latencies, 0.99).toFixed(0)} ms`);
  for (const { kind, answer, reply } of closed) expect(reply.slice(0, answer.length), kind).toBe(answer);
  expect((await service.request('GET', '/ready')).status).toBe(200);
}, 120_000);

/** Sends the start of a request and a byte every five seconds, until the server closes the connection. */
async function trickle(port: number, start: string): Promise<{ readonly reply: string; readonly at: number }> {
  const socket = net.connect(port, '127.0.0.1');
  let reply = '';
  socket.setEncoding('latin1').on('data', (text: string) => (reply += text));
  socket.on('error', () => {});
  socket.write(start);
  const timer = setInterval(() => socket.write('x'), EVERY_MS);
  await once(socket, 'close');
  clearInterval(timer);
  return { reply, at: performance.now() };
}

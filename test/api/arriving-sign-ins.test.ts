import { once } from 'node:events';
import net from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { until } from '../support/attacks/silent-readers.ts';
import { ADMIN_KEY, startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

const BODY = JSON.stringify({ key: ADMIN_KEY });
const HEAD = [
  'POST /console/session HTTP/1.1',
  'host: localhost',
  'x-cairn-console: 1',
  'content-type: application/json',
  `content-length: ${BODY.length}`,
].join('\r\n');

let api: TestApi;
beforeAll(async () => void (api = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none' } })));
afterAll(() => api.stop());

/** A connection that has sent a sign-in up to `sent` characters of its body, and what came back. */
async function signIn(sent: number): Promise<{ readonly socket: net.Socket; readonly reply: () => string }> {
  const socket = net.connect({ port: api.port, host: '127.0.0.1' });
  socket.on('error', () => {});
  let text = '';
  socket.on('data', (bytes) => void (text += bytes.toString()));
  await once(socket, 'connect');
  socket.write(`${HEAD}\r\n\r\n${BODY.slice(0, sent)}`);
  return { socket, reply: () => text };
}

test('of one network, 32 sign-ins may be half sent: further ones are refused, and whole ones are not', async () => {
  const half = await Promise.all(Array.from({ length: 40 }, () => signIn(5)));
  const answered = () => half.filter(({ reply }) => reply() !== '');
  await until(() => answered().length >= 8);
  for (const { reply } of answered()) {
    expect(reply()).toMatch(/^HTTP\/1\.1 429 /);
    expect(reply()).toContain('32 sign-ins from this address have sent only a part of their body');
  }
  const whole = await signIn(BODY.length);
  await until(() => whole.reply() !== '');
  expect(whole.reply()).toMatch(/^HTTP\/1\.1 200 /);
  expect(answered()).toHaveLength(8);

  const [finished, left] = half.filter(({ reply }) => reply() === '') as [(typeof half)[0], (typeof half)[0]];
  finished.socket.write(BODY.slice(5));
  await until(() => finished.reply() !== '');
  expect(finished.reply()).toMatch(/^HTTP\/1\.1 200 /);
  left.socket.destroy();
  const isTaken = async () => {
    const next = await signIn(5);
    next.socket.write(BODY.slice(5));
    await until(() => next.reply() !== '');
    next.socket.destroy();
    return next.reply().startsWith('HTTP/1.1 200');
  };
  await until(isTaken);
  for (const { socket } of [...half, whole]) socket.destroy();
});

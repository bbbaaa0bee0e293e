import { once } from 'node:events';
import net from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAccessControl } from '../../src/api/access-control.ts';
import { takeRequestTurns } from '../../src/api/middleware/take-request-turns.ts';
import { startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

let api: TestApi;
beforeAll(async () => {
  api = await startApi({
    folder: tempFolder(),
    settings: { OM_EMBEDDINGS: 'none', OM_TRUSTED_PROXIES: '127.0.0.0/8' },
    threads: false,
  });
});
afterAll(() => api.stop());

/** Sends a request on each of some open connections at once, and waits for the answers. */
async function askTogether(clients: readonly string[]): Promise<string[]> {
  const sockets = clients.map(() => net.connect(api.port, '127.0.0.1'));
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  // Node accepts one connection in a turn.
  for (const socket of sockets) socket.write('GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n');
  await Promise.all(sockets.map((socket) => once(socket, 'data')));
  const answers = sockets.map(async (socket) => String((await once(socket, 'data'))[0]));
  sockets.forEach((socket, no) => {
    const lines = ['GET /memory/1 HTTP/1.1', 'host: localhost', 'x-api-key: wrong', `x-forwarded-for: ${clients[no]}`];
    socket.write(`${lines.join('\r\n')}\r\n\r\n`);
  });
  const replies = await Promise.all(answers);
  for (const socket of sockets) socket.destroy();
  return replies;
}

/** Calls `work`, with a check of keys that takes a millisecond, and returns the turn and the address of each check. */
async function checksDuring(work: () => Promise<unknown>) {
  const { control, guesses } = api.engine;
  const { authenticate } = control;
  const { pauseMs } = guesses;
  const checks: { turn: number; address: string }[] = [];
  let turn = 0;
  let isDone = false;
  const count = () => {
    turn += 1;
    if (!isDone) setImmediate(count);
  };
  setImmediate(count);
  control.authenticate = (secret) => {
    for (const end = performance.now() + 1; performance.now() < end;);
    return authenticate(secret);
  };
  guesses.pauseMs = (address) => {
    checks.push({ turn, address });
    return pauseMs(address);
  };
  await work();
  isDone = true;
  Object.assign(control, { authenticate });
  Object.assign(guesses, { pauseMs });
  return checks;
}

test('requests that arrive together are begun a few in each turn of the event loop', async () => {
  let replies: string[] = [];
  const checks = await checksDuring(async () => (replies = await askTogether(Array<string>(80).fill('192.0.2.1'))));
  expect(replies.map((reply) => reply.slice(9, 12))).toEqual(Array(80).fill('401'));
  const inTurn = Object.values(Object.groupBy(checks, ({ turn }) => turn)).map((some) => some!.length);
  expect(inTurn.reduce((sum, here) => sum + here)).toBe(80);
  expect(Math.max(...inTurn)).toBeLessThanOrEqual(8);
});

test('networks whose requests wait take turns with each other', async () => {
  const clients = [...Array.from({ length: 60 }, (_, no) => `2001:db8::${no}`), '192.0.2.2', '192.0.2.2', '192.0.2.2'];
  const checks = await checksDuring(() => askTogether(clients));
  expect(checks).toHaveLength(63);
  const last = checks.findLastIndex(({ address }) => address === '192.0.2.2');
  // The first are begun before any waits.
  expect(last).toBeLessThan(20);
});

test('a request whose client has left before its turn is not begun, and the next one is', async () => {
  const step = takeRequestTurns(() => '192.0.2.3');
  const begun: string[] = [];
  const sockets = { busy: { destroyed: false }, left: { destroyed: false }, stays: { destroyed: false } };
  const done = Promise.withResolvers<void>();
  for (const [name, socket] of Object.entries(sockets)) {
    step({ socket } as never, {} as never, () => {
      begun.push(name);
      if (name === 'busy') for (const end = performance.now() + 5; performance.now() < end;);
      if (name === 'stays') done.resolve();
    });
  }
  expect(begun).toEqual(['busy']);
  sockets.left.destroyed = true;
  await done.promise;
  expect(begun).toEqual(['busy', 'stays']);
});

test('a request whose handling fails when its turn comes is told so, and the next ones go on', async () => {
  const step = takeRequestTurns(() => '192.0.2.5');
  const begun: unknown[] = [];
  const done = Promise.withResolvers<void>();
  for (const name of ['busy', 'fails', 'stays', 'last']) {
    step({ socket: { destroyed: false } } as never, {} as never, (error?: unknown) => {
      begun.push(error ?? name);
      if (name === 'busy') for (const end = performance.now() + 5; performance.now() < end;);
      if (name === 'fails' && error === undefined) throw new Error('it fails');
      if (name === 'last') done.resolve();
    });
  }
  await done.promise;
  expect(begun.map(String).toSorted()).toEqual(['Error: it fails', 'busy', 'fails', 'last', 'stays']);
});

test.each([{}, { 'x-api-key': 'wrong' }])('a refusal has no stack trace: %j', async (headers) => {
  const request = { headers, headersDistinct: {}, socket: { remoteAddress: '192.0.2.4' } };
  const refused = createAccessControl(api.engine).admit(request as never, 'read');
  await expect(refused).rejects.toMatchObject({
    code: 'unauthenticated',
    stack: expect.not.stringContaining('\n    at '),
  });
});

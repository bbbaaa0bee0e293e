import http from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { CairnError, createClient, isCairnError, type ClientOptions } from '../../src/client/index.ts';

/** A server that answers as the test says, and notes what it was asked. */
async function startServer(answer: (attempt: number, response: http.ServerResponse) => void, options: object = {}) {
  const seen: http.IncomingMessage[] = [];
  const server = http.createServer((request, response) => {
    seen.push(request);
    request.resume().on('end', () => answer(seen.length, response));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  const connection: ClientOptions = { url, key: 'secret-key', ...options };
  return { client: createClient(connection), seen, url };
}

function refuse(
  response: http.ServerResponse,
  status: number,
  headers: http.OutgoingHttpHeaders = {},
  more: object = {},
): void {
  const code = 'unavailable';
  const problem = { type: 'about:blank', title: '', status, code, detail: 'full', request_id: 'r-1', ...more };
  response.writeHead(status, { 'content-type': 'application/problem+json', 'x-request-id': 'r-1', ...headers });
  response.end(JSON.stringify(problem));
}

function accept(response: http.ServerResponse, body: object): void {
  response.writeHead(200, { 'content-type': 'application/json; charset=utf-8' }).end(JSON.stringify(body));
}

/** Writes the bytes of a reply one by one, and leaves it open. */
function writeInBytes(response: http.ServerResponse, bytes: Buffer): void {
  let at = 0;
  const timer = setInterval(() => (at < bytes.length ? response.write(bytes.subarray(at, ++at)) : undefined), 1);
  response.once('close', () => clearInterval(timer));
}

/** Reads the events of a job up to the event `gone`, and leaves the loop there. */
async function eventsUntilGone(client: ReturnType<typeof createClient>): Promise<unknown[]> {
  const events: unknown[] = [];
  for await (const event of client.watchJob({ id: 'j' })) {
    events.push(event);
    if (event.event === 'gone') break;
  }
  return events;
}

test('a busy server is asked again with the same idempotency key, after the time that it names', async () => {
  const { client, seen } = await startServer((attempt, response) => {
    if (attempt === 1) refuse(response, 503, { 'retry-after': '1' });
    else accept(response, { id: 'm', job_id: 'j', state: 'queued', token: null });
  });
  const startedAt = performance.now();
  await expect(client.addMemory({ content: 'Words.' })).resolves.toMatchObject({ id: 'm' });
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(990);
  const keys = seen.map(({ headers }) => headers['idempotency-key']);
  expect(keys[0]).toMatch(/^[0-9a-f]{32}$/);
  expect(keys[1]).toBe(keys[0]);
  await client.addMemory({ content: 'Words.' }, { idempotencyKey: 'mine' });
  await client.addMemory({ content: 'Words.' }, { idempotencyKey: false });
  expect(seen.slice(2).map(({ headers }) => headers['idempotency-key'])).toEqual(['mine', undefined]);
});

test('a broken connection is tried again, but not if a second request could have a second effect', async () => {
  const { client, seen } = await startServer((_attempt, response) => response.destroy(), { retries: 1 });
  await expect(client.getStats()).rejects.toMatchObject({ code: 'unreachable', status: undefined });
  await expect(client.reinforceMemory({ id: 'm' })).rejects.toThrow(CairnError);
  await expect(client.putItem({ key: 'k', value: 1 }, { ifMatch: '"1"' })).rejects.toThrow(CairnError);
  expect(seen.map(({ method }) => method)).toEqual(['GET', 'GET', 'POST', 'PUT']);
});

test('an error that says the change may be stored is tried again as a broken connection is', async () => {
  const { client, seen } = await startServer(
    (_attempt, response) => refuse(response, 503, { 'retry-after': '1' }, { may_be_written: true }),
    { retries: 1 },
  );
  await expect(client.reinforceMemory({ id: 'm' })).rejects.toMatchObject({ mayBeWritten: true });
  await expect(client.deleteMemory({ id: 'm' })).rejects.toMatchObject({ code: 'unavailable', mayBeWritten: true });
  expect(seen.map(({ method }) => method)).toEqual(['POST', 'DELETE', 'DELETE']);
});

test.each([
  [429, 2],
  [502, 2],
  [503, 2],
  [504, 2],
  [400, 1],
  [409, 1],
  [500, 1],
  [507, 1],
])('the status %d means %d attempts', async (status, attempts) => {
  const { client, seen } = await startServer((_attempt, response) => refuse(response, status), { retries: 1 });
  await expect(client.getStats()).rejects.toMatchObject({ status });
  expect(seen.length).toBe(attempts);
});

test('a server that asks for more than a minute is left to the caller', async () => {
  const { client, seen } = await startServer((_attempt, response) => refuse(response, 429, { 'retry-after': '61' }));
  await expect(client.getStats()).rejects.toMatchObject({ status: 429, retryAfterMs: 61_000 });
  expect(seen.length).toBe(1);
});

test('an answer is final, however it fails, and its error names what the server said', async () => {
  const { client, seen } = await startServer((_attempt, response) => refuse(response, 507));
  const error: unknown = await client.getStats().catch((reason: unknown) => reason);
  expect(error).toMatchObject({ code: 'unavailable', status: 507, message: 'full', requestId: 'r-1' });
  expect(isCairnError(error, 'unavailable')).toBe(true);
  expect(isCairnError(error, 'conflict')).toBe(false);
  expect(JSON.stringify(error, Object.getOwnPropertyNames(error))).not.toContain('secret-key');
  expect(seen.length).toBe(1);
});

test('what answers without being a Cairn server is told', async () => {
  const page = (_attempt: number, response: http.ServerResponse) => void response.writeHead(404).end('<html>');
  const { client } = await startServer(page);
  await expect(client.getHealth()).rejects.toMatchObject({ code: 'no_cairn', status: 404 });
});

test.each([301, 302, 303, 307, 308])(
  'a redirect with status %d is an error, and nothing goes where it leads',
  async (status) => {
    const elsewhere = await startServer((_attempt, response) => accept(response, {}));
    const location = `${elsewhere.url}/there?secret=1`;
    const { client, url } = await startServer(
      (_attempt, response) => void response.writeHead(status, { location }).end(),
      { headers: { 'x-api-key': 'secret-key' } },
    );
    const message = `${url} redirects to ${elsewhere.url}/there, which is not followed: give the address of the server itself`;
    await expect(client.getStats()).rejects.toMatchObject({ code: 'no_cairn', status, message });
    await expect(client.addMemory({ content: 'Words.' })).rejects.toMatchObject({ code: 'no_cairn', message });
    expect(elsewhere.seen).toEqual([]);
  },
);

test('a stream that is none is told', async () => {
  const { client } = await startServer((_attempt, response) => accept(response, { items: [] }));
  const reading = async () => {
    for await (const event of client.watchEvents()) expect(event).toBeUndefined();
  };
  await expect(reading()).rejects.toMatchObject({ code: 'no_cairn' });
});

test('a server that is silent is given up after the time limit, and a caller can abort', async () => {
  const { client } = await startServer(() => {}, { retries: 0 });
  await expect(client.getStats({}, { timeoutMs: 50 })).rejects.toMatchObject({ code: 'timeout' });
  const caller = new AbortController();
  const reply = client.getStats({}, { signal: caller.signal });
  caller.abort(new Error('no longer needed'));
  await expect(reply).rejects.toThrow('no longer needed');
});

test.each(['', '.', '..', undefined])('an id that would make another request is refused: %j', async (id) => {
  const { client, seen } = await startServer((_attempt, response) => accept(response, {}));
  await expect(client.deleteMemory({ id: id as string })).rejects.toMatchObject({ code: 'invalid' });
  expect(seen).toEqual([]);
});

test('a name with any characters is one segment of the path', async () => {
  const { client, seen } = await startServer((_attempt, response) => accept(response, {}));
  await client.getEntity({ name: 'a/b?c#d é', user_id: 'x&y' });
  expect(seen[0]!.url).toBe('/entities/a%2Fb%3Fc%23d%20%C3%A9?user_id=x%26y');
});

test('events whose lines end with CR and LF arrive, too', async () => {
  const { client } = await startServer((_attempt, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const bytes = Buffer.from(
      ': ping\r\n\r\nevent: state\r\ndata: {"id":\r\ndata: 1}\r\n\r\nevent: gone\r\ndata: {}\r\n\r\n',
    );
    writeInBytes(response, bytes);
  });
  expect(await eventsUntilGone(client)).toEqual([
    { event: 'state', data: { id: 1 } },
    { event: 'gone', data: {} },
  ]);
});

test('events arrive whole, however their bytes are cut, and leaving the loop closes the stream', async () => {
  const { client, seen } = await startServer((_attempt, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const bytes = Buffer.from(': ping\n\nid: 7\nevent: state\ndata: {"id":"é"}\n\nevent: gone\ndata: {}\n\n');
    writeInBytes(response, bytes);
  });
  expect(await eventsUntilGone(client)).toEqual([
    { event: 'state', data: { id: 'é' }, id: '7' },
    { event: 'gone', data: {} },
  ]);
  await once(seen[0]!.socket, 'close');
});

test.each(['ftp://a', 'nonsense', ''])('an address that is not HTTP is refused: %j', (url) => {
  expect(() => createClient({ url })).toThrow('url: expected an address');
});

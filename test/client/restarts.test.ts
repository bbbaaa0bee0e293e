import { execFile } from 'node:child_process';
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import { expect, onTestFinished, test, vi } from 'vitest';
import { type Client, createClient } from '../../src/client/index.ts';
import { runCairn } from '../cli/run-cairn.ts';
import { hasPython, pythonEnvironment } from '../support/python.ts';

/** What whoever waits for a server does when it goes away and comes back, with both clients and the command line. */

type Answer = (response: http.ServerResponse, request: http.IncomingMessage) => void;

/** A server that gives its answers in turn, the last one again and again, and notes what it was asked. */
async function startServer(...answers: readonly Answer[]) {
  const seen: http.IncomingMessage[] = [];
  const server = http.createServer((request, response) => {
    seen.push(request);
    request.resume().on('end', () => answers[Math.min(seen.length, answers.length) - 1]!(response, request));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
}

const json =
  (body: object): Answer =>
  (response) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
const breakOff: Answer = (response) => void response.destroy();
const refuse =
  (status: number, retryAfter: () => string): Answer =>
  (response) =>
    response.writeHead(status, { 'retry-after': retryAfter() }).end('<html>');
/** A stream of events that ends, or breaks off, behind them. */
const events =
  (how: 'ends' | 'breaks', ...blocks: readonly (readonly [event: string, data: object, id?: string])[]): Answer =>
  (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const text = blocks.map(([event, data, id]) => {
      return `${id === undefined ? '' : `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
    });
    response.write(`: open\n\n${text.join('')}`, () => (how === 'ends' ? response.end() : response.socket!.destroy()));
  };

async function runPython(program: string, ...values: readonly string[]): Promise<unknown> {
  const given = ['-c', `import json, sys\nfrom cairn_memory import CairnError, Client\n${program}`, ...values];
  const { stdout } = await promisify(execFile)('python3', given, { env: pythonEnvironment() });
  return JSON.parse(stdout);
}

const RECEIPT = { id: 'm', job_id: 'j', state: 'queued', token: null };
const queued = json({ id: 'j', state: 'queued' });
const done = json({ id: 'j', state: 'done' });
const soon = refuse(503, () => '1');
const OUTAGE = [json(RECEIPT), queued, breakOff, breakOff, breakOff, breakOff, breakOff, soon, done];

test('ready waits for a server that restarts', async () => {
  const { url, seen } = await startServer(...OUTAGE);
  await expect(createClient({ url }).addMemory({ content: 'c' }).ready()).resolves.toEqual(RECEIPT);
  expect(seen.length).toBe(OUTAGE.length);
});

test('ready keeps its limit with a server that is silent, and with one that asks for more time', async () => {
  for (const answer of [() => {}, refuse(503, () => '50')]) {
    const { url } = await startServer(json(RECEIPT), answer);
    const waiting = createClient({ url }).addMemory({ content: 'c' }).ready({ timeoutMs: 200 });
    await expect(waiting).rejects.toMatchObject({ code: 'timeout', message: 'the work took more than 200 ms' });
  }
});

test.skipIf(!hasPython)('so does the Python client', async () => {
  const program = `
client = Client(sys.argv[1])
reply = client.ready(client.add_memory(content="c"))
limits = []
for url in sys.argv[2:]:
    client = Client(url)
    try:
        client.ready(client.add_memory(content="c"), timeout=0.2)
    except CairnError as error:
        limits.append(error.code)
print(json.dumps([reply["id"], limits]))`;
  const [{ url, seen }, silent, slow] = await Promise.all([
    startServer(...OUTAGE),
    startServer(json(RECEIPT), () => {}),
    startServer(
      json(RECEIPT),
      refuse(503, () => '50'),
    ),
  ]);
  expect(await runPython(program, url, silent.url, slow.url)).toEqual(['m', ['timeout', 'timeout']]);
  expect(seen.length).toBe(OUTAGE.length);
});

const change = (id: string) => ['change', { id, cursor: id }, id] as const;
const GONE = ['gone', { reason: 'unauthenticated' }] as const;
const FEED = [
  json({ items: [], cursor: 'c0', has_more: false }),
  events('breaks'),
  events('breaks', change('c1'), change('c2')),
  breakOff,
  events('ends', change('c3')),
  events('ends', GONE),
];
/** Places from which the feed is asked for; what `latest` stands for is found out first, so that nothing is missed. */
const PLACES = ['latest', 'c0', 'c0', 'c2', 'c2', 'c3'];
const placesOf = (seen: readonly http.IncomingMessage[]) =>
  seen.map(({ url, headers }) => headers['last-event-id'] ?? new URL(url!, 'http://x').searchParams.get('cursor'));

test('the feed goes on behind its last event when its stream ends or breaks off', async () => {
  const { url, seen } = await startServer(...FEED);
  const ids: unknown[] = [];
  for await (const { event, data } of createClient({ url }).watchEvents({ cursor: 'latest' }))
    ids.push(event === 'change' ? data.id : event);
  expect(ids).toEqual(['c1', 'c2', 'c3', 'gone']);
  expect(placesOf(seen)).toEqual(PLACES);
});

test.skipIf(!hasPython)('so does the feed of the Python client', async () => {
  const { url, seen } = await startServer(...FEED);
  const program = `
found = Client(sys.argv[1]).watch_events(cursor="latest")
print(json.dumps([event.data.get("id", event.event) for event in found]))`;
  expect(await runPython(program, url)).toEqual(['c1', 'c2', 'c3', 'gone']);
  expect(placesOf(seen)).toEqual(PLACES);
});

test('the feed of the command line goes on, too, and says once that it waits', async () => {
  const { url, seen } = await startServer(FEED[0]!, ...FEED.slice(2, 4), breakOff, ...FEED.slice(4));
  const { code, stdout, stderr } = await runCairn(['events', '--follow', '--json'], { settings: { CAIRN_URL: url } });
  expect(stdout.match(/(?<="id":")\w+/g)).toEqual(['c1', 'c2', 'c3']);
  expect(stderr).not.toContain('bug');
  expect([1, 2]).toContain(stderr.match(/it is tried again/g)?.length);
  expect([code, stderr.trimEnd().split('\n').at(-1)]).toEqual([1, 'cairn: the key is no longer valid']);
  expect(placesOf(seen)).toEqual(['latest', 'c0', 'c2', 'c2', 'c2', 'c3']);
});

test('the feed of the command line ends where its key is refused', async () => {
  const problem = { type: 'about:blank', title: '', status: 401, code: 'unauthenticated', detail: 'no such key' };
  const { url } = await startServer(FEED[0]!, events('breaks', change('c1')), (response) => {
    response.writeHead(401, { 'content-type': 'application/problem+json' }).end(JSON.stringify(problem));
  });
  const { code, stderr } = await runCairn(['events', '--follow', '--json'], { settings: { CAIRN_URL: url } });
  expect([code, stderr.trimEnd().split('\n').at(-1)]).toEqual([1, expect.stringContaining('no such key')]);
});

test('a header that names a place counts for the first stream alone', async () => {
  const { url, seen } = await startServer(events('ends', change('c8')), events('ends', GONE));
  const feed = createClient({ url }).watchEvents({}, { headers: { 'Last-Event-ID': 'c7' } });
  for await (const event of feed) expect(event).toBeDefined();
  expect(placesOf(seen)).toEqual(['c7', 'c8']);
});

const page = (id: string, next?: number) => json({ items: [{ id }], total: 2, next });
const LIST = [page('a', 1), breakOff, breakOff, breakOff, breakOff, page('a', 1), page('b')];

test('a walk over a list goes on when the server is back', async () => {
  const { url, seen } = await startServer(...LIST);
  const ids: string[] = [];
  for await (const { id } of createClient({ url }).listMemories({ l: 1 })) ids.push(id);
  expect(ids).toEqual(['a', 'b']);
  expect(seen.length).toBe(LIST.length);
  const away = await startServer(page('a', 1), breakOff);
  const walking = async () => {
    for await (const { id } of createClient({ url: away.url, retries: 0 }).listMemories()) expect(id).toBe('a');
  };
  await expect(walking()).rejects.toMatchObject({ code: 'unreachable' });
  expect(away.seen.length).toBe(2);
});

test.skipIf(!hasPython)('so does a walk of the Python client', async () => {
  const { url, seen } = await startServer(...LIST);
  const program = `
client = Client(sys.argv[1])
print(json.dumps([entry["id"] for entry in client.each(client.list_memories, l=1)]))`;
  expect(await runPython(program, url)).toEqual(['a', 'b']);
  expect(seen.length).toBe(LIST.length);
});

const state = (name: string) => ['state', { id: 'j', state: name }] as const;

test('a job is watched to its end over a restart, and not beyond', async () => {
  const { url, seen } = await startServer(
    events('ends', state('queued')),
    events('breaks', state('running'), state('done')),
  );
  const states: string[] = [];
  for await (const { event, data } of createClient({ url }).watchJob({ id: 'j' }))
    if (event === 'state') states.push(data.state);
  expect(states).toEqual(['queued', 'running', 'done']);
  expect(seen.length).toBe(2);
});

/** A job that failed waits for its next attempt; a document that failed stays so. */
const FAILED = [events('breaks', state('failed')), events('ends', state('done'))];

test('a job that waits for its next attempt is watched on, and a document that failed is not', async () => {
  const [job, document] = await Promise.all([startServer(...FAILED), startServer(...FAILED)]);
  const states: unknown[] = [];
  for await (const { data } of createClient(job).watchJob({ id: 'j' })) states.push(data);
  for await (const { data } of createClient(document).watchDocument({ id: 'j' })) states.push(data);
  expect(states).toMatchObject([{ state: 'failed' }, { state: 'done' }, { state: 'failed' }]);
});

test.skipIf(!hasPython)('so it is by the Python client', async () => {
  const [job, document] = await Promise.all([startServer(...FAILED), startServer(...FAILED)]);
  const program = `
found = [*Client(sys.argv[1]).watch_job(id="j"), *Client(sys.argv[2]).watch_document(id="j")]
print(json.dumps([event.data["state"] for event in found]))`;
  expect(await runPython(program, job.url, document.url)).toEqual(['failed', 'done', 'failed']);
});

/** A reply whose stream of events holds for a time, by the clock of the test, before its text comes and it ends. */
function streamThatHolds(ms: number, text: string): Response {
  const pull = (controller: ReadableStreamDefaultController<Uint8Array>) => {
    vi.setSystemTime(Date.now() + ms);
    if (text !== '') controller.enqueue(new TextEncoder().encode(text));
    controller.close();
  };
  const body = new ReadableStream<Uint8Array>({ pull }, { highWaterMark: 0 });
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
}

test('a feed in which nothing happens for hours outlasts every restart', async () => {
  vi.useFakeTimers({ toFake: ['Date'] });
  onTestFinished(() => void vi.useRealTimers());
  const texts = ['', '', 'event: gone\ndata: {}\n\n'];
  const fetch = async () => streamThatHolds(3_600_000, texts.shift()!);
  const found: string[] = [];
  for await (const { event } of createClient({ url: 'http://x', fetch }).watchEvents()) found.push(event);
  expect(found).toEqual(['gone']);
});

test('a feed whose stream ends as soon as it is open is told after a minute', async () => {
  vi.useFakeTimers({ toFake: ['Date'] });
  onTestFinished(() => void vi.useRealTimers());
  let asked = 0;
  const fetch = async () => {
    vi.setSystemTime(Date.now() + 40_000);
    asked += 1;
    return streamThatHolds(0, '');
  };
  const reading = async () => {
    for await (const event of createClient({ url: 'http://x', fetch }).watchEvents()) expect(event).toBeUndefined();
  };
  await expect(reading()).rejects.toMatchObject({ code: 'unreachable' });
  expect(asked).toBe(3);
});

test.skipIf(!hasPython)('so does the feed of the Python client, where nothing happens for hours', async () => {
  const { url } = await startServer(events('ends'), events('ends'), events('ends', GONE));
  const program = `
import time
from cairn_memory import _client
clock, parse, shift = time.monotonic, _client.parse_events, [0]
time.monotonic = lambda: clock() + shift[0]
def hold(response):
    yield from parse(response)
    shift[0] += 3600
_client.parse_events = hold
print(json.dumps([event.event for event in Client(sys.argv[1]).watch_events()]))`;
  expect(await runPython(program, url)).toEqual(['gone']);
});

const hour = refuse(503, () => '3600');
/** Servers that ask a walk, a stream and a wait, in this order, to come back in an hour. */
const startBusy = () =>
  Promise.all([page('a', 1), events('breaks', change('c1')), json(RECEIPT)].map((first) => startServer(first, hour)));

test('a server that asks for a longer wait than a minute is left to the caller', async () => {
  const servers = await startBusy();
  const [walk, feed, wait] = servers.map(({ url }) => createClient({ url })) as [Client, Client, Client];
  const walking = async () => {
    for await (const { id } of walk.listMemories()) expect(id).toBe('a');
  };
  const reading = async () => {
    for await (const { event } of feed.watchEvents()) expect(event).toBe('change');
  };
  const ended = await Promise.allSettled([walking(), reading(), wait.addMemory({ content: 'c' }).ready()]);
  const left = { status: 'rejected', reason: { status: 503, retryAfterMs: 3_600_000 } };
  expect(ended).toMatchObject([left, left, left]);
  expect(servers.map(({ seen }) => seen.length)).toEqual([2, 2, 2]);
});

test.skipIf(!hasPython)('so it is by the Python client, which does not sleep either', async () => {
  const servers = await startBusy();
  const program = `
import time
slept, found = [], []
time.sleep = slept.append
walk, feed, wait = [Client(url) for url in sys.argv[1:]]
for ask in [
    lambda: list(walk.each(walk.list_memories)),
    lambda: list(feed.watch_events()),
    lambda: wait.ready(wait.add_memory(content="c"), timeout=7200),
]:
    try:
        ask()
    except CairnError as error:
        found.append([error.status, error.retry_after_s])
print(json.dumps([found, [seconds for seconds in slept if seconds > 60]]))`;
  const left = [503, 3600];
  expect(await runPython(program, ...servers.map(({ url }) => url))).toEqual([[left, left, left], []]);
});

test('without retries a stream that breaks off is told, and so is one that never opens', async () => {
  const { url, seen } = await startServer(events('ends', change('c1')));
  const reading = async (retries: number, from: string) => {
    for await (const event of createClient({ url: from, retries }).watchEvents()) expect(event.event).toBe('change');
  };
  await expect(reading(0, url)).rejects.toMatchObject({ code: 'unreachable' });
  expect(seen.length).toBe(1);
  const away = await startServer(breakOff);
  await expect(reading(1, away.url)).rejects.toMatchObject({ code: 'unreachable' });
  expect(away.seen.length).toBe(2);
});

test('events that are no JSON come from no Cairn server', async () => {
  const { url } = await startServer((response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).end('data: <html>\n\n');
  });
  const reading = async () => {
    for await (const event of createClient({ url }).watchEvents()) expect(event).toBeUndefined();
  };
  await expect(reading()).rejects.toMatchObject({ code: 'no_cairn' });
});

test('the time that a busy server names may be a date', async () => {
  const date = () => new Date(Date.now() + 3_600_000).toUTCString();
  const { url, seen } = await startServer(refuse(429, date));
  const error: unknown = await createClient({ url })
    .getStats()
    .catch((reason: unknown) => reason);
  const { retryAfterMs } = error as { readonly retryAfterMs: number };
  expect(retryAfterMs).toBeGreaterThan(60_000);
  expect(retryAfterMs).toBeLessThanOrEqual(3_600_000);
  expect(seen.length).toBe(1);
});

test('a header of the caller takes the place of the client’s own, however it is written', async () => {
  const { url, seen } = await startServer(json({}));
  const client = createClient({ url, key: 'own', headers: { Authorization: 'Bearer mine' } });
  await client.getStats({}, { headers: { 'X-Request-Id': 'r' }, requestId: 'other' });
  expect([seen[0]!.headers.authorization, seen[0]!.headers['x-request-id']]).toEqual(['Bearer mine', 'r']);
});

test.skipIf(!hasPython)('replies that are cut, no text or from a proxy are errors of the Python client', async () => {
  const cut: Answer = (response) => {
    response.writeHead(500, { 'content-length': '100' });
    response.write('{"code":', () => response.socket!.destroy());
  };
  const latin: Answer = (response) => response.writeHead(200).end(Buffer.from([0xe9, 0xe9]));
  const date = refuse(429, () => new Date(Date.now() + 3_600_000).toUTCString());
  const busy = refuse(503, () => '61');
  const servers = await Promise.all([cut, latin, date, busy].map((answer) => startServer(answer)));
  const program = `
found = []
for url in sys.argv[1:]:
    try:
        Client(url).get_stats()
    except CairnError as error:
        found.append([error.code, error.status, error.retry_after_s and 60 < error.retry_after_s <= 3600])
print(json.dumps(found))`;
  expect(await runPython(program, ...servers.map(({ url }) => url))).toEqual([
    ['no_cairn', 500, null],
    ['no_cairn', null, null],
    ['unavailable', 429, true],
    ['unavailable', 503, true],
  ]);
  expect(servers.map(({ seen }) => seen.length)).toEqual([1, 1, 1, 1]);
});

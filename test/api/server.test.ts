import { channel } from 'node:diagnostics_channel';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import net from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { problemOf, toEngineError } from '../../src/api/http-errors.ts';
import { EngineError } from '../../src/engine/errors.ts';
import { ADMIN_KEY, startApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

const settings = { OM_EMBEDDINGS: 'none' };

describe('a stop', () => {
  test('answers what is in flight, closes idle connections and accepts no more', async () => {
    const api = await startApi({ folder: tempFolder(), settings });
    const idle = net.connect(api.port, '127.0.0.1');
    await once(idle, 'connect');
    const busy = net.connect(api.port, '127.0.0.1');
    const body = JSON.stringify({ content: 'sent while the server stops' });
    busy.write(
      `POST /memory/add HTTP/1.1\r\nhost: localhost\r\nx-api-key: ${ADMIN_KEY}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\nexpect: 100-continue\r\n\r\n`,
    );
    await once(busy, 'data');
    const idleClosed = once(idle.resume(), 'close');
    const stopped = api.stop();
    await idleClosed;
    busy.write(body);
    const chunks: Buffer[] = [];
    busy.on('data', (chunk: Buffer) => chunks.push(chunk));
    await once(busy, 'close');
    expect(Buffer.concat(chunks).toString()).toMatch(/^HTTP\/1.1 202 /);
    await stopped;
    await expect(fetch(`${api.url}/health`)).rejects.toThrow();
  });

  test('cuts a wait short: the memory is accepted all the same', async () => {
    const folder = tempFolder();
    const api = await startApi({ folder, settings });
    const waiting = api.request('POST', '/memory/add?wait=60000', { body: { content: 'waited for in vain' } });
    while ((await (await api.engine.tenant('default')).countJobs()).queued === 0) await new Promise(setImmediate);
    await api.stop();
    expect((await waiting).status).toBe(202);
  });
});

test('a request and its response are those of Express from the beginning', async () => {
  await using api = await startApi({ folder: tempFolder(), settings });
  const prototypes: unknown[] = [];
  const look = (message: unknown) => {
    const { request, response } = message as { request: IncomingMessage; response: ServerResponse };
    const note = () => prototypes.push(Object.getPrototypeOf(request), Object.getPrototypeOf(response));
    note();
    response.once('finish', note);
  };
  const started = channel('http.server.request.start');
  started.subscribe(look);
  onTestFinished(() => void started.unsubscribe(look));
  expect((await api.request('GET', '/health')).status).toBe(200);
  await expect.poll(() => prototypes.length).toBe(4);
  expect(prototypes[2]).toBe(prototypes[0]);
  expect(prototypes[3]).toBe(prototypes[1]);
});

describe('a request', () => {
  /** Sends this text on a connection of its own, and returns all that comes back until it is closed. */
  async function answerTo(port: number, text: string): Promise<string> {
    const socket = net.connect(port, '127.0.0.1');
    let answer = '';
    socket.setEncoding('latin1').on('data', (piece: string) => (answer += piece));
    socket.write(text);
    await once(socket, 'close');
    return answer;
  }

  test('without a host is refused as HTTP/1.1, which closes the connection, and answered as HTTP/1.0', async () => {
    await using api = await startApi({ folder: tempFolder(), settings });
    const refused = await answerTo(api.port, 'GET /health HTTP/1.1\r\n\r\nGET /health HTTP/1.1\r\nhost: a\r\n\r\n');
    expect(refused.match(/HTTP\/1.1 \d+/g)).toEqual(['HTTP/1.1 400']);
    expect(refused).toContain('"detail":"the header Host is missing"');
    expect(await answerTo(api.port, 'GET /health HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1.1 200 /);
  });

  test('with an expectation that the server does not know is answered as without', async () => {
    await using api = await startApi({ folder: tempFolder(), settings });
    const text = 'GET /health HTTP/1.1\r\nhost: a\r\nexpect: x\r\nconnection: close\r\n\r\n';
    expect(await answerTo(api.port, text)).toMatch(/^HTTP\/1.1 200 /);
  });
});

test('a port that is taken is named', async () => {
  await using api = await startApi({ folder: tempFolder(), settings });
  const second = startApi({ folder: tempFolder(), settings: { ...settings, OM_PORT: String(api.port) } });
  await expect(second).rejects.toThrow(`cannot listen on 127.0.0.1:${api.port}`);
});

describe('an error', () => {
  test('of ours shows nothing of itself to a client', () => {
    const bug = problemOf(toEngineError(new TypeError('canary')), 'r1');
    expect(bug).toMatchObject({ status: 500, code: 'internal', title: 'Internal Server Error', request_id: 'r1' });
    expect(JSON.stringify(bug)).not.toContain('canary');
    const internal = new EngineError('internal', 'canary', { details: ['canary'] });
    expect(JSON.stringify(problemOf(internal, 'r1'))).not.toContain('canary');
  });

  test('of the storage keeps its meaning', () => {
    expect(problemOf(new EngineError('storage_full', 'the disk is full'), 'r')).toMatchObject({
      status: 507,
      detail: 'the disk is full',
    });
  });
});

test('no log line, at any level, holds content, a query, an id of a user, a path or a key', async () => {
  const lines: string[] = [];
  const record = (fields: object, event: string) => void lines.push(JSON.stringify({ event, ...fields }));
  const logger = { debug: record, info: record, warn: record, error: record };
  const canary = 'canary7f3a';
  {
    await using api = await startApi({ folder: tempFolder(), settings, logger });
    await api.request('POST', '/memory/add', {
      body: { content: canary, user_id: canary, metadata: { [canary]: canary } },
    });
    await api.request('POST', '/memory/add', { body: { content: canary, [canary]: canary } });
    await api.request('POST', '/memory/add', { body: `{"content":"${canary}` });
    await api.request('POST', '/memory/query', { body: { query: canary, filters: { users: [canary] } } });
    await api.request('GET', `/memory/${canary}?user_id=${canary}`);
    await api.request('GET', `/${canary}?${canary}`);
    await api.request('GET', '/sectors', { key: `${canary}-as-a-key` });
    await api.request('GET', '/jobs', { headers: { 'x-request-id': 'seen-in-the-log' } });
    expect((await api.request('GET', '/metrics')).text).not.toContain(canary);
  }
  expect(lines.join('\n')).not.toContain(canary);
  expect(lines.join('\n')).not.toContain(ADMIN_KEY);
  const line = JSON.parse(lines.find((text) => text.includes('seen-in-the-log'))!) as object;
  expect(line).toEqual({
    event: 'request',
    route: '/jobs',
    method: 'GET',
    status: 200,
    ms: expect.any(Number),
    requestId: 'seen-in-the-log',
  });
});

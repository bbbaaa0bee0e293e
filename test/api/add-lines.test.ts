import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import http from 'node:http';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { IDLE_MS } from '../../src/api/line-results.ts';
import { ADMIN_KEY, startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

const LINES = { 'content-type': 'application/x-ndjson' };
const BOTH = { ...LINES, accept: 'application/x-ndjson' };
let api: TestApi;
beforeAll(async () => void (api = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none' } })));
afterAll(() => api.stop());

const parseLines = (text: string) =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
const listed = async (user: string) =>
  (await api.request('GET', `/memory/all?l=1000&user_id=${user}`)).body.items.map(({ content }) => content);

function upload(accept = 'application/x-ndjson', key = ADMIN_KEY): http.ClientRequest {
  const headers = { ...LINES, accept, authorization: `Bearer ${key}` };
  return http.request({ port: api.port, host: '127.0.0.1', method: 'POST', path: '/memory/add/batch', headers });
}

describe('NDJSON upload', () => {
  test('a line a result, by number; a wrong line spares the rest', async () => {
    const body = [
      '{"content":"line one","user_id":"n1"}',
      '',
      '{"content":',
      '[]',
      '{"content":"","user_id":"n1"}',
      `{"content":"${'x'.repeat(1024 * 1024)}"}`,
      '{"content":"line seven","user_id":"n1"}\r',
      '{"content":"line one","user_id":"n1"}',
    ].join('\n');
    const reply = await api.request('POST', '/memory/add/batch', { body, headers: BOTH });
    expect(reply.status).toBe(202);
    expect(reply.headers.get('content-type')).toBe('application/x-ndjson; charset=utf-8');
    const error = (code: string) => ({ code, message: expect.any(String) as string });
    const accepted = { id: expect.any(String) as string, state: 'queued', job_id: expect.any(String) as string };
    expect(parseLines(reply.text)).toEqual([
      { line: 1, ...accepted },
      { line: 3, error: error('invalid') },
      { line: 4, error: error('invalid') },
      { line: 5, error: error('invalid') },
      { line: 6, error: error('too_large') },
      { line: 7, ...accepted },
      {
        line: 8,
        id: expect.any(String),
        state: 'queued',
        deduplicated: true,
        primary_sector: 'semantic',
        sectors: expect.any(Array),
      },
      { accepted: 3, rejected: 4, token: expect.any(String) },
    ]);
    expect(await listed('n1')).toEqual(['line seven', 'line one']);
  });

  test('bytes that are no UTF-8 are a wrong line', async () => {
    const body = Buffer.concat([
      Buffer.from('{"content":"'),
      Buffer.from([0xff]),
      Buffer.from('"}\n{"content":"fine","user_id":"n2"}\n'),
    ]);
    const reply = await api.request('POST', '/memory/add/batch', { body, headers: BOTH });
    expect(parseLines(reply.text).at(-1)).toMatchObject({ accepted: 1, rejected: 1 });
  });

  test('JSON for who asks for nothing else; thousands of lines; one token for all', async () => {
    const body = Array.from({ length: 3_000 }, (_, index) =>
      JSON.stringify({ content: `bulk ${index}`, user_id: 'n3' }),
    ).join('\n');
    const reply = await api.request('POST', '/memory/add/batch', { body, headers: LINES });
    expect(reply.status).toBe(202);
    expect(reply.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(reply.body).toMatchObject({ accepted: 3_000, rejected: 0 });
    expect(reply.body.results.map(({ line }) => line)).toEqual(Array.from({ length: 3_000 }, (_, index) => index + 1));
    const [, first, last] = reply.body.token.split('.').map((part) => parseInt(part, 36)) as [number, number, number];
    expect(last - first + 1).toBe(3_000);
  });

  test('results come while the upload goes on', async () => {
    const request = upload();
    request.write('{"content":"first of a slow upload","user_id":"n4"}\n');
    const [response] = (await once(request, 'response')) as [http.IncomingMessage];
    const lines = createInterface({ input: response })[Symbol.asyncIterator]();
    expect(JSON.parse((await lines.next()).value as string)).toMatchObject({ line: 1, state: 'queued' });
    expect(await listed('n4')).toEqual(['first of a slow upload']);
    request.end('{"content":"second of a slow upload","user_id":"n4"}');
    expect(JSON.parse((await lines.next()).value as string)).toMatchObject({ line: 2, state: 'queued' });
    expect(JSON.parse((await lines.next()).value as string)).toMatchObject({ accepted: 2, rejected: 0 });
    expect((await lines.next()).done).toBe(true);
  });

  test('a client that sends nothing for a minute is cut off, by the wait for its lines and not by its socket', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const received: http.IncomingMessage[] = [];
    const note = (message: unknown) => void received.push((message as { request: http.IncomingMessage }).request);
    subscribe('http.server.request.start', note);
    onTestFinished(() => void unsubscribe('http.server.request.start', note));
    const request = upload();
    request.on('error', () => {});
    request.write('{"content":"before a long silence","user_id":"n7"}\n');
    const [response] = (await once(request, 'response')) as [http.IncomingMessage];
    response.on('error', () => {});
    await once(response, 'data');
    // It would also run while the server works on lines, when nothing is read.
    expect(received.map(({ socket }) => socket.timeout ?? 0)).toEqual([0]);
    await expect.poll(() => vi.getTimerCount()).toBe(1);
    await vi.advanceTimersByTimeAsync(IDLE_MS - 1);
    expect(response.destroyed).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    await expect.poll(() => response.destroyed).toBe(true);
    expect(await listed('n7')).toEqual(['before a long silence']);
  });

  test('a key that is revoked meanwhile ends an open upload; what was accepted stays', async () => {
    const { control } = api.engine;
    const { record, secret } = control.createKey({ tenantId: 'default', role: 'write' });
    const request = upload('application/x-ndjson', secret);
    request.write('{"content":"before the revocation","user_id":"n6"}\n');
    const [response] = (await once(request, 'response')) as [http.IncomingMessage];
    const lines = createInterface({ input: response })[Symbol.asyncIterator]();
    expect(JSON.parse((await lines.next()).value as string)).toMatchObject({ line: 1, state: 'queued' });
    control.revokeKey(record.id);
    request.write('{"content":"after the revocation","user_id":"n6"}\n');
    expect(JSON.parse((await lines.next()).value as string)).toEqual({
      accepted: 1,
      rejected: 0,
      token: expect.any(String),
      error: { code: 'unauthenticated', message: expect.stringContaining('revoked') },
    });
    expect((await lines.next()).done).toBe(true);
    request.on('error', () => {}).destroy();
    expect(await listed('n6')).toEqual(['before the revocation']);
  });

  test('an upload that breaks off keeps its whole lines and nothing of the last', async () => {
    const request = upload();
    request.on('error', () => {});
    request.write('{"content":"whole line","user_id":"n5"}\n{"content":"half a li');
    const [response] = (await once(request, 'response')) as [http.IncomingMessage];
    response.on('error', () => {});
    await once(response, 'data');
    request.destroy();
    await once(request, 'close');
    expect(await listed('n5')).toEqual(['whole line']);
    expect((await api.request('GET', '/health')).status).toBe(200);
  });

  test('an empty one is an answer, an Idempotency-Key is not for streams', async () => {
    const empty = await api.request('POST', '/memory/add/batch', { body: '\n\n', headers: LINES });
    expect([empty.status, empty.body]).toEqual([202, { results: [], accepted: 0, rejected: 0, token: null }]);
    const headers = { ...LINES, 'idempotency-key': 'k' };
    const refused = await api.request('POST', '/memory/add/batch', { body: '{"content":"x"}', headers });
    expect([refused.status, refused.body.detail]).toEqual([400, expect.stringContaining('external_id')]);
  });
});

test('over the backlog cap the stream ends with what was stored and why it ended', async () => {
  await using small = await startApi({
    folder: tempFolder(),
    settings: { OM_EMBEDDINGS: 'none', OM_MAX_BACKLOG: '100' },
  });
  const body = Array.from({ length: 200 }, (_, index) => JSON.stringify({ content: `capped ${index}` })).join('\n');
  const reply = await small.request('POST', '/memory/add/batch', { body, headers: LINES });
  expect(reply.status).toBe(202);
  expect(reply.body).toMatchObject({ accepted: 64, rejected: 0, error: { code: 'unavailable' } });
  expect(reply.body.results).toHaveLength(64);
  await small.request('POST', '/memory/add/batch', {
    body: body.split('\n').slice(100, 136).join('\n'),
    headers: LINES,
  });
  const full = await small.request('POST', '/memory/add', { body: { content: 'one too many' } });
  expect([full.status, full.headers.get('retry-after')]).toEqual([503, '5']);
  const stream = await small.request('POST', '/memory/add/batch', {
    body: '{"content":"one too many"}',
    headers: LINES,
  });
  expect([stream.status, stream.body.code]).toEqual([503, 'unavailable']);
  expect((await small.request('DELETE', `/memory/${reply.body.results[0]!.id}`)).status).toBe(200);
});

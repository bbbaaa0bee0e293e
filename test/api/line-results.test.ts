import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import express, { type Response } from 'express';
import { expect, onTestFinished, test } from 'vitest';
import { bodyPlaces } from '../../src/api/body-places.ts';
import { collectedResults } from '../../src/api/line-results.ts';
import { until } from '../support/attacks/silent-readers.ts';
import { ADMIN_KEY, startApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

const MIB = 1024 * 1024;
const LINES = { 'content-type': 'application/x-ndjson' };
/** A line that is refused with an error of over 1 KB, which repeats names of it. */
const WRONG = `${JSON.stringify(Object.fromEntries([1, 2, 3].map((no) => [`${no}${'\u0001'.repeat(31)}`, 1])))}\n`;

/** Serves one request with `answer`, and returns the reply, of which nothing has been read yet. */
async function serve(answer: (response: Response) => void): Promise<http.IncomingMessage> {
  const server = http.createServer(express().get('/', (_request, response) => answer(response)));
  onTestFinished(() => void server.close().closeAllConnections());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const request = http.get({ port: (server.address() as AddressInfo).port, host: '127.0.0.1' });
  const [reply] = (await once(request, 'response')) as [http.IncomingMessage];
  return reply;
}

test('a long JSON reply is written as its client reads it, and its bytes are counted before', async () => {
  const held: number[] = [];
  let written: Response | undefined;
  const reply = await serve((response) => {
    const results = collectedResults(response, { hold: (bytes) => held.push(bytes), readerTimeoutMs: 60_000 });
    written = response;
    void (async () => {
      for (let line = 1; line <= 60_000; line += 1) {
        results.push({ line, message: 'ж'.repeat(100) });
        if (line % 64 === 0) await results.flush();
      }
      await results.end({ accepted: 0, rejected: 60_000 });
    })();
  });
  expect(written!.writableLength).toBeLessThan(MIB);
  const sent = await text(reply);
  expect(JSON.parse(sent)).toMatchObject({
    results: { length: 60_000, 59_999: { line: 60_000, message: 'ж'.repeat(100) } },
    accepted: 0,
    rejected: 60_000,
  });
  expect(held.at(-1)).toBeGreaterThan(Buffer.byteLength(sent) - 64 * 300);
  expect(Math.max(...held)).toBeLessThan(Buffer.byteLength(sent) + 256 * 1024);
});

test('the results of an upload count among the bytes of its key, until its end', async () => {
  await using api = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none' } });
  const before = bodyPlaces.bytes;
  const headers = { ...LINES, authorization: `Bearer ${ADMIN_KEY}` };
  const request = http.request({
    port: api.port,
    host: '127.0.0.1',
    method: 'POST',
    path: '/memory/add/batch',
    headers,
  });
  request.on('error', () => {});
  request.write(WRONG.repeat(2_500));
  await until(() => bodyPlaces.bytes - before > 1.5 * MIB);
  request.destroy();
  await until(() => bodyPlaces.bytes === before);
});

test('a JSON reply of 16 MiB takes no further results, and says which lines are not stored', async () => {
  await using api = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none' } });
  const good = (no: number) => `${JSON.stringify({ content: `good line ${no}`, user_id: 'mixed' })}\n`;
  const block = (no: number) => good(no) + WRONG.repeat(999);
  const body = Array.from({ length: 20 }, (_, no) => block(no)).join('');
  const { status, text: sent, body: answer } = await api.request('POST', '/memory/add/batch', { body, headers: LINES });
  expect(status).toBe(202);
  expect(Buffer.byteLength(sent)).toBeGreaterThan(16 * MIB);
  expect(Buffer.byteLength(sent)).toBeLessThan(17 * MIB);
  const { results, accepted, rejected, error } = answer as unknown as Answer;
  expect(results.at(-1)!.line).toBe(results.length);
  expect(accepted + rejected).toBe(results.length);
  expect(error).toEqual({
    code: 'too_large',
    message: expect.stringContaining(`line ${results.length + 1} and those after it are not stored`),
  });
  const stored = results.filter(({ id }) => id !== undefined);
  expect(stored).toHaveLength(accepted);
  const listed = (await api.request('GET', '/memory/all?l=1000&user_id=mixed')).body.items;
  expect(listed.map(({ id }) => id).sort()).toEqual(stored.map(({ id }) => id).sort());
});

interface Answer {
  readonly results: readonly { readonly line: number; readonly id?: string }[];
  readonly accepted: number;
  readonly rejected: number;
  readonly error: unknown;
}

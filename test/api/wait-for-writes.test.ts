import { once } from 'node:events';
import { createServer, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Response } from 'express';
import { expect, onTestFinished, test } from 'vitest';
import { clientGone } from '../../src/api/wait-for-writes.ts';

/** Starts a server that answers nothing by itself. Returns its port and a function that waits for a response. */
async function startServer() {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const asked = async () => ((await once(server, 'request')) as [unknown, ServerResponse])[1];
  return { port: (server.address() as AddressInfo).port, asked };
}

test('a client that leaves before its answer aborts the work for it', async () => {
  const { port, asked } = await startServer();
  const call = request({ port, host: '127.0.0.1' });
  call.on('error', () => {});
  call.end();
  const response = await asked();
  const signal = clientGone(response as Response);
  expect(signal.aborted).toBe(false);
  const aborted = once(signal, 'abort');
  call.destroy();
  await aborted;
  expect(signal.aborted).toBe(true);
});

test('a client that has left already aborts the work for it', async () => {
  const { port, asked } = await startServer();
  const call = request({ port, host: '127.0.0.1' });
  call.on('error', () => {});
  call.end();
  const response = await asked();
  const closed = once(response, 'close');
  call.destroy();
  await closed;
  expect(clientGone(response as Response).aborted).toBe(true);
});

test('an answer that was sent aborts nothing', async () => {
  const { port, asked } = await startServer();
  const call = request({ port, host: '127.0.0.1' });
  call.end();
  const response = await asked();
  const signal = clientGone(response as Response);
  const closed = once(response, 'close');
  response.end('done');
  await closed;
  expect(signal.aborted).toBe(false);
  expect(clientGone(response as Response).aborted).toBe(false);
});

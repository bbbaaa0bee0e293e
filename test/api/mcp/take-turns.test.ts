import { once } from 'node:events';
import http from 'node:http';
import net, { type AddressInfo } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import type { Transport } from '@modelcontextprotocol/server';
import type { Response } from 'express';
import { expect, onTestFinished, test } from 'vitest';
import { answerInTurns, inTurn } from '../../../src/api/mcp/take-turns.ts';
import type { TenantCall } from '../../../src/api/route.ts';

const MORE_THAN_SOCKETS_HOLD = Buffer.alloc(64 * 1024 * 1024);

/** Serves one request whose client reads nothing until it is told to. */
async function openReply() {
  const { promise, resolve } = Promise.withResolvers<Response>();
  const server = http.createServer((_request, response) => resolve(response as Response)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = net.connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {});
  client.pause();
  client.write('POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n');
  onTestFinished(() => void [client.destroy(), server.close()]);
  const response = await promise;
  const call = {
    response,
    principal: { tenantId: 'default', keyId: 'key' },
    api: { engine: { config: { OM_READER_TIMEOUT_MS: 60_000 } } },
  } as unknown as TenantCall;
  return { client, response, call };
}

test('of the messages of one request few are worked on at the same time, and all in the end', async () => {
  const { call } = await openReply();
  let [working, most] = [0, 0];
  const work = async () => {
    most = Math.max(most, ++working);
    await turn();
    working -= 1;
    return 'x'.repeat(20_000);
  };
  const texts = await Promise.all(Array.from({ length: 100 }, () => inTurn(call, work)));
  expect(texts).toHaveLength(100);
  expect(most).toBe(4);
});

test('a message that fails leaves its place to the next', async () => {
  const { call } = await openReply();
  const outcomes = Array.from({ length: 20 }, (_, no) =>
    inTurn(call, async () => {
      await turn();
      if (no < 10) throw new Error('no');
      return 'yes';
    }),
  );
  const settled = await Promise.allSettled(outcomes);
  expect(settled.filter(({ status }) => status === 'fulfilled')).toHaveLength(10);
});

test('no message is worked on while the client reads nothing of those before', async () => {
  const { client, response, call } = await openReply();
  response.write(MORE_THAN_SOCKETS_HOLD);
  let worked = 0;
  const answers = Array.from({ length: 10 }, () => inTurn(call, async () => String(++worked)));
  for (let turns = 0; turns < 100; turns += 1) await turn();
  expect(worked).toBe(0);
  client.resume();
  await Promise.all(answers);
  expect(worked).toBe(10);
});

test('no message is begun once the connection is closed, as when its key is revoked', async () => {
  const { response, call } = await openReply();
  const { promise: revoked, resolve: revoke } = Promise.withResolvers<void>();
  let begun = 0;
  const answers = Array.from({ length: 100 }, () =>
    inTurn(call, async () => {
      begun += 1;
      await revoked;
      return 'done';
    }),
  );
  response.destroy();
  revoke();
  const outcomes = await Promise.allSettled(answers);
  expect(outcomes.filter(({ status }) => status === 'rejected')).toHaveLength(96);
  expect(begun).toBe(4);
});

test('messages of a batch are answered in order, four at once and one in each turn, until the connection is closed', async () => {
  const answered: { message: unknown; turn: number }[] = [];
  const failures: unknown[] = [];
  let turnNo = 0;
  const done = Promise.withResolvers<void>();
  const transport = { onerror: (error: Error) => failures.push(error.message) } as unknown as Transport;
  const response = { destroyed: false, writableNeedDrain: false };
  const connect = async (to: Transport) => {
    to.onmessage = (message) => {
      answered.push({ message, turn: turnNo });
      if (answered.length === 30) response.destroyed = true;
      if (answered.length === 5) throw new Error('no');
    };
  };
  const server = { connect };
  answerInTurns(server, { response } as unknown as TenantCall);
  await server.connect(transport);
  const count = () => {
    turnNo += 1;
    if (turnNo < 200) setImmediate(count);
    else done.resolve();
  };
  setImmediate(count);
  for (let no = 0; no < 40; no++) transport.onmessage?.({ no } as never);
  expect(answered).toHaveLength(4);
  await done.promise;
  expect(answered.map(({ message }) => message)).toEqual(Array.from({ length: 30 }, (_, no) => ({ no })));
  expect(new Set(answered.map((each) => each.turn)).size).toBe(27);
  expect(failures).toEqual(['no']);
});

test('a further message of a batch waits until the client has read what was sent before', async () => {
  const { response, call, client } = await openReply();
  const answered: unknown[] = [];
  const transport = {} as Transport;
  const server = {
    async connect(to: Transport) {
      to.onmessage = (message) => void answered.push(message);
    },
  };
  answerInTurns(server, call);
  await server.connect(transport);
  response.write(MORE_THAN_SOCKETS_HOLD);
  for (let no = 0; no < 10; no++) transport.onmessage?.({ no } as never);
  for (let turns = 0; turns < 100; turns += 1) await turn();
  expect(answered).toHaveLength(4);
  client.resume();
  await expect.poll(() => answered).toHaveLength(10);
});

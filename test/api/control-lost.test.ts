/** What goes on in the background while the control database cannot be read. */
import { createServer, IncomingMessage, ServerResponse } from 'node:http';
import { type AddressInfo, Socket } from 'node:net';
import { once } from 'node:events';
import type { Response } from 'express';
import { expect, onTestFinished, test, vi } from 'vitest';
import { runEvalsByScheduleUntil } from '../../src/api/run-evals.ts';
import { tendStandingUntil } from '../../src/api/run-standing.ts';
import type { Route, TenantCall } from '../../src/api/route.ts';
import { takeForRequest } from '../../src/api/take-tokens.ts';
import { watchAdmission } from '../../src/api/watch-admission.ts';
import type { Engine } from '../../src/engine/index.ts';
import { openTestEngine } from '../support/engine-fixture.ts';
import { fileTest } from '../support/store-settings.ts';

test('standing queries wait for the next look, and nothing ends the process', async () => {
  const { engine, close } = await openTestEngine({ settings: { OM_EVENTS: 'true' } });
  await close();
  const failed: string[] = [];
  const stop = new AbortController();
  const logger: Engine['logger'] = {
    ...engine.logger,
    error(_fields, event) {
      failed.push(event);
      stop.abort();
    },
  };
  await tendStandingUntil(stop.signal, { ...engine, logger });
  expect(failed).toEqual(['standing_failed']);
  await runEvalsByScheduleUntil(stop.signal, { ...engine, logger });
});

test('a request in progress goes on, and ends once its key is known to be refused', async () => {
  const looks: string[] = [];
  const server = createServer((_request, reply) => {
    const response = Object.assign(reply, { locals: {} }) as unknown as Response;
    response.write('begun');
    watchAdmission(response, () => {
      looks.push(looks.length < 2 ? 'lost' : 'refused');
      if (looks.length < 3) throw new Error('the control database does not answer');
      return false;
    });
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  await expect(response.text()).rejects.toThrow();
  expect(looks).toEqual(['lost', 'lost', 'refused']);
});

fileTest(
  'an upload of unknown length that ends after the control database was lost does not end the process',
  async () => {
    const { engine, close } = await openTestEngine({ settings: { OM_RATE_UPLOAD_MB: '1' } });
    const socket = new Socket();
    const request = new IncomingMessage(socket);
    const response = Object.assign(new ServerResponse(request), { locals: {} });
    const principal = { keyId: 'one', tenantId: 'default' };
    const call = { api: { engine }, principal, request, response } as unknown as TenantCall;
    takeForRequest(call, { limited: ['upload_bytes'] } as unknown as Route);
    const bucket = { key: 'one', kind: 'upload_bytes' } as const;
    const rest = () => engine.rates.peek(bucket, { cost: 1, perMinute: 1024 * 1024 }).remaining;
    const before = rest();
    Object.defineProperty(socket, 'bytesRead', { value: 2 ** 19 });
    engine.control.close();
    // A look at whether the limits have changed holds for some time, which is over at each call.
    let now = performance.now();
    vi.spyOn(performance, 'now').mockImplementation(() => (now += 60_000));
    onTestFinished(() => void vi.restoreAllMocks());
    expect(() => engine.control.limits.inForce({ tenantId: 'default' })).toThrow();
    response.emit('close');
    expect(before - rest()).toBeGreaterThan(2 ** 18);
    await close();
  },
);

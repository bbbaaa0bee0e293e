import type { IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { watchArrival } from '../../src/api/watch-arrival.ts';
import { turnsDuring } from '../support/turns-during.ts';

test('uploads whose connections break off together end one after the other, in turns', async () => {
  const requests = Array.from({ length: 50 }, () => Object.assign(new PassThrough(), { headers: {} }));
  const turns = await turnsDuring(async () => {
    const ends = requests.map((request) => {
      const { promise, resolve } = Promise.withResolvers<{ code: string }>();
      watchArrival(request as unknown as IncomingMessage, { fileBytes: 10, bodyBytes: 20 }, resolve);
      return promise;
    });
    for (const request of requests) request.destroy();
    for (const { code } of await Promise.all(ends)) expect(code).toBe('invalid');
  });
  expect(turns).toBeGreaterThan(40);
});

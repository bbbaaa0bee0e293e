import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { mediaTypeOf, parseJson, readBytes, readJson } from '../../src/api/read-body.ts';
import { watchArrival } from '../../src/api/watch-arrival.ts';
import { countTurns, turnsDuring } from '../support/turns-during.ts';

function upload(headers: Record<string, string> = {}): PassThrough & IncomingMessage {
  return Object.assign(new PassThrough(), { headers }) as unknown as PassThrough & IncomingMessage;
}

describe('a body', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
  afterEach(() => void vi.useRealTimers());

  test('of exactly the limit is read, one byte more is refused', async () => {
    const exact = upload();
    exact.write('12345');
    exact.end('67890');
    expect((await readBytes(exact, 10, 1000)).toString()).toBe('1234567890');
    const over = upload();
    over.end('12345678901');
    await expect(readBytes(over, 10, 1000)).rejects.toMatchObject({ code: 'too_large' });
  });

  test('that says it is too large is refused before a byte of it came', async () => {
    await expect(readBytes(upload({ 'content-length': '11' }), 10, 1000)).rejects.toMatchObject({ code: 'too_large' });
  });

  test('that trickles is given up when its time is over', async () => {
    const slow = upload();
    const reading = readBytes(slow, 10, 1000);
    slow.write('{');
    const refused = expect(reading).rejects.toMatchObject({ code: 'invalid', message: expect.stringContaining('1 s') });
    await vi.advanceTimersByTimeAsync(1000);
    await refused;
    expect(vi.getTimerCount()).toBe(0);
  });

  test('that breaks off is refused and leaves no timer', async () => {
    const broken = upload();
    const reading = readBytes(broken, 10, 1000);
    broken.destroy();
    // Thousands may break off at once, and a stack trace of each takes time.
    await expect(reading).rejects.toMatchObject({ code: 'invalid', stack: expect.not.stringContaining('\n    at ') });
    expect(vi.getTimerCount()).toBe(0);
    expect(new Error('another').stack).toContain('\n    at ');
  });

  test('that broke off before it was read is refused at once, and leaves no timer', async () => {
    const [body, document] = [upload(), upload()];
    for (const broken of [body, document]) {
      broken.destroy();
      await once(broken, 'close');
    }
    await expect(readBytes(body, 10, 1000)).rejects.toMatchObject({ code: 'invalid' });
    const { promise, reject } = Promise.withResolvers<never>();
    const stopWatching = watchArrival(document, { fileBytes: 10, bodyBytes: 20 }, reject);
    await expect(promise).rejects.toMatchObject({ code: 'invalid' });
    stopWatching();
    expect(vi.getTimerCount()).toBe(0);
  });

  test('that is no UTF-8 or no JSON is refused without a word of it', () => {
    for (const bytes of [
      Buffer.from([0x22, 0xff, 0x22]),
      Buffer.from('{"canary'),
      Buffer.from(''),
      Buffer.from('\ufeff{'),
    ]) {
      expect(() => parseJson(bytes)).toThrow(expect.objectContaining({ code: 'invalid' }));
      expect(() => parseJson(bytes)).not.toThrow(/canary/);
    }
  });
});

test('bodies of many values are parsed in turns with other requests', async () => {
  const value = Array.from({ length: 90_000 }, (_, no) => no % 10);
  // One takes few turns on a fast machine.
  const requests = Array.from({ length: 8 }, () => upload({ 'content-type': 'application/json' }));
  for (const request of requests) request.end(JSON.stringify({ value }));
  const turns = await turnsDuring(async () => {
    for (const body of await Promise.all(requests.map((request) => readJson(request))))
      expect(body).toMatchObject({ value: { value } });
  });
  expect(turns).toBeGreaterThan(8);
  for (const request of requests) request.destroy(); // Until then their bytes count for the API of all test files.
});

/** Ends the bodies of many requests at once, and returns the turn of the event loop in which each was parsed. */
async function turnsOfLast(bodies: readonly (PassThrough & IncomingMessage)[]): Promise<number[]> {
  const loop = countTurns();
  const parsed = bodies.map(async (body) => {
    await readJson(body);
    for (const until = performance.now() + 2; performance.now() < until;); // The rest of the request's work.
    return loop.turn;
  });
  // Each connection is read by itself, and all of them in one turn.
  for (const body of bodies) setImmediate(() => body.end('{}'));
  const turns = await Promise.all(parsed);
  loop.stop();
  for (const body of bodies) body.destroy();
  return turns;
}

describe('bodies that end in one turn', () => {
  const late = () => upload({ 'content-type': 'application/json' });

  test('are parsed a few in each turn if they were waited for', async () => {
    const inTurn = Object.values(Object.groupBy(await turnsOfLast(Array.from({ length: 20 }, late)), (turn) => turn));
    expect(Math.max(...inTurn.map((some) => some!.length))).toBeLessThanOrEqual(4);
  });

  test('wait for nobody if they came whole with their headers', async () => {
    const waiting = turnsOfLast(Array.from({ length: 20 }, late));
    await new Promise(setImmediate);
    const whole = Object.assign(late(), { complete: true });
    whole.end('{}');
    let isSame = true;
    setImmediate(() => (isSame = false));
    await readJson(whole);
    expect(isSame).toBe(true);
    await waiting;
  });
});

describe('a content type', () => {
  test.each([
    ['application/json', 'application/json'],
    ['Application/JSON; charset=UTF-8', 'application/json'],
    ['application/json;charset="utf8"', 'application/json'],
    ['application/x-ndjson', 'application/x-ndjson'],
  ])('%s is %s', (header, mediaType) => {
    expect(mediaTypeOf(upload({ 'content-type': header }))).toBe(mediaType);
  });

  test.each(['application/json; charset=utf-16', 'application/json; charset=iso-8859-1', 'json', 'a/b/c', ''])(
    '%s is not supported',
    (header) => {
      expect(() => mediaTypeOf(upload({ 'content-type': header }))).toThrow(
        expect.objectContaining({ code: 'unsupported' }),
      );
    },
  );

  test('with a content encoding is not supported', () => {
    const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' };
    expect(() => mediaTypeOf(upload(headers))).toThrow(expect.objectContaining({ code: 'unsupported' }));
  });
});

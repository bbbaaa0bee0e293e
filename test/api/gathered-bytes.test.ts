import { Readable } from 'node:stream';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { GatheredBytes } from '../../src/api/gathered-bytes.ts';
import { JsonOutline } from '../../src/api/json-outline.ts';
import { linesOf } from '../../src/api/lines.ts';

test('pieces are one buffer, each time anew', () =>
  fc.assert(
    fc.property(fc.array(fc.array(fc.uint8Array({ maxLength: 40 }))), (rounds) => {
      const gathered = new GatheredBytes();
      for (const pieces of rounds) {
        for (const piece of pieces) gathered.add(Buffer.from(piece));
        const whole = Buffer.concat(pieces);
        expect(gathered.size).toBe(whole.length);
        expect(gathered.take()).toEqual(whole);
      }
    }),
  ));

test('a small part of a large piece does not keep that in memory', () => {
  const gathered = new GatheredBytes();
  const piece = Buffer.from(new Uint8Array(65_536).fill(97).buffer);
  gathered.add(piece.subarray(65_530));
  expect(gathered.take().buffer.byteLength).toBeLessThan(65_536);
  gathered.add(piece.subarray(10));
  expect(gathered.take().buffer).toBe(piece.buffer);
});

test('few bytes in two pieces keep little more than themselves in memory', () => {
  const held = Array.from({ length: 200 }, (_, no) => {
    const gathered = new GatheredBytes();
    for (const size of [10, 10 + 10 * no]) gathered.add(Buffer.alloc(size, 97));
    Buffer.allocUnsafe(8_000); // What other requests take from Node's pool meanwhile.
    return gathered.take();
  });
  const memory = new Set(held.map(({ buffer }) => buffer));
  const bytes = [...memory].reduce((sum, { byteLength }) => sum + byteLength, 0);
  const own = held.reduce((sum, { length }) => sum + length, 0);
  expect(bytes).toBeLessThan(2 * own + 200 * 256);
});

/** Number of single bytes that a client sends; a list of as many buffers takes over 40 MB. */
const DRIPS = 400_000;
const MOST_BYTES = 8 * 1024 * 1024;

test('a line that drips in single bytes takes little more memory than its bytes', async () => {
  const before = usedBytes();
  let used = 0;
  function* drips() {
    for (let at = 0; at < DRIPS; at += 1) yield Buffer.from('a');
    used = usedBytes() - before;
    yield Buffer.from('\n');
  }
  const lines = [];
  for await (const some of linesOf(Readable.from(drips()), { maxBytes: DRIPS })) lines.push(...some);
  expect(lines.map(({ bytes }) => bytes?.length)).toEqual([DRIPS]);
  expect(used).toBeLessThan(MOST_BYTES);
});

test('a JSON body that drips in single bytes takes little more memory than its bytes', () => {
  const before = usedBytes();
  const outline = new JsonOutline(2 * DRIPS);
  for (let at = 0; at < DRIPS; at += 1) outline.push(Buffer.from(' '));
  expect(usedBytes() - before).toBeLessThan(MOST_BYTES);
  expect(outline.rest().length).toBe(DRIPS);
});

/** Returns the memory of JavaScript and of its buffers in bytes, after a collection of garbage. */
function usedBytes(): number {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

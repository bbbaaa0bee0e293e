import fc from 'fast-check';
import { setImmediate as nextLoop } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { hasLongText, jsonPieces } from '../../src/api/json-pieces.ts';
import { JsonText } from '../../src/engine/index.ts';
import { nextTurn } from '../../src/engine/turns.ts';
import { fieldName, jsonValue } from '../support/json-values.ts';

/** Texts of some 16,000 to 60,000 characters: an edge, a unit again and again, an edge. */
const longText = fc
  .tuple(fc.string({ unit: 'binary' }), fc.constantFrom('x', 'é', '\u0001', '"\\', '😀', '\ud83d'), fc.string())
  .map(([before, unit, after]) => before + unit.repeat(20_000) + after);
const value = fc.oneof(
  longText,
  fc.record({
    id: fc.string(),
    content: longText,
    gone: fc.constant(undefined),
    metadata: fc.dictionary(fieldName, jsonValue()),
    title: fc.oneof(longText, fc.string()),
  }),
  jsonValue(),
);

test('the pieces of a value are its JSON, and none is long', () => {
  fc.assert(
    fc.property(value, (json) => {
      const pieces = [...jsonPieces(json)];
      expect(JSON.parse(pieces.join(''))).toEqual(JSON.parse(JSON.stringify(json)));
      if (hasLongText(json))
        for (const piece of pieces) expect(Buffer.byteLength(piece)).toBeLessThanOrEqual(48 * 1024);
    }),
    { numRuns: 50 },
  );
  const pairs = { content: `a${'😀'.repeat(20_000)}`, after: 1 };
  expect([...jsonPieces(pairs)].join('')).toBe(JSON.stringify(pairs));
});

test('a value that came as text is copied in pieces, not parsed', () => {
  const dense = Array.from({ length: 40_000 }, (_, no) => [`😀${no}`]);
  const text = new JsonText(JSON.stringify(dense));
  const item = { id: 'a', value: text, metadata: { b: 1 } };
  const pieces = [...jsonPieces(item)];
  expect(pieces.join('')).toBe(JSON.stringify({ ...item, value: dense }));
  for (const piece of pieces) expect(piece.length).toBeLessThanOrEqual(8 * 1024);
  const nested = [...jsonPieces({ version: 1, replaced: item })];
  expect(nested.join('')).toBe(JSON.stringify({ version: 1, replaced: { ...item, value: dense } }));
  for (const piece of nested) expect(piece.length).toBeLessThanOrEqual(8 * 1024);
  expect(JSON.stringify({ deep: [item] })).toBe(JSON.stringify({ deep: [{ ...item, value: dense }] }));
});

test('of those that work in turns, one has its turn each time the event loop comes round', async () => {
  let loops = 0;
  let working = 5;
  const turns: number[] = [];
  const work = async () => {
    for (let step = 0; step < 20; step += 1) {
      await nextTurn();
      turns.push(loops);
    }
    working -= 1;
  };
  const all = Promise.all(Array.from({ length: working }, work));
  for (; working > 0; loops += 1) await nextLoop();
  await all;
  expect(turns).toHaveLength(100);
  expect(new Set(turns).size).toBe(100);
});

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { decodeBase64, readLongText } from '../../src/api/long-text.ts';
import { turnsDuring } from '../support/turns-during.ts';

const PIECE = 256 * 1024;

async function* once(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}

async function read(encoded: string): Promise<string> {
  let text = '';
  for await (const piece of readLongText(once(Buffer.from(encoded)))) text += piece;
  return text;
}

test.each(['\\u0041', '\\ud83d\\ude00', '\\n', 'plain', 'ä'])(
  'a long JSON string of %s is decoded in steps, between which other requests run',
  async (unit) => {
    const encoded = unit.repeat(Math.floor(PIECE / Buffer.byteLength(unit)));
    expect(await turnsDuring(() => read(encoded))).toBeGreaterThanOrEqual(14);
    expect(await read(encoded)).toBe(JSON.parse(`"${encoded}"`));
  },
);

test('characters and escapes are whole, wherever a step ends', () =>
  fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 0, max: 12 }),
      fc.constantFrom('\\ud83d\\ude00', '😀', '\\u00e4'),
      async (no, unit) => {
        const encoded = `${'x'.repeat(16 * 1024 - no)}${unit}${'y'.repeat(16 * 1024 - no)}${unit}z`;
        expect(await read(encoded)).toBe(JSON.parse(`"${encoded}"`));
      },
    ),
  ));

test('base64 with white space is decoded in steps, between which other requests run', async () => {
  const data = 'A\n'.repeat(PIECE / 2);
  expect(await turnsDuring(() => decodeBase64(data))).toBeGreaterThanOrEqual(14);
  expect(await decodeBase64(data)).toEqual(Buffer.alloc((PIECE / 8) * 3));
  const bytes = Buffer.from(Array.from({ length: 100_000 }, (_, no) => no % 251));
  expect(await decodeBase64(bytes.toString('base64'))).toEqual(bytes);
});

import fc from 'fast-check';
import fs from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import {
  createFrameDecoder,
  encodeHead,
  readFrame,
  writeFrame,
} from '../../../../src/engine/documents/parser/parser-frames.ts';
import { jsonText } from '../../../support/json-values.ts';
import { tempFolder } from '../../../support/temp-folder.ts';

const frame = fc.record({ head: jsonText().map((json) => JSON.parse(json) as unknown), body: fc.uint8Array() });

function encode({ head, body }: { readonly head: unknown; readonly body: Uint8Array }): Buffer {
  return Buffer.concat([encodeHead(head, body.length), body]);
}

test('frames come out as they went in, however the pipe cuts them', () => {
  fc.assert(
    fc.property(fc.array(frame), fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1 }), (frames, sizes) => {
      const bytes = Buffer.concat(frames.map(encode));
      const decode = createFrameDecoder(1_000_000);
      const decoded: unknown[] = [];
      for (let start = 0, piece = 0; start < bytes.length; piece++) {
        const end = start + (sizes[piece % sizes.length] ?? 1);
        for (const { head, body } of decode(bytes.subarray(start, end))) decoded.push({ head, body: [...body] });
        start = end;
      }
      expect(decoded).toEqual(frames.map(({ head, body }) => ({ head, body: [...body] })));
    }),
  );
});

test('a file descriptor gives back what was written to it, and then nothing', () => {
  const file = path.join(tempFolder(), 'frames');
  const writer = fs.openSync(file, 'w');
  writeFrame(writer, { first: true }, Buffer.from('body'));
  writeFrame(writer, 'second');
  fs.closeSync(writer);
  const reader = fs.openSync(file, 'r');
  expect(readFrame(reader)).toEqual({ head: { first: true }, body: Buffer.from('body') });
  expect(readFrame(reader)).toEqual({ head: 'second', body: Buffer.alloc(0) });
  expect(readFrame(reader)).toBeUndefined();
  fs.closeSync(reader);
});

test('a frame that is too large is refused by its lengths alone', () => {
  expect(() => createFrameDecoder(100)(encodeHead({}, 90))).not.toThrow();
  expect(() => createFrameDecoder(100)(encodeHead({}, 91))).toThrow(RangeError);
});

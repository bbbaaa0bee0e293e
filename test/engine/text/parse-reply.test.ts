import { expect, test } from 'vitest';
import { parseReply } from '../../../src/engine/text/parse-reply.ts';
import { HOSTILE_SHAPES } from './hostile-shapes.ts';

test.each(['[1, 2]', ' [1, 2]\n', '```json\n[1, 2]\n```', '```\n[1, 2]```\n', '```json [1, 2]', '[1, 2] ```'])(
  'JSON is read with a fence and without: %j',
  (reply) => expect(parseReply(reply)).toEqual([1, 2]),
);

test.each(['', '```', '``````', 'Sure: [1]', '[1'])('anything else is null: %j', (reply) => {
  expect(parseReply(reply)).toBeNull();
});

// Quadratic work on a megabyte takes hours; the runner's timeout is the bound.
test.each(Object.entries(HOSTILE_SHAPES))('an answer with a megabyte of %s is refused', (_shape, make) => {
  expect(parseReply(`[1${make(1_000_000)}x`)).toBeNull();
});

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { jsonProblem } from '../../src/api/json-value-problem.ts';
import type { Json } from '../../src/engine/types.ts';
import { jsonText } from '../support/json-values.ts';

const limits = { depth: 64, bytes: 16 * 1024 };
const nested = (depth: number) => JSON.parse('['.repeat(depth) + ']'.repeat(depth)) as Json;

test('64 levels pass, 65 and a hundred thousand do not', () => {
  expect(jsonProblem(nested(64), limits)).toBeUndefined();
  expect(jsonProblem(nested(65), limits)).toContain('64');
  expect(jsonProblem(nested(100_000), limits)).toContain('64');
});

test('the limit counts bytes of UTF-8', () => {
  expect(jsonProblem({ a: 'é'.repeat(8 * 1024 - 4) }, limits)).toBeUndefined();
  expect(jsonProblem({ a: 'é'.repeat(8 * 1024 - 3) }, limits)).toContain('16384');
});

test('a lone surrogate is found wherever it stands, and nothing else is one', () => {
  for (const value of ['\ud800', ['a', ['\udc00']], { a: { '\ud83d': 1 } }] as Json[]) {
    expect(jsonProblem(value, limits)).toContain('surrogate');
  }
  fc.assert(
    fc.property(
      jsonText({ maxDepth: 8 }),
      (text) => jsonProblem(JSON.parse(text) as Json, { depth: 64, bytes: 1e9 }) === undefined,
    ),
  );
});

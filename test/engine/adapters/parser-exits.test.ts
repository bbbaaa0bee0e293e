import { expect, onTestFinished, test } from 'vitest';
import { createParserPool, type ParserPoolOptions } from '../../../src/engine/adapters/parser-pool.ts';
import { askParser, requestOf, STUB_PARSER } from '../../support/ask-parser.ts';

/** A pool and what it said of its children so far: `started`, or how one ended. */
function openPool(options: Partial<ParserPoolOptions> = {}) {
  const told: string[] = [];
  const pool = createParserPool({
    size: 1,
    timeoutMs: 30_000,
    heapMb: 128,
    entry: STUB_PARSER,
    onStart: () => told.push('started'),
    onExit: (exit) => told.push(exit),
    ...options,
  });
  onTestFinished(() => pool.close());
  return { pool, told };
}

test('children are told of: one for many documents, ended with the pool', async () => {
  const { pool, told } = openPool();
  await askParser(pool, ['calls']);
  await askParser(pool, ['calls']);
  expect(told).toEqual(['started']);
  await pool.close();
  expect(told).toEqual(['started', 'stopped']);
});

test.each([
  ['loop', 'time'],
  ['fill the heap', 'memory'],
  ['exit', 'crashed'],
  ['flood bytes', 'output'],
  ['reply nonsense', 'reply'],
] as const)('of a document that makes it %s: %s', async (deed, exit) => {
  const { pool, told } = openPool({ timeoutMs: deed === 'loop' ? 1_000 : 30_000 });
  await expect(askParser(pool, [deed])).rejects.toMatchObject({ name: 'DocumentError' });
  await pool.close();
  expect(told).toEqual(['started', exit]);
});

test('of a reading that is given up', async () => {
  const { pool, told } = openPool();
  const stop = new AbortController();
  const reading = pool.parse(requestOf(JSON.stringify(['sleep'])), { signal: stop.signal });
  stop.abort();
  await expect(reading).rejects.toMatchObject({ code: 'unavailable' });
  await pool.close();
  // Aborted before a child had it, or while one had.
  expect([[], ['started', 'aborted']]).toContainEqual(told);
});

test('a child is ready for the next tenant before it comes, once tenants take turns', async () => {
  const { pool, told } = openPool();
  await askParser(pool, ['calls'], { tenant: 'a' });
  expect(told).toEqual(['started']);
  await askParser(pool, ['calls'], { tenant: 'b' });
  expect(told).toEqual(['started', 'started', 'started']);
  for (const tenant of ['a', 'b', 'a', 'b', 'a', 'b']) await askParser(pool, ['calls'], { tenant });
  expect(told).toEqual(['started', 'started', 'started']);
  await askParser(pool, ['calls'], { tenant: 'c' });
  expect(told).toEqual(['started', 'started', 'started', 'started']);
});

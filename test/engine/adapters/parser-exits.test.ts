import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { timeLimitOf } from '../../../src/engine/adapters/parser-process.ts';
import { createParserPool, type ParserPoolOptions } from '../../../src/engine/adapters/parser-pool.ts';
import { askParser, requestOf, STUB_PARSER } from '../../support/ask-parser.ts';

/** A pool and what it said of its children so far: `started`, or how one ended. The caller closes it. */
function createPool(options: Partial<ParserPoolOptions> = {}) {
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
  return { pool, told };
}

function openPool(options: Partial<ParserPoolOptions> = {}) {
  const opened = createPool(options);
  onTestFinished(() => opened.pool.close());
  return opened;
}

/** The reading of a small file that never ends. It begins with the first test, since it is ended after ten seconds. */
const endless = {
  ...createPool({ timeoutMs: 30_000 }),
  spent: [] as number[],
  reading: Promise.resolve<unknown>(null),
};
beforeAll(() => {
  endless.reading = askParser(endless.pool, ['sleep'], { onParsed: (ms) => endless.spent.push(ms) });
  endless.reading.catch(() => {});
});
afterAll(() => endless.pool.close());

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

describe('the time that a file may take', () => {
  const MB = 1024 * 1024;
  test.each([
    [0, 60_000, 20_000],
    [MB / 2, 60_000, 40_000],
    [MB, 60_000, 60_000],
    [25 * MB, 60_000, 60_000],
    [0, 30_000, 10_000],
    [0, 12_000, 10_000],
    [0, 2_000, 2_000],
  ])('of %d bytes, where the longest is %d ms: %d ms', (bytes, timeoutMs, expected) => {
    expect(timeLimitOf(bytes, timeoutMs)).toBe(expected);
  });

  test('ends the reading of a small file, which is charged with it', async () => {
    const { pool, told, spent, reading } = endless;
    await expect(reading).rejects.toMatchObject({ code: 'document_too_complex' });
    await pool.close();
    expect(told).toEqual(['started', 'time']);
    expect(spent).toEqual([10_000]);
  });

  test('is charged with what a document took that ended by itself, once', async () => {
    const { pool } = openPool();
    const spent: number[] = [];
    const onParsed = (ms: number) => void spent.push(ms);
    await askParser(pool, ['calls'], { onParsed });
    await expect(askParser(pool, ['exit'], { onParsed })).rejects.toMatchObject({ code: 'parser_crashed' });
    await expect(askParser(pool, ['refuse'], { onParsed })).rejects.toMatchObject({ code: 'encrypted_document' });
    expect(spent).toHaveLength(3);
    for (const ms of spent) expect(ms).toBeGreaterThanOrEqual(0);
  });
});

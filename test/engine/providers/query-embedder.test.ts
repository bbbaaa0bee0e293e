import { describe, expect, test } from 'vitest';
import { createHashedEmbedder } from '../../../src/engine/adapters/hashed-embedder.ts';
import { EngineError } from '../../../src/engine/errors.ts';
import { createEmbeddingGatherer } from '../../../src/engine/providers/embedding-gatherer.ts';
import { type Embedder, silentLogger } from '../../../src/engine/ports.ts';
import { createQueryEmbedder } from '../../../src/engine/providers/query-embedder.ts';
import { estimateTokens } from '../../../src/engine/text/tokens.ts';

/** One that stands for a provider, and notes what it is asked. */
function countingEmbedder(dimensions = 256, maxCached = 1_000) {
  const asked: { text: string; purpose: string }[] = [];
  let failure: EngineError | null = null;
  const embedder: Embedder = {
    ...createHashedEmbedder({ dimensions: 256 }),
    dimensions,
    cacheable: true,
    async embed(texts, options) {
      asked.push(...texts.map((text) => ({ text, purpose: options.purpose })));
      if (failure !== null) throw failure;
      if (texts.some((text) => estimateTokens(text) > 600)) throw new EngineError('invalid', 'too long');
      return texts.map((text) => new Float32Array(dimensions).fill(text.length));
    },
  };
  const gatherer = createEmbeddingGatherer(embedder, {
    maxBatchTexts: 8,
    maxBatchTokens: 100_000,
    lingerMs: 0,
    concurrency: 2,
  });
  const embedderOf = createQueryEmbedder({
    embedder,
    provider: { gatherer, timeoutMs: 5_000 },
    logger: silentLogger,
    maxCached,
  });
  return {
    asked,
    embedderOf,
    embedQuery: embedderOf('a tenant'),
    fail: (error: EngineError | null) => void (failure = error),
  };
}

describe('the vectors of queries', () => {
  test('are asked for each time where none are kept', async () => {
    const { asked, embedQuery } = countingEmbedder(256, 0);
    const [first, second] = [await embedQuery('where does Ann live'), await embedQuery('where does Ann live')];
    expect(first).toEqual(second);
    expect(asked).toHaveLength(2);
  });

  test('are asked for once, as of a query', async () => {
    const { asked, embedQuery } = countingEmbedder();
    const first = await embedQuery('Where is the tea?');
    expect(await embedQuery('Where is the tea?')).toEqual(first);
    expect(asked).toEqual([{ text: 'Where is the tea?', purpose: 'query' }]);
  });

  test.each([
    ['white space around and between words', '  Where is\t\nthe  tea? '],
    ['accents in pieces', 'Where is the the\u0301?', 'Where is the thé?'],
  ])('are one for texts that differ only in %s', async (_, typed, plain = 'Where is the tea?') => {
    const { asked, embedQuery } = countingEmbedder();
    const vector = await embedQuery(typed);
    expect(await embedQuery(plain)).toEqual(vector);
    expect(asked.map(({ text }) => text)).toEqual([plain]);
  });

  test('are asked for again for another tenant, which must not see what others ask', async () => {
    const { asked, embedderOf } = countingEmbedder();
    for (const tenant of ['one', 'other', 'one', 'other']) await embedderOf(tenant)('Where is the tea?');
    expect(asked).toHaveLength(2);
  });

  test('differ where the case differs, which means something to a model', async () => {
    const { asked, embedQuery } = countingEmbedder();
    await embedQuery('polish');
    await embedQuery('Polish');
    expect(asked).toHaveLength(2);
  });

  test('are let go where they would take more memory than is set aside for them', async () => {
    const { asked, embedQuery } = countingEmbedder(65_536);
    // A vector takes 262 kB: 16 MB hold some 60 of them.
    const questions = Array.from({ length: 80 }, (_, number) => `question ${number}`);
    for (const question of questions) await embedQuery(question);
    expect(asked).toHaveLength(80);
    await embedQuery(questions.at(-1)!);
    expect(asked).toHaveLength(80);
    await embedQuery(questions[0]!);
    expect(asked).toHaveLength(81);
  });

  test('are made of the first window, where a provider would refuse the whole', async () => {
    const { asked, embedQuery } = countingEmbedder();
    const long = '茶在哪里'.repeat(2_000);
    const vector = await embedQuery(long);
    expect(vector).not.toBeNull();
    expect(await embedQuery(`${long}了`)).toEqual(vector);
    expect(asked).toHaveLength(1);
    expect(long.startsWith(asked[0]!.text)).toBe(true);
    const within = 'Where is the tea of Ann? '.repeat(60).trim();
    await embedQuery(within);
    expect(asked[1]!.text).toBe(within);
  });

  test('are null where the provider fails, which is not remembered', async () => {
    const { embedQuery, fail } = countingEmbedder();
    fail(new EngineError('unavailable', 'down'));
    expect(await embedQuery('tea')).toBeNull();
    fail(null);
    expect(await embedQuery('tea')).not.toBeNull();
  });
});

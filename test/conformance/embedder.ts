import { describe, expect, test } from 'vitest';
import type { Embedder } from '../../src/engine/ports.ts';

/**
 * Declares the tests that every embedder must pass.
 * @param open makes the embedder, once for each test; the caller closes it
 */
export function describeEmbedder(name: string, open: () => Embedder | Promise<Embedder>): void {
  describe(`${name} as an embedder`, () => {
    const texts = ['The kettle is in the kitchen.', 'Paris is the capital of France', 'naïve café 東京 🙂', 'x'];
    const purposes = ['document', 'query'] as const;

    test.each(purposes)('returns one unit vector of its dimensions per %s', async (purpose) => {
      const embedder = await open();
      const vectors = await embedder.embed(texts, { purpose });
      expect(vectors).toHaveLength(texts.length);
      for (const vector of vectors) {
        expect(vector).toBeInstanceOf(Float32Array);
        expect(vector).toHaveLength(embedder.dimensions);
        expect(Math.hypot(...vector)).toBeCloseTo(1, 5);
      }
    });

    test('keeps the order of the texts, and a text does not depend on its company', async () => {
      const embedder = await open();
      const [together, reversed] = [
        await embedder.embed(texts, { purpose: 'document' }),
        await embedder.embed(texts.toReversed(), { purpose: 'document' }),
      ];
      expect(reversed.toReversed()).toEqual(together);
      expect(await embedder.embed([texts[1]!], { purpose: 'document' })).toEqual([together[1]]);
    });

    test('embeds nothing as nothing', async () => {
      const embedder = await open();
      expect(await embedder.embed([], { purpose: 'document' })).toEqual([]);
    });

    test('says what the engine needs to know about it', async () => {
      const embedder = await open();
      expect(embedder.provider).not.toBe('');
      expect(embedder.model).not.toBe('');
      expect(embedder.dimensions % 8).toBe(0);
      for (const share of [embedder.waypointThreshold, embedder.vectorWeight]) {
        expect(share).toBeGreaterThan(0);
        expect(share).toBeLessThanOrEqual(1);
      }
      expect(embedder.maxBatchTexts).toBeGreaterThanOrEqual(1);
      expect(embedder.maxBatchTokens).toBeGreaterThanOrEqual(1);
    });
  });
}

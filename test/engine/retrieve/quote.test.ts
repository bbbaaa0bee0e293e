import { expect, test } from 'vitest';
import { quoteMemories } from '../../../src/engine/retrieve/quote.ts';
import { estimateTokens } from '../../../src/engine/text/tokens.ts';
import type { Memory } from '../../../src/engine/types.ts';

const memory = (id: string) =>
  ({ id, userId: '', sessionId: '', title: '', content: 'one two three', eventTime: 0 }) as Memory;

test('quoted memories stay within the budget, line ends included', () => {
  const memories = Array.from({ length: 100 }, (_, place) => memory(`m${place}`));
  const { text, shown } = quoteMemories(memories, 1_000);
  expect(shown).toBeGreaterThan(20);
  expect(shown).toBeLessThan(100);
  expect(estimateTokens(text)).toBeLessThanOrEqual(1_000);
});

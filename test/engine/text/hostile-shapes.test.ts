import { describe, expect, test } from 'vitest';
import { classify, SECTOR_CLASSIFIERS } from '../../../src/engine/sectors/classify.ts';
import { contentHash } from '../../../src/engine/text/content-hash.ts';
import { entitiesOf } from '../../../src/engine/entities/named-things.ts';
import { gistOf, MAX_GIST_LENGTH } from '../../../src/engine/text/gist.ts';
import { identifiersOf, indexableText, queryTerms } from '../../../src/engine/text/index-text.ts';
import { sentences } from '../../../src/engine/text/sentences.ts';
import { estimateTokens } from '../../../src/engine/text/tokens.ts';
import { windowsOf } from '../../../src/engine/text/windows.ts';
import { findSensitive } from '../../../src/engine/privacy/find-sensitive.ts';
import { words } from '../../../src/engine/text/words.ts';
import { HOSTILE_SHAPES } from './hostile-shapes.ts';

// Quadratic work on a megabyte takes hours; the runner's timeout is the bound. bench/text-linear.ts has the times.
describe.each(Object.entries(HOSTILE_SHAPES))('a megabyte of %s', (_shape, make) => {
  const text = make(1_000_000);

  test('is analysed within its bounds', () => {
    expect(contentHash(text)).toHaveLength(16);
    expect(words(text).every((word) => word.trim() === word && word !== '')).toBe(true);
    expect(indexableText(text).length).toBeLessThanOrEqual(text.length * 5 + 2);
    expect(identifiersOf(text).split(' ').length).toBeLessThanOrEqual(4_096);
    expect(queryTerms(text).words.length).toBeLessThanOrEqual(64);
    expect(entitiesOf(text).length).toBeLessThanOrEqual(32);
    expect(gistOf(text).length).toBeLessThanOrEqual(MAX_GIST_LENGTH);
    for (const classifier of SECTOR_CLASSIFIERS) {
      expect(classify(text, classifier).confidence).toBeLessThanOrEqual(1);
    }
    expect(sentences(text).reduce((length, sentence) => length + sentence.text.length, 0)).toBeLessThanOrEqual(
      text.length,
    );
    expect(windowsOf(text).at(-1)?.end).toBe(text.length);
    expect(estimateTokens(text)).toBeGreaterThan(0);
    for (const { start, end } of findSensitive(text, ['secrets', 'personal'])) expect(end).toBeGreaterThan(start);
  });
});

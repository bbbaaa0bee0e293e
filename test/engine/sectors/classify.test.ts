import { describe, expect, test } from 'vitest';
import { classify as classifyBy, SECTOR_CLASSIFIERS } from '../../../src/engine/sectors/classify.ts';
import { sectorPatterns } from '../../../src/engine/sectors/score-patterns.ts';
import { SECTOR_PROFILES } from '../../../src/engine/sectors/profiles.ts';
import { SECTORS } from '../../../src/engine/types.ts';
import { HELD_OUT_SENTENCES, TUNING_SENTENCES } from './labelled-sentences.ts';

const classify = (text: string) => classifyBy(text, 'patterns');

describe('on sentences the patterns were not tuned on', () => {
  const judged = SECTORS.flatMap((sector) =>
    HELD_OUT_SENTENCES[sector].map((sentence) => ({ sector, found: classify(sentence) })),
  );
  const shareOf = (right: (item: (typeof judged)[number]) => boolean) => judged.filter(right).length / judged.length;

  test('the primary sector is right in at least 85 % (90 % when written)', () => {
    expect(shareOf(({ sector, found }) => found.primary === sector)).toBeGreaterThanOrEqual(0.85);
  });

  test.each(SECTORS)('%s is found in at least 75 %', (sector) => {
    const own = judged.filter((item) => item.sector === sector);
    expect(own.filter((item) => item.found.primary === sector).length / own.length).toBeGreaterThanOrEqual(0.75);
  });

  test('confidence is higher where the answer is right', () => {
    const mean = (right: boolean) => {
      const list = judged.filter(({ sector, found }) => (found.primary === sector) === right);
      return list.reduce((sum, { found }) => sum + found.confidence, 0) / list.length;
    };
    expect(mean(true)).toBeGreaterThan(mean(false));
  });
});

test('no sentence is in both sets', () => {
  const tuning = new Set(SECTORS.flatMap((sector) => TUNING_SENTENCES[sector]));
  expect(SECTORS.flatMap((sector) => HELD_OUT_SENTENCES[sector]).filter((sentence) => tuning.has(sentence))).toEqual(
    [],
  );
});

test('a text of two kinds has an additional sector', () => {
  const found = classify('Yesterday Tom told me that he is moving to Oslo, and I felt devastated and cried all night.');
  expect([found.primary, ...found.additional].sort()).toEqual(['emotional', 'episodic']);
});

test('a text without any sign is semantic with low confidence', () => {
  for (const text of ['', 'Lorem ipsum', 'ทดสอบ', '🍕', '東京タワー']) {
    expect(classify(text)).toEqual({ primary: 'semantic', additional: [], confidence: 0.2 });
  }
});

test.each([
  ['昨天我和李明去了公园', 'episodic'],
  ['我很高兴', 'emotional'],
  ['首先打开设置，然后点击保存', 'procedural'],
  ['昨日東京に行った', 'episodic'],
  ['Вчера мы ходили в кино', 'episodic'],
  ['Ich bin sehr glücklich', 'emotional'],
  ['Ayer fui al cine', 'episodic'],
  ["J'ai appris que je dors trop peu", 'reflective'],
  ['La capital es Madrid', 'semantic'],
])('%s is %s', (text, sector) => {
  expect(classify(text).primary).toBe(sector);
});

test('a long text is judged by its beginning and its end', () => {
  const filler = 'lorem ipsum '.repeat(20_000);
  expect(classify(`I feel sad and lonely. ${filler}`).primary).toBe('emotional');
  expect(classify(`${filler} How to reset the router: hold the button.`).primary).toBe('procedural');
});

test('every sector has a profile and patterns that can be shown', () => {
  const patterns = sectorPatterns();
  for (const sector of SECTORS) {
    expect(SECTOR_PROFILES[sector].decayLambda).toBeGreaterThan(0);
    expect(patterns[sector].length).toBeGreaterThan(10);
    expect(patterns[sector].every(({ pattern, weight }) => pattern !== '' && weight > 0)).toBe(true);
  }
});

test.each([
  'Water boils at one hundred degrees',
  'One hundred cents make a dollar',
  'Indeed it is so',
  'Distributed systems use consensus',
  'Advanced users only',
  'Limited edition',
  'Assorted cheese',
  'Compressed air tank rated 10 bar',
  'Cows breed in spring',
  'Define entropy',
  'The meaning of stoic',
])('a fact without an event is semantic, by patterns and by what was learned: %s', (text) => {
  for (const classifier of SECTOR_CLASSIFIERS) expect(classifyBy(text, classifier).primary).toBe('semantic');
});

test.each(['I rated the film on Monday', 'We deployed the fix yesterday', 'They agreed'])(
  'an event stays one: %s',
  (text) => {
    for (const classifier of SECTOR_CLASSIFIERS) expect(classifyBy(text, classifier).primary).toBe('episodic');
  },
);

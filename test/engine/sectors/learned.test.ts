import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { classify } from '../../../src/engine/sectors/classify.ts';
import { encodeWeights } from '../../../src/engine/sectors/learned-model.ts';
import { SECTORS } from '../../../src/engine/types.ts';
import { trainSectors } from '../../../training/train-sectors.ts';
import { readSetAside } from './set-aside.ts';

const SHIPPED = path.resolve(import.meta.dirname, '../../../src/engine/sectors/learned-weights.bin');
const TRAINING = path.resolve(import.meta.dirname, '../../../training/sectors');

describe('on 500 sentences that were set aside before training', () => {
  const setAside = readSetAside();
  const shareRight = (classifier: 'learned' | 'patterns') =>
    SECTORS.flatMap((sector) =>
      setAside[sector].map((sentence): number => (classify(sentence, classifier).primary === sector ? 1 : 0)),
    ).reduce((sum, right) => sum + right, 0) / 500;

  test('learned weights find at least 90 % of the primary sectors, 10 points more than patterns', () => {
    expect(SECTORS.map((sector) => setAside[sector].length)).toEqual([100, 100, 100, 100, 100]);
    const learned = shareRight('learned');
    expect(learned).toBeGreaterThanOrEqual(0.9);
    expect(learned - shareRight('patterns')).toBeGreaterThanOrEqual(0.1);
  });

  test('none of them is a sentence of the training', () => {
    const trained = new Set(
      SECTORS.flatMap((sector) => fs.readFileSync(path.join(TRAINING, `${sector}.txt`), 'utf8').split('\n')),
    );
    expect(SECTORS.flatMap((sector) => setAside[sector].filter((sentence) => trained.has(sentence)))).toEqual([]);
  });
});

test('the shipped weights are what the training gives, and small', () => {
  const shipped = fs.readFileSync(SHIPPED);
  expect(shipped.equals(encodeWeights(trainSectors()))).toBe(true);
  expect(shipped.length).toBeLessThanOrEqual(200_000);
});

test('the form of a classification is that of the patterns', () => {
  const found = classify(
    'Yesterday Tom told me that he is moving to Oslo, and I felt devastated and cried.',
    'learned',
  );
  expect([found.primary, ...found.additional]).toEqual(expect.arrayContaining(['episodic', 'emotional']));
  for (const text of ['', '🍕', '...', '12 34']) {
    expect(classify(text, 'learned')).toEqual({ primary: 'semantic', additional: [], confidence: 0.2 });
  }
  for (const sentence of SECTORS.flatMap((sector) => readSetAside()[sector])) {
    const { primary, additional, confidence } = classify(sentence, 'learned');
    expect(additional).not.toContain(primary);
    expect(confidence).toBeGreaterThanOrEqual(0.2);
    expect(confidence).toBeLessThan(1);
  }
});

test.each(['昨天我和李明去了公园', 'Вчера мы ходили в кино', '我很高兴'])('%s is told by patterns', (text) => {
  expect(classify(text, 'learned')).toEqual(classify(text, 'patterns'));
});

import { expect, test } from 'vitest';
import { costOf, parsePrices } from '../../src/engine/prices.ts';

const MILLION = 1_000_000;
const cost = (spelled: string, model: string, tokens = MILLION, outputTokens = 0) =>
  costOf(parsePrices(spelled)!, { model, tokens, outputTokens });

test('a call costs what a million tokens cost, by share', () => {
  expect(cost('a-model=0.5', 'a-model')).toBe(0.5);
  expect(cost('a-model=0.5', 'a-model', 2_000)).toBeCloseTo(0.001, 12);
});

test('what a language model writes has a price of its own', () => {
  expect(cost('a-model=1/4', 'a-model', MILLION, MILLION / 2)).toBe(3);
});

test('known models have their list price, which a setting replaces', () => {
  expect(cost('', 'text-embedding-3-small')).toBe(0.02);
  expect(cost('text-embedding-3-small=0.01', 'text-embedding-3-small')).toBe(0.01);
  expect(cost('text-embedding-3-small=0.01', 'text-embedding-3-large')).toBe(0.13);
});

test('a vendor or an ARN before the name of a model changes nothing, and its own price comes first', () => {
  expect(cost('', 'openai/text-embedding-3-small')).toBe(0.02);
  expect(cost('', 'arn:aws:bedrock:eu-central-1::foundation-model/amazon.titan-embed-text-v2:0')).toBe(0.02);
  expect(cost('openai/text-embedding-3-small=0.03', 'openai/text-embedding-3-small')).toBe(0.03);
});

test('a model without a price costs nothing', () => {
  expect(cost('', 'nomic-embed-text')).toBe(0);
});

test.each(['a-model', 'a-model=', 'a-model=much', 'a-model=-1', '=1', 'a=1/2/3', 'a b=1'])(
  '%j is no price',
  (spelled) => {
    expect(parsePrices(spelled)).toBeUndefined();
  },
);

test.each(['', ' ', 'a=1,', ' a = 1 , b=2/3 '])('%j is a table', (spelled) => {
  expect(parsePrices(spelled)).toBeDefined();
});

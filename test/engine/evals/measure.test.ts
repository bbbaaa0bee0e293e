import { expect, test } from 'vitest';
import { createRandom } from '../../../src/engine/random.ts';
import { judge, scoresOf } from '../../../src/engine/evals/measure.ts';

const hit = (content: string, title = '', id = '01a1fe30-e25b-7576-a0c2-3c4e3646bd72') => ({ id, title, content });

test.each([
  ['leaves at NOON', true],
  ['leave', false],
  ['noon at', false],
  ['Cafe', true],
  ['東京', true],
  ['01A1FE30-e25b-7576-a0c2-3c4e3646bd72', true],
  ['01a1fe30-e25b-7576-a0c2-3c4e3646bd73', false],
])('%s is found: %s', (entry, isFound) => {
  const hits = [hit('It leaves at noon, from 東京都.', 'Café')];
  expect(judge({ query: '', expected: [entry] }, 0, hits, 1).missing).toEqual(isFound ? [] : [entry]);
  expect(judge({ query: '', expected: [], forbidden: [entry] }, 0, hits, 1).forbidden).toEqual(isFound ? [entry] : []);
});

test('words are found next to each other and in order, however they repeat', () => {
  const random = createRandom(3);
  const some = (count: number) => Array.from({ length: count }, () => (random() < 0.5 ? 'a' : 'b')).join(' ');
  for (let round = 0; round < 300; round += 1) {
    const [text, entry] = [some(30), some(1 + Math.floor(6 * random()))];
    const { missing } = judge({ query: '', expected: [entry] }, 0, [hit(text)], 1);
    expect(missing.length === 0).toBe(` ${text} `.includes(` ${entry} `));
  }
  expect(judge({ query: '', expected: ['!!!'] }, 0, [hit('noon')], 1).missing).toEqual(['!!!']);
});

test('scores are means over the items that can tell, and null without any', () => {
  const half = judge({ query: '', expected: ['noon', 'ferry'] }, 0, [hit('at noon'), hit('at one')], 4);
  const none = judge({ query: '', expected: ['noon'] }, 1, [], 2);
  const empty = judge({ query: '', expected: [] }, 2, [], 1);
  const full = judge({ query: '', expected: [], forbidden: ['one'] }, 3, [hit('at one')], 3);
  const scores = { recall: 0.25, precision: 0.5, rightlyEmpty: 0.5, forbidden: 1, p95Ms: 4, items: 4 };
  expect(scoresOf([half, none, empty, full])).toEqual(scores);
  expect(scoresOf([empty])).toMatchObject({ recall: null, precision: null, rightlyEmpty: 1 });
  expect(scoresOf([])).toEqual({ recall: null, precision: null, rightlyEmpty: null, forbidden: 0, p95Ms: 0, items: 0 });
});

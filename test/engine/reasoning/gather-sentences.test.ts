import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { gatherSentences, MAX_GATHERED } from '../../../src/engine/reasoning/gather-sentences.ts';

const DAY = 86_400_000;
const MONDAY = Date.UTC(2026, 0, 5);
const said = (...texts: string[]) => texts.map((text) => ({ text, saidAt: MONDAY }));
const evenly = () => 1;

describe('texts are gathered', () => {
  test('without a sentence that a longer one repeats', () => {
    const gathered = gatherSentences(said('Ana swims on Mondays.', 'Ana swims on Mondays at the city pool.'), evenly);
    expect(gathered).toEqual({ content: 'Ana swims on Mondays at the city pool.', sources: [0, 1] });
  });

  test.each([
    ['a negation', 'Ana will swim on Mondays.', 'Ana will not swim.'],
    ['a short negation', 'The gate is open on Mondays.', 'The gate isn’t open.'],
    ['a number', 'The room has 4 chairs.', 'The room has 5 chairs.'],
  ])('with %s that the other lacks', (_, one, other) => {
    expect(gatherSentences(said(one, other), evenly)!.content).toBe(`${one}\n${other}`);
  });

  test('with their dates, where these differ', () => {
    const texts = [
      { text: 'Ana began to swim.', saidAt: MONDAY },
      { text: 'Ana won a race.', saidAt: MONDAY + 3 * DAY },
    ];
    expect(gatherSentences(texts, evenly)!.content).toBe('2026-01-05: Ana began to swim.\n2026-01-08: Ana won a race.');
  });

  test('but for a text that does not fit, of which nothing is left', () => {
    const lines = Array.from(
      { length: 40 },
      (_, place) => `Longword${place} stands in front of the very long otherword${place} here.`,
    );
    const gathered = gatherSentences(said('Ana swims on Mondays.', lines.join(' '), 'Ana swims on Fridays.'), evenly)!;
    expect(gathered.sources).toEqual([0, 2]);
    expect(gathered.content).not.toMatch(/longword/i);
  });

  test('but for one of so many sentences that choosing among them would take long', () => {
    const list = (first: number) => Array.from({ length: 500 }, (_, no) => `A${first + no}`).join('\n');
    let weighed = 0;
    const texts = said('Ana swims on Mondays.', ...[0, 500, 1_000, 1_500].map(list), 'Ana swims on Fridays.');
    const gathered = gatherSentences(texts, () => (weighed += 1));
    expect(gathered).toMatchObject({ content: 'Ana swims on Mondays.\nAna swims on Fridays.', sources: [0, 5] });
    expect(weighed).toBeLessThan(100);
  });

  test('if two fit together, else not at all', () => {
    const long = (word: string) => `${word} ${'x'.repeat(MAX_GATHERED)}`;
    expect(gatherSentences(said(long('one'), long('two')), evenly)).toBeNull();
  });
});

test('a gathered text is made of sentences of its sources alone, and is never too long', () => {
  const sentence = fc.stringMatching(/^[A-Z][a-z]{2,8}( [a-z]{3,9}){1,12}\.$/);
  const text = fc.array(sentence, { minLength: 1, maxLength: 12 }).map((list) => list.join(' '));
  fc.assert(
    fc.property(fc.array(text, { minLength: 2, maxLength: 8 }), (texts) => {
      const gathered = gatherSentences(said(...texts), (word) => word.length);
      if (gathered === null) return;
      expect(gathered.content.length).toBeLessThanOrEqual(MAX_GATHERED);
      const sources = gathered.sources.map((source) => texts[source]!);
      for (const line of gathered.content.split(/\n|(?<=\.) /)) {
        expect(sources.some((source) => source.includes(line))).toBe(true);
      }
    }),
  );
});

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { askingSentences } from '../../../src/engine/text/asking-sentences.ts';
import { queryTerms } from '../../../src/engine/text/index-text.ts';
import { readQueryText } from '../../../src/engine/text/query-text.ts';

const piece = fc.oneof(
  fc.constantFrom(
    'Where is it?',
    'It rains.',
    '"the big otter"',
    'getUserName',
    '我的生日是哪天？',
    '今天很累。',
    '\n\n',
    'why',
  ),
  fc.string({ maxLength: 8 }),
);
const message = fc.array(piece, { maxLength: 10 }).map((pieces) => pieces.join(' '));

test('a text that is read once gives what its parts give by themselves', () => {
  fc.assert(
    fc.property(message, (text) => {
      const asking = askingSentences(text);
      expect(readQueryText(text)).toMatchObject({
        text,
        terms: queryTerms(text),
        asking,
        askingTerms: asking.sentences.map((sentence) => queryTerms(sentence)),
        mayAskTerms: asking.mayAsk.map((sentence) => queryTerms(sentence)),
      });
    }),
  );
});

test('the words of a question come before those around it, also where a phrase is quoted', () => {
  const { terms, askingTerms } = readQueryText('Maria said "big otter". Where does it sleep? Thanks.');
  expect(terms).toMatchObject({
    phrases: [['big', 'otter']],
    words: ['sleep', 'maria', 'said', 'thanks'],
    identifiers: [],
  });
  expect(askingTerms.map(({ words }) => words)).toEqual([['sleep']]);
});

test('the language of a message is that of the sentences that ask', () => {
  const { asked, terms } = readQueryText(
    '房租每季度交一次。 Wann fährt der nächste Zug nach Wien? We went there. It rained.',
  );
  expect(asked).toBe('Wann fährt der nächste Zug nach Wien?');
  expect(terms.language).toBe('de');
  const english = readQueryText('El tren llegó tarde a la estación de las afueras. Where did she go?');
  expect(english.terms.language).toBeUndefined();
  expect([...english.terms.forms!.keys()]).toEqual(['go']);
});

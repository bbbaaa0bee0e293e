import { describe, expect, test } from 'vitest';
import { irregularFormsOf } from '../../../src/engine/text/irregular-words.ts';
import { readQueryText } from '../../../src/engine/text/query-text.ts';

describe('irregular forms', () => {
  test.each([
    ['go', ['went', 'gone']],
    ['goes', ['went', 'gone']],
    ['going', ['went', 'gone']],
    ['went', ['go', 'gone']],
    ['writing', ['wrote', 'written']],
    ['running', ['ran']],
    ['children', ['child']],
    ['woman', ['women']],
    ['eat', ['eaten']],
  ])('%s has other forms', (word, forms) => {
    expect(irregularFormsOf(word)).toEqual(forms);
  });

  test.each(['walk', 'during', 'thing', 'king', 'was', 'went2', 'عاد', '去', ''])('%j has none', (word) => {
    expect(irregularFormsOf(word)).toEqual([]);
  });

  test('leave out a form whose stem is a word of grammar: at for ate', () => {
    expect(irregularFormsOf('eating')).toEqual(['eaten']);
    expect(irregularFormsOf('ate')).toEqual(['eat', 'eaten']);
  });

  test('are those of an English question', () => {
    expect(readQueryText('Where did the children go?').terms.forms).toEqual(
      new Map([
        ['children', ['child']],
        ['go', ['went', 'gone']],
      ]),
    );
    const { askingTerms } = readQueryText('It rained. Where did she go? I stayed. When did they eat?');
    expect(askingTerms.map(({ forms }) => [...(forms?.keys() ?? [])])).toEqual([['go'], ['eat']]);
  });

  test('are not looked for in other languages, nor for keywords of no known language', () => {
    for (const query of ['Wo ist man gegangen?', 'go children', 'où est le go', 'Go 去了哪里'])
      expect(readQueryText(query).terms.forms, query).toBeUndefined();
  });
});

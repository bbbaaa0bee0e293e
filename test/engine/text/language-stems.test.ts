import { expect, test } from 'vitest';
import { stemIn, stemmedLanguageOf, stemTermsOf } from '../../../src/engine/text/language-stems.ts';

test.each([
  ['de', 'Wann hat der Nachbar die Häuser gekauft?'],
  ['es', '¿Cuándo visitó Lucía las ciudades del norte?'],
  ['fr', 'Quand est-ce que les voisins ont acheté la maison?'],
  ['it', 'Dove sono le chiavi della macchina?'],
  ['nl', 'Wanneer heeft mijn buurman het huis gekocht?'],
  ['pt', 'Quando foi que o vizinho comprou uma casa?'],
  ['ru', 'Когда сосед купил дом?'],
  [undefined, 'When did Maria de la Cruz buy the house in Den Haag?'],
  [undefined, 'Evler ne zaman satıldı?'],
  [undefined, '東京の家はいつ売れましたか'],
  [undefined, ''],
])('%s: %s', (language, text) => {
  expect(stemmedLanguageOf(text)).toBe(language);
});

test.each([
  ['de', 'hauser', 'hausern'],
  ['es', 'hermano', 'hermanas'],
  ['fr', 'voisin', 'voisines'],
  ['it', 'ragazzo', 'ragazzi'],
  ['nl', 'buurman', 'buurmans'],
  ['pt', 'vizinho', 'vizinhas'],
  ['ru', 'город', 'городами'],
] as const)('%s: %s and %s have one stem', (language, one, other) => {
  expect(stemIn(language, other)).toBe(stemIn(language, one));
});

test('words with digits, short words and words of another script keep their form', () => {
  expect(['haus2', 'hof', 'городами'].map((word) => stemIn('de', word))).toEqual(['haus2', 'hof', 'городами']);
});

test('an English text has no stems for the index', () => {
  expect(stemTermsOf('The old houses on the river were sold in the summer.')).toBe('');
  expect(stemTermsOf('Das sind die alten Häuser der Gasse').split(' ')).toHaveLength(3);
});

import { describe, expect, test } from 'vitest';
import { extractGraph } from '../../../src/engine/entities/extract.ts';
import { parseEntityMode } from '../../../src/engine/entities/parse-mode.ts';

test('a file brings types, names and sentences of its own', () => {
  const mode = parseEntityMode(
    JSON.stringify({
      entity_types: ['drug', 'disease', 'technology'],
      relation_types: ['treats', 'uses'],
      lexicon: { drug: ['Aspirin', 'Ibuprofen'], disease: ['migraine'] },
      patterns: { treats: ['A treats|relieves B', 'took|takes A against B'] },
    }),
  );
  const { entities, relations } = extractGraph(
    'She took aspirin against migraine. Ibuprofen relieves migraine, says Bob. It uses Redis.',
    [],
    mode,
  );
  // Bob is nobody's type here; the built-in technologies apply beside the drugs.
  expect(entities.map(({ name, type }) => `${name}: ${type}`)).toEqual([
    'aspirin: drug',
    'migraine: disease',
    'ibuprofen: drug',
    'redis: technology',
  ]);
  expect(relations).toEqual([
    { from: 'aspirin', type: 'treats', to: 'migraine' },
    { from: 'ibuprofen', type: 'treats', to: 'migraine' },
  ]);
});

describe('a file that makes no sense is refused with what is wrong in it', () => {
  const types = { entity_types: ['drug'], relation_types: ['treats'] };
  test.each<[string, string, RegExp]>([
    ['no JSON', '{', /expected JSON/],
    ['no types', '{"relation_types": []}', /entity_types/],
    ['a strange type', JSON.stringify({ ...types, entity_types: ['Big Drug'] }), /entity_types\.0: .*lower-case/],
    ['an unknown field', JSON.stringify({ ...types, colours: 1 }), /colours/],
    ['names of a type not listed', JSON.stringify({ ...types, lexicon: { person: ['Bob'] } }), /not listed: person/],
    ['a sentence without B', JSON.stringify({ ...types, patterns: { treats: ['A treats'] } }), /one A and one B/],
    ['nothing between', JSON.stringify({ ...types, patterns: { treats: ['treats A B'] } }), /one A and one B/],
    ['a name with a comma', JSON.stringify({ ...types, lexicon: { drug: ['a,b'] } }), /without ,/],
  ])('%s', (_, text, problem) => {
    expect(() => parseEntityMode(text)).toThrow(problem);
  });
});

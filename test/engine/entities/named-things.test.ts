import { expect, test } from 'vitest';
import { entitiesOf, MAX_ENTITIES } from '../../../src/engine/entities/named-things.ts';

test.each([
  ['Yesterday I met Tom at the Museum of Modern Art.', ['Tom', 'Museum of Modern Art']],
  [
    "Maria Lopez moved to San Francisco in March. Maria's dog is called Rex.",
    ['Maria Lopez', 'San Francisco', 'Maria', 'Rex'],
  ],
  ['Alice prefers tea.', ['Alice']],
  [
    'We paged @bob about #incident-42 in src/api/app.ts, version 1.2.3.',
    ['@bob', '#incident-42', 'src/api/app.ts', '1.2.3'],
  ],
  ['Write to x@example.com or see https://example.com/a?b=1.', ['x@example.com', 'https://example.com/a?b=1']],
  ['Call getUserName with user_id on gpt-4o.', ['getUserName', 'user_id', 'gpt-4o']],
])('%s', (text, entities) => {
  expect(entitiesOf(text)).toEqual(entities);
});

test('words that only begin a sentence, days, times and amounts are no entities', () => {
  expect(
    entitiesOf("Deployment failed on Monday at 10:30. Please retry. It's 2024-01-02. The 3rd try cost $50."),
  ).toEqual([]);
  expect(entitiesOf('Gestern habe ich mit dem Hund und der Katze im Garten gespielt.')).toEqual([]);
});

test('a name is listed once, as first written, and there are at most 32', () => {
  expect(entitiesOf('We asked NASA and Nasa about NASA.')).toEqual(['NASA']);
  const many = Array.from({ length: 100 }, (_, index) => `item_${index}`).join(' ');
  expect(entitiesOf(many)).toHaveLength(MAX_ENTITIES);
});

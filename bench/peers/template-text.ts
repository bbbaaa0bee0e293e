/**
 * Generates texts as a program writes them: 36 kinds of sentences (each of six beginnings with each of six ends) whose
 * blanks are filled from short lists. Nearly every word stands in a large part of all texts, which is the worst case
 * of an index of words; only the number at the end is rare. Equal seeds give equal texts.
 */
import { createRandom } from '../../src/engine/random.ts';

const BEGINNINGS = [
  'On {day} {name} of the {team} team in {city} told the customer that the {colour} {thing}',
  'The {team} team in {city} told {name} on {day} that the {colour} {thing} of the customer',
  '{name} told the customer in {city} on {day} that the {colour} {thing} of the {team} team',
  'The customer in {city} told {name} of the {team} team on {day} that the {colour} {thing}',
  'In {city} the customer and {name} of the {team} team agreed on {day} that the {colour} {thing}',
  'A note of {day} says that {name} and the {team} team in {city} told the customer the {colour} {thing}',
];

const ENDS = [
  'must be ready for the project before the {month} meeting about order {number}.',
  'is late for the project, so the {month} meeting about order {number} must move.',
  'was paid by the project after the {month} meeting about order {number}.',
  'needs a new part for the project, as the {month} meeting about order {number} said.',
  'will be sent to the project in {month}, after the meeting about order {number}.',
  'belongs to the project of order {number} until the {month} meeting.',
];

const LISTS: Readonly<Record<string, readonly string[]>> = {
  day: words('Monday Tuesday Wednesday Thursday Friday Saturday Sunday'),
  month: words('January February March April May June July August September October November December'),
  name: words('Anna Bruno Chloe David Elena Farid Greta Hugo Irene Jonas Karim Laura Marco Nadia Oscar Paula'),
  team: words('sales repair design safety travel finance storage training'),
  city: words('Oslo Porto Lagos Quito Hanoi Dublin Tunis Bergen Lima Osaka Turin Dakar Riga Cairo Perth Bonn'),
  colour: words('red blue green yellow white black orange purple grey brown'),
  thing: words('lamp door engine table window pump bridge camera fence ladder mirror oven radio sensor tent wheel'),
};

function words(list: string): readonly string[] {
  return list.split(' ');
}

/** Makes the first texts of a seed. Two of them are never equal, as their numbers differ. */
export function createTemplateTexts(count: number, seed = 1): string[] {
  const random = createRandom(seed);
  const pick = (list: readonly string[]) => list[Math.floor(random() * list.length)]!;
  return Array.from({ length: count }, (_, at) =>
    `${pick(BEGINNINGS)} ${pick(ENDS)}`.replace(/\{([a-z]+)\}/g, (_whole, blank: string) =>
      blank === 'number' ? String(100_000 + at) : pick(LISTS[blank]!),
    ),
  );
}

/** Makes a question of words of a text in another order, without numbers and punctuation. */
export function shuffledWords(text: string, count: number, random: () => number): string {
  const list = text.split(' ').flatMap((word) => /\p{L}[\p{L}'-]*/u.exec(word)?.[0] ?? []);
  const keyed = list.map((word) => ({ word, key: random() })).toSorted((a, b) => a.key - b.key);
  return keyed
    .slice(0, count)
    .map(({ word }) => word)
    .join(' ');
}

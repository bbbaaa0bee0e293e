import { expect, test } from 'vitest';
import { textsAtPaths } from '../../src/api/wire/texts-at-paths.ts';
import type { Json } from '../../src/engine/index.ts';

/** A value that counts how often its entries are listed. */
function counted(length: number): { value: Json; lists: () => number } {
  let lists = 0;
  const entries = Array.from({ length }, (_, at) => at);
  const list = new Proxy(entries, {
    get(target, name, receiver) {
      if (name === 'filter') lists += 1;
      return Reflect.get(target, name, receiver) as unknown;
    },
  });
  return { value: { a: list }, lists: () => lists };
}

test('a value that paths find under several spellings is walked once', () => {
  const { value, lists } = counted(1_000);
  const paths = Array.from({ length: 32 }, (_, at) => `${'.'.repeat(at)}a`);
  expect(textsAtPaths(value, paths)).toBe(textsAtPaths({ a: Array.from({ length: 1_000 }, (_, at) => at) }, ['a']));
  expect(lists()).toBe(1);
});

test('values that paths find one inside another have a bound together', () => {
  let nested: Json = Array.from({ length: 90_000 }, () => 1);
  for (let depth = 0; depth < 31; depth += 1) nested = { a: nested };
  const paths = Array.from({ length: 31 }, (_, at) => Array.from({ length: at + 1 }, () => 'a').join('.'));
  expect(() => textsAtPaths(nested, paths)).toThrow('131072 places');
  expect(textsAtPaths(nested, ['$'])).toHaveLength(90_000 * 3 - 2 + 'a: '.length);
});

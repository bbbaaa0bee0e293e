import { expect, test } from 'vitest';
import { namePartsOf } from '../../../src/engine/text/name-parts.ts';

test.each([
  ['camelCase gives its parts and those next to each other', 'hashPassword(', ['hash', 'password', 'hashpassword']],
  ['neighbours of three parts too', 'getUserName', ['get', 'user', 'getuser', 'name', 'username', 'getusername']],
  ['capitals in a row are one part', 'HTTPServer listens', ['http', 'server', 'httpserver']],
  ['a number and its unit', 'up to 50MB', ['50', 'mb', '50mb']],
  ['a version and how it begins', 'libfoo v2.6.6', ['v', '2', 'v2', '2ǁ6ǀ']],
  ['ordinary words have none', 'My dog Rex eats at 9, or 10.5 times.', []],
])('%s', (_, text, parts) => {
  expect(namePartsOf(text)).toEqual(parts);
});

test('data is no name', () => {
  expect(namePartsOf(`${'x'.repeat(100_000)}1`)).toEqual([]);
  expect(namePartsOf('aB'.repeat(50_000))).toEqual([]);
});

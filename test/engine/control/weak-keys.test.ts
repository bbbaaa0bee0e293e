import { expect, test } from 'vitest';
import { isWeakKey } from '../../../src/engine/config/weak-key.ts';
import { createGuessLimit } from '../../../src/engine/control/guess-limit.ts';

test.each([
  'passwordpassword',
  'changeme-changeme',
  'your-api-key-here',
  'my-secret-api-key-123',
  '1234567890123456',
  'aaaaaaaaaaaaaaaaaaaaaaaa',
  'abcdefghijklmnopqrstuvwxyz',
  'P4ssw0rd!P4ssw0rd!',
])('%s is weak', (key) => expect(isWeakKey(key)).toBe(true));

test.each(['9f86d081884c7d659a2feaa0c55ad015', 'VkT2l8Qm0sXw3rY5', 'correct horse battery staple'])(
  '%s is not weak',
  (key) => expect(isWeakKey(key)).toBe(false),
);

test('addresses of one subscriber count together, others apart', () => {
  const guesses = createGuessLimit(1);
  expect(guesses.noteWrong('2001:db8:1:2:aaaa::1')).toBe(false);
  expect(guesses.noteWrong('2001:db8:1:2::5')).toBe(true);
  expect(guesses.pauseMs('2001:db8:1:2:ffff::')).toBeGreaterThan(0);
  expect(guesses.pauseMs('2001:db8:1:3::1')).toBe(0);
  expect(guesses.noteWrong('::ffff:192.0.2.1')).toBe(false);
  expect(guesses.noteWrong('192.0.2.1')).toBe(true);
});

test('what is remembered is bounded', () => {
  const guesses = createGuessLimit(1);
  guesses.noteWrong('first');
  for (let address = 0; address < 10_000; address++) guesses.noteWrong(`address-${address}`);
  expect(guesses.noteWrong('first')).toBe(false);
});

import { expect, test } from 'vitest';
import { isWeakKey } from '../../../src/engine/config/weak-key.ts';
import path from 'node:path';
import { openGuessLimit } from '../../../src/engine/control/guess-limit.ts';
import { tempFolder } from '../../support/temp-folder.ts';

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

/** A clock that the test sets, and the limits of two processes over one file. */
function twoProcesses() {
  const file = path.join(tempFolder(), 'rates.sqlite');
  const clock = { ms: 1_000_000_000_000, now: () => clock.ms };
  const open = () => openGuessLimit(file, 1, clock);
  return { clock, open, here: open(), there: open() };
}

test('addresses of one subscriber count together, others apart', () => {
  const { here } = twoProcesses();
  expect(here.noteWrong('2001:db8:1:2:aaaa::1')).toBe(false);
  expect(here.noteWrong('2001:db8:1:2::5')).toBe(true);
  expect(here.pauseMs('2001:db8:1:2:ffff::')).toBe(1_000);
  expect(here.pauseMs('2001:db8:1:3::1')).toBe(0);
  expect(here.noteWrong('::ffff:192.0.2.1')).toBe(false);
  expect(here.noteWrong('192.0.2.1')).toBe(true);
});

test('what is remembered is bounded', () => {
  const { clock, here } = twoProcesses();
  here.noteWrong('192.0.2.1');
  for (let address = 0; address < 10_000; address++) {
    clock.ms += 1;
    here.noteWrong(`10.0.${address >> 8}.${address & 255}`);
  }
  expect(here.noteWrong('192.0.2.1')).toBe(false);
});

test('all processes of a folder count together, also after a restart', () => {
  const { clock, open, here, there } = twoProcesses();
  expect(here.noteWrong('192.0.2.1')).toBe(false);
  expect(there.noteWrong('192.0.2.1')).toBe(true);
  expect(here.noteWrong('192.0.2.1')).toBe(false);
  for (const guesses of [here, there, open()]) {
    expect(guesses.pauseMs('192.0.2.1')).toBe(2_000);
    expect(guesses.admitsRightKey('192.0.2.1', 'OM_API_KEY')).toBe(false);
  }
  clock.ms += 2_000;
  expect(there.pauseMs('192.0.2.1')).toBe(0);
});

test('who sent the key before keeps on working in every process while others of the address guess', () => {
  const { here, there } = twoProcesses();
  expect(here.admitsRightKey('192.0.2.1', 'OM_API_KEY')).toBe(true);
  for (let guess = 0; guess < 5; guess++) there.noteWrong('192.0.2.1');
  expect(there.pauseMs('192.0.2.1')).toBeGreaterThan(0);
  expect([here.admitsRightKey('192.0.2.1', 'OM_API_KEY'), there.admitsRightKey('192.0.2.1', 'OM_API_KEY')]).toEqual([
    true,
    true,
  ]);
});

test('the right key does not keep old wrong ones counted', () => {
  const { clock, here, open } = twoProcesses();
  for (let wrong = 0; wrong < 5; wrong++) {
    expect(here.noteWrong('192.0.2.1')).toBe(false);
    for (let minute = 0; minute < 12; minute += 6) {
      clock.ms += 360_000;
      // A new process has nothing in memory, so it asks the file.
      expect(open().admitsRightKey('192.0.2.1', 'OM_API_KEY')).toBe(true);
    }
  }
  expect(here.pauseMs('192.0.2.1')).toBe(0);
  // Within ten minutes of a wrong key it still counts.
  here.noteWrong('192.0.2.1');
  clock.ms += 300_000;
  expect(open().admitsRightKey('192.0.2.1', 'OM_API_KEY')).toBe(true);
  expect(here.noteWrong('192.0.2.1')).toBe(true);
});

test('an address that sent the key for metrics may still not guess the other one', () => {
  const { here, there } = twoProcesses();
  expect(here.admitsRightKey('192.0.2.1', 'OM_METRICS_KEY')).toBe(true);
  for (let guess = 0; guess < 5; guess++) there.noteWrong('192.0.2.1');
  for (const guesses of [here, there]) {
    expect(guesses.admitsRightKey('192.0.2.1', 'OM_METRICS_KEY')).toBe(true);
    expect(guesses.admitsRightKey('192.0.2.1', 'OM_API_KEY')).toBe(false);
  }
});

test('a clock that is set back lengthens no pause beyond the longest', () => {
  const { clock, here } = twoProcesses();
  for (let guess = 0; guess < 10; guess++) here.noteWrong('192.0.2.1');
  clock.ms -= 400 * 86_400_000;
  expect(here.pauseMs('192.0.2.1')).toBe(60_000);
});

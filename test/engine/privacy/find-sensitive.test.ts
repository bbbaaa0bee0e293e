import fc from 'fast-check';
import { expect, test } from 'vitest';
import { entropyOf } from '../../../src/engine/privacy/checks.ts';
import { findSensitive, findSensitiveInSteps, withoutOverlaps } from '../../../src/engine/privacy/find-sensitive.ts';

const GROUPS = ['secrets', 'personal'] as const;
const ORDINARY = 'some plain words without an end '.repeat(100);
/** A text with a candidate of the pattern for passwords at every third character. */
const HOSTILE = '密码='.repeat(20_000);

/** Takes all steps of several texts in turns. @returns the number of steps and the spans of each */
function inTurns(texts: readonly string[]) {
  const searches = texts.map((text) => ({ steps: findSensitiveInSteps(text, GROUPS), taken: 0 }));
  const found = texts.map(() => 0);
  for (let left = texts.length; left > 0;) {
    for (const [at, search] of searches.entries()) {
      const { done, value } = search.steps.next();
      search.taken += 1;
      if (done && value !== undefined) {
        found[at] = value.length;
        left -= 1;
      }
    }
  }
  return { found, taken: searches.map(({ taken }) => taken) };
}

test('a text full of candidates takes more steps, so that others have a turn', () => {
  const { taken } = inTurns([ORDINARY, HOSTILE]);
  expect(taken[1]! - findStepsOf(ORDINARY)).toBeGreaterThanOrEqual(Math.floor(20_000 / 256) - 1);
});

test('searches in turns do not disturb each other', () => {
  const mails = Array.from({ length: 1_000 }, (_, no) => `write to ana${no}@harbour-lights.de today`);
  const texts = [mails.join('\n'), mails.slice(0, 700).join('\n'), HOSTILE];
  expect(inTurns(texts).found).toEqual(texts.map((text) => findSensitive(text, GROUPS).length));
});

test('of overlapping spans the first keeps its place, and what the others cover beyond it stays covered', () => {
  const span = (kind: 'iban' | 'phone' | 'email', start: number, end: number) => ({ kind, start, end });
  expect(withoutOverlaps([span('iban', 8, 15), span('phone', 0, 10), span('email', 2, 4)])).toEqual([
    span('phone', 0, 8),
    span('iban', 8, 15),
  ]);
  expect(withoutOverlaps([span('iban', 3, 5), span('phone', 0, 10)])).toEqual([
    span('phone', 0, 3),
    span('iban', 3, 5),
    span('phone', 5, 10),
  ]);
  // A value that was cut at the end of one part of a text and found whole in the next is one value.
  expect(withoutOverlaps([span('iban', 0, 6), span('iban', 0, 9), span('iban', 9, 12)])).toEqual([
    span('iban', 0, 9),
    span('iban', 9, 12),
  ]);
});

test('spans without overlaps are in order and cover each place that was found, by the first span that has it', () => {
  const spans = fc.array(
    fc
      .record({
        kind: fc.constantFrom('iban', 'phone', 'email'),
        start: fc.nat(30),
        length: fc.integer({ min: 1, max: 12 }),
      })
      .map(({ kind, start, length }) => ({ kind, start, end: start + length }) as const),
  );
  const kindAt = (found: readonly { kind: string; start: number; end: number }[], place: number) =>
    found.find(({ start, end }) => start <= place && place < end)?.kind;
  fc.assert(
    fc.property(spans, (found) => {
      const kept = withoutOverlaps(found);
      for (const [at, { start }] of kept.entries()) if (at > 0) expect(start).toBeGreaterThanOrEqual(kept[at - 1]!.end);
      for (let place = 0; place < 50; place += 1) expect(kindAt(kept, place)).toBe(kindAt(found, place));
    }),
  );
});

test('the entropy of a text counts characters, also those of two code units', () => {
  expect(entropyOf('😀')).toBe(0);
  expect(entropyOf('😀😀🙂🙂')).toBe(1);
  expect(entropyOf('abcd')).toBe(2);
});

function findStepsOf(text: string): number {
  let steps = 0;
  for (const search = findSensitiveInSteps(text, GROUPS); !search.next().done;) steps += 1;
  return steps;
}

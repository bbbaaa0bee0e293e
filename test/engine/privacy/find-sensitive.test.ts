import { expect, test } from 'vitest';
import { findSensitive, findSensitiveInSteps } from '../../../src/engine/privacy/find-sensitive.ts';

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

function findStepsOf(text: string): number {
  let steps = 0;
  for (const search = findSensitiveInSteps(text, GROUPS); !search.next().done;) steps += 1;
  return steps;
}

import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, expect, test, vi } from 'vitest';
import { screenFields } from '../../../src/engine/privacy/screen-memory.ts';
import { startScreening } from '../../../src/engine/privacy/screening.ts';

const POLICY = { secrets: 'redact', personal: 'redact' } as const;

afterEach(() => vi.restoreAllMocks());

test('a long name of a field is not searched again with each text of its list', async () => {
  const value = { [`${'x'.repeat(60_000)} password`]: ['hunter2hunter', ...Array.from({ length: 199 }, () => 'a')] };
  const searched = vi.spyOn(RegExp.prototype, 'test');
  const screened = await screenFields(startScreening(POLICY, null), { value });
  const characters = searched.mock.calls.reduce((sum, [text]) => sum + text.length, 0);
  const [texts] = Object.values(screened.value);
  expect(texts?.[0]).toMatch(/^\[REDACTED:/);
  // The name itself is searched once for each of some thirty patterns.
  expect(characters).toBeLessThan(60_000 * 100);
});

test('screenings that are under way together take turns, one in each turn of the event loop', async () => {
  const text = 'The meeting about the garden is on Tuesday at noon. '.repeat(20_000);
  const turnsOf = async (count: number) => {
    const work = Array.from({ length: count }, () => startScreening(POLICY, null).screen('content', text));
    let isDone = false;
    const done = Promise.all(work).then(() => (isDone = true));
    let turns = 0;
    for (; !isDone; turns += 1) await nextTurn();
    await done;
    return turns;
  };
  await turnsOf(1);
  const alone = await turnsOf(1);
  expect(await turnsOf(16)).toBeGreaterThan(4 * alone);
});

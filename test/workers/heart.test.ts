import { afterEach, expect, test, vi } from 'vitest';
import { createHeart, watchHeart } from '../../src/workers/heart.ts';

const MOST_MS = 1_000;

afterEach(() => void vi.useRealTimers());

/** Watches a heart that has beaten once, of a thread that waits for a processor the given part of the time. */
function watchSilent(waitingPart: number) {
  vi.useFakeTimers();
  const heart = createHeart();
  heart[0] = 1;
  const startedAt = Date.now();
  const onStill = vi.fn();
  const stop = watchHeart(heart, MOST_MS, onStill, () => waitingPart * (Date.now() - startedAt));
  return { heart, onStill, stop };
}

test('a thread that makes no beat while it could run counts as hung', () => {
  const { onStill } = watchSilent(0);
  vi.advanceTimersByTime(MOST_MS);
  expect(onStill).not.toHaveBeenCalled();
  vi.advanceTimersByTime(MOST_MS / 10);
  expect(onStill).toHaveBeenCalledOnce();
});

test('a thread that waits for a processor does not count as hung, but for ten times as long at most', () => {
  const { onStill, stop } = watchSilent(1);
  vi.advanceTimersByTime(9 * MOST_MS);
  expect(onStill).not.toHaveBeenCalled();
  vi.advanceTimersByTime(2 * MOST_MS);
  expect(onStill).toHaveBeenCalledOnce();
  stop();
});

test('a beat begins the silence anew', () => {
  const { heart, onStill, stop } = watchSilent(0);
  for (let beat = 0; beat < 20; beat++) {
    vi.advanceTimersByTime(MOST_MS / 2);
    Atomics.add(heart, 0, 1);
  }
  expect(onStill).not.toHaveBeenCalled();
  stop();
});

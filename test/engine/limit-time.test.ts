import { setTimeout as pause } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { limitTime } from '../../src/engine/limit-time.ts';

const TIMEOUT_MS = 20;

/** A clock of the time without a processor, which runs while it is told to. */
function createWaiting() {
  let waitedMs = 1_000;
  let since: number | undefined;
  return {
    begin: () => void (since = performance.now()),
    end() {
      waitedMs += performance.now() - since!;
      since = undefined;
    },
    ms: () => waitedMs + (since === undefined ? 0 : performance.now() - since),
  };
}

test('a limit is not over while there is no processor, and is over when there is one again', async () => {
  const waiting = createWaiting();
  waiting.begin();
  const expire = vi.fn();
  limitTime({ timeoutMs: TIMEOUT_MS, unscheduledMs: waiting.ms, expire });
  await pause(5 * TIMEOUT_MS);
  expect(expire).not.toHaveBeenCalled();
  waiting.end();
  await expect.poll(() => expire.mock.calls.length).toBe(1);
});

test('a limit is over some time even where there never is a processor', async () => {
  const waiting = createWaiting();
  waiting.begin();
  const expire = vi.fn();
  limitTime({ timeoutMs: TIMEOUT_MS, unscheduledMs: waiting.ms, expire });
  await expect.poll(() => expire.mock.calls.length).toBe(1);
});

test('a limit that was ended says how much of it was used, and never calls', async () => {
  const expire = vi.fn();
  const before = performance.now();
  const end = limitTime({ timeoutMs: TIMEOUT_MS, unscheduledMs: () => 0, expire });
  const usedMs = end();
  expect(usedMs).toBeGreaterThanOrEqual(0);
  expect(usedMs).toBeLessThanOrEqual(performance.now() - before);
  await pause(3 * TIMEOUT_MS);
  expect(expire).not.toHaveBeenCalled();
});

test('a wait that began before the limit takes nothing off', () => {
  let unscheduledMs = 0;
  const end = limitTime({ timeoutMs: TIMEOUT_MS, unscheduledMs: () => unscheduledMs, expire: () => {} });
  unscheduledMs = 10;
  expect(end()).toBeGreaterThanOrEqual(0);
});

import { expect, onTestFinished, test, vi } from 'vitest';
import { createJobWaits } from '../../../src/engine/tenant/wait-for-jobs.ts';

/** A ledger of numbers, which counts how often it is read. */
function ledgerOf(count: number) {
  const unfinished = new Set(Array.from({ length: count }, (_, at) => at + 1));
  const ledger = {
    unfinished,
    reads: 0,
    list: (from: number, to: number, limit: number) => {
      ledger.reads += 1;
      expect(to - from).toBeLessThan(1_000);
      return [...unfinished]
        .filter((no) => no >= from && no <= to)
        .sort((a, b) => a - b)
        .slice(0, limit);
    },
  };
  return ledger;
}

test('all who wait for jobs of a tenant share each poll of the ledger', async () => {
  const ledger = ledgerOf(500);
  const waits = createJobWaits();
  const settled: number[] = [];
  const all = Array.from({ length: 500 }, async (_, at) => {
    const range = { first: at + 1, last: at + 1, timeoutMs: 60_000 };
    expect(await waits.wait(ledger.list, range)).toBe(true);
    settled.push(at + 1);
  });
  await new Promise(setImmediate);
  // Each has looked once by itself.
  expect(ledger.reads).toBe(500);
  // Those that end in another order than they were added.
  for (const no of [400, 7]) ledger.unfinished.delete(no);
  while (settled.length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
  expect(settled.toSorted()).toEqual([400, 7]);
  const before = ledger.reads;
  ledger.unfinished.clear();
  await Promise.all(all);
  expect(ledger.reads - before).toBeLessThan(5);
});

test('a wait ends when the last of its jobs has ended, or it runs out of time', async () => {
  const ledger = ledgerOf(3_500);
  const waits = createJobWaits();
  const long = waits.wait(ledger.list, { first: 1, last: 3_500, timeoutMs: 60_000 });
  expect(await waits.wait(ledger.list, { first: 2, last: 2, timeoutMs: 0 })).toBe(false);
  expect(await waits.wait(ledger.list, { first: 3, last: 3, timeoutMs: 20 })).toBe(false);
  const stop = new AbortController();
  const aborted = waits.wait(ledger.list, { first: 4, last: 9, timeoutMs: 60_000, signal: stop.signal });
  await new Promise(setImmediate);
  stop.abort();
  expect(await aborted).toBe(false);
  for (let no = 1; no < 3_500; no += 1) ledger.unfinished.delete(no);
  expect(await Promise.race([long, new Promise((resolve) => setTimeout(resolve, 100, 'waits'))])).toBe('waits');
  ledger.unfinished.clear();
  expect(await long).toBe(true);
  await new Promise((resolve) => setTimeout(resolve, 100));
  const { reads } = ledger;
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(ledger.reads).toBe(reads);
});

test('all whose ranges are long walk along the ledger together, and delay none whose job has ended', async () => {
  const ledger = ledgerOf(0);
  const waits = createJobWaits();
  const newest = 100_000;
  ledger.unfinished.add(newest);
  const long = { first: 1, last: newest, timeoutMs: 60_000 };
  const all = Array.from({ length: 100 }, () => waits.wait(ledger.list, long));
  const own = waits.wait(ledger.list, { first: newest, last: newest, timeoutMs: 60_000 });
  await new Promise(setImmediate);
  // Each has looked once by itself, and no further; the walk may have begun.
  expect(ledger.reads).toBeLessThan(101 + 100);
  ledger.unfinished.clear();
  expect(await own).toBe(true);
  expect(await Promise.all(all)).toEqual(all.map(() => true));
  expect(ledger.reads).toBeLessThan(101 + 2 * 100);
});

test('a range that has ended is over at once, and a signal that was aborted before ends the wait', async () => {
  const ledger = ledgerOf(0);
  const waits = createJobWaits();
  expect(await waits.wait(ledger.list, { first: 1, last: 1_000, timeoutMs: 0 })).toBe(true);
  expect(await waits.wait(ledger.list, { first: 5, last: 4, timeoutMs: 0 })).toBe(true);
  expect(await waits.wait(ledger.list, { first: 1, last: 9, timeoutMs: 9, signal: AbortSignal.abort() })).toBe(false);
  expect(ledger.reads).toBe(1);
});

test('an error of the ledger ends all waits, and later ones poll again', async () => {
  const waits = createJobWaits();
  let fails = false;
  const list = () => {
    if (fails) throw new Error('the file is locked');
    return [1];
  };
  const both = [1, 1].map((no) => waits.wait(list, { first: no, last: no, timeoutMs: 60_000 }));
  await new Promise(setImmediate);
  fails = true;
  for (const one of both) await expect(one).rejects.toThrow('locked');
  fails = false;
  expect(await waits.wait(list, { first: 1, last: 1, timeoutMs: 20 })).toBe(false);
});

/** Replaces the clock and the timers by ones that a test advances. */
function holdTime() {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  onTestFinished(() => void vi.useRealTimers());
}

test('one who joins those who wait makes the pause that runs a short one', async () => {
  holdTime();
  const ledger = ledgerOf(2);
  const waits = createJobWaits();
  const wait = (no: number) => waits.wait(ledger.list, { first: no, last: no, timeoutMs: 60_000 });
  const long = wait(1);
  await vi.advanceTimersByTimeAsync(1_000);
  // A pause of 50 ms has just begun.
  for (const before = ledger.reads; ledger.reads === before;) await vi.advanceTimersByTimeAsync(1);
  const second = wait(2);
  ledger.unfinished.delete(2);
  const before = ledger.reads;
  await vi.advanceTimersByTimeAsync(5);
  expect(ledger.reads - before).toBe(1);
  expect(await second).toBe(true);
  ledger.unfinished.clear();
  await vi.advanceTimersByTimeAsync(60);
  expect(await long).toBe(true);
});

test('those whose time runs out together share a last poll, which finds what has ended since', async () => {
  holdTime();
  const ledger = ledgerOf(1_000);
  const waits = createJobWaits();
  const all = Array.from({ length: 1_000 }, (_, at) =>
    waits.wait(ledger.list, { first: at + 1, last: at + 1, timeoutMs: 1_000 }),
  );
  await vi.advanceTimersByTimeAsync(900);
  for (const before = ledger.reads; ledger.reads === before;) await vi.advanceTimersByTimeAsync(1);
  const before = ledger.reads;
  await vi.advanceTimersByTimeAsync(40);
  ledger.unfinished.delete(7);
  await vi.advanceTimersByTimeAsync(200);
  const done = await Promise.all(all);
  expect(done.flatMap((isDone, at) => (isDone ? [at + 1] : []))).toEqual([7]);
  expect(ledger.reads - before).toBeLessThan(10);
});

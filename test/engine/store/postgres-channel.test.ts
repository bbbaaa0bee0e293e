import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { expect, onTestFinished, test } from 'vitest';
import { waitForChange } from '../../../src/engine/store/postgres/second-thread.ts';

/** Notifies about nothing again and again, then changes the number. */
const LATE_NOTIFICATIONS = `
  const { workerData: signal } = require('node:worker_threads');
  const sleeper = new Int32Array(new SharedArrayBuffer(4));
  for (let woken = 0; woken < 3; ) {
    woken += Atomics.notify(signal, 0);
    Atomics.wait(sleeper, 0, 0, 1);
  }
  Atomics.store(signal, 0, 7);
  Atomics.notify(signal, 0);
`;

test('a notification without a change ends no waiting', async () => {
  const signal = new Int32Array(new SharedArrayBuffer(4));
  const thread = new Worker(LATE_NOTIFICATIONS, { eval: true, workerData: signal });
  onTestFinished(async () => void (await thread.terminate()));
  await once(thread, 'online');
  expect(waitForChange(signal, 0, 60_000)).toBe(true);
  expect(signal[0]).toBe(7);
});

test('a change that came before is seen at once, and one that never comes is given up', () => {
  const signal = new Int32Array(new SharedArrayBuffer(4));
  expect(waitForChange(signal, 1, 60_000)).toBe(true);
  expect(waitForChange(signal, 0, 1)).toBe(false);
});

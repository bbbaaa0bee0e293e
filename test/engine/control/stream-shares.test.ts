import path from 'node:path';
import Database from 'better-sqlite3';
import { expect, onTestFinished, test, vi } from 'vitest';
import { openStreamShares } from '../../../src/engine/control/stream-shares.ts';
import { tempFolder } from '../../support/temp-folder.ts';

function twoProcesses() {
  const file = path.join(tempFolder(), 'rates.sqlite');
  const clock = { ms: 1_000_000_000_000, now: () => clock.ms };
  const [here, there] = [openStreamShares(file, clock), openStreamShares(file, clock)];
  return { clock, here, there };
}

test('a share holds over all processes, and what is given back can be taken anywhere', () => {
  const { here, there } = twoProcesses();
  const leave = here.take('acme', 2);
  expect(leave).toBeDefined();
  expect(there.take('acme', 2)).toBeDefined();
  expect([here.take('acme', 2), there.take('acme', 2)]).toEqual([undefined, undefined]);
  expect(there.take('beta', 2)).toBeDefined();
  leave!();
  expect(there.take('acme', 2)).toBeDefined();
  expect(here.take('acme', 2)).toBeUndefined();
});

test('streams from before a share was set count in their own process', () => {
  const { here } = twoProcesses();
  here.take('acme', 0);
  here.take('acme', 0);
  expect(here.take('acme', 2)).toBeUndefined();
  expect(here.take('acme', 3)).toBeDefined();
});

test('the streams of a process that closes are free again', () => {
  const { here, there } = twoProcesses();
  here.take('acme', 1);
  expect(there.take('acme', 1)).toBeUndefined();
  here.close();
  expect(there.take('acme', 1)).toBeDefined();
});

test.each([31_000, -31_000])(
  'those of a process that says nothing any more are free, too (clock %i ms on)',
  (later) => {
    const { clock, here, there } = twoProcesses();
    here.take('acme', 1);
    expect(there.take('acme', 1)).toBeUndefined();
    clock.ms += later;
    expect(there.take('acme', 1)).toBeDefined();
  },
);

test('what a killed process counted stays in the file until the next tick, and counts for nothing', () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const file = path.join(tempFolder(), 'rates.sqlite');
  const clock = { ms: 1_000_000_000_000, now: () => clock.ms };
  const killed = openStreamShares(file, clock);
  killed.take('killed-acme', 1);
  vi.clearAllTimers();
  const here = openStreamShares(file, clock);
  clock.ms += 60_000;
  const db = new Database(file, { readonly: true });
  onTestFinished(() => void db.close());
  const counted = () => db.prepare('SELECT tenant_id FROM stream_counts ORDER BY tenant_id').pluck().all();
  const leave = here.take('killed-beta', 5);
  leave!();
  expect(counted()).toEqual(['killed-acme', 'killed-beta']);
  expect(here.take('killed-acme', 1)).toBeDefined();
  here.take('killed-gamma', 5)!();
  vi.advanceTimersByTime(10_000);
  expect(counted()).toEqual(['killed-acme']);
  here.close();
});

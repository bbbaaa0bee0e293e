import { expect, test } from 'vitest';
import { inTurnAfter } from '../../src/api/wait-for-writes.ts';

/** Holds the thread (ms). */
function work(ms: number): void {
  for (const until = performance.now() + ms; performance.now() < until;);
}

test('those whose waits end together go on in several turns of the event loop, and so do their errors', async () => {
  for (const isFailure of [false, true]) {
    let turn = 0;
    let isOver = false;
    const count = () => {
      turn += 1;
      if (!isOver) setImmediate(count);
    };
    setImmediate(count);
    const end = Promise.withResolvers<boolean>();
    const turns: number[] = [];
    const goOn = () => {
      work(2);
      turns.push(turn);
    };
    const all = Array.from({ length: 20 }, () => inTurnAfter(end.promise).then(goOn, goOn));
    await new Promise((resolve) => setTimeout(resolve, 5));
    if (isFailure) end.reject(new Error('the file is locked'));
    else end.resolve(true);
    await Promise.all(all);
    isOver = true;
    expect(turns).toHaveLength(20);
    expect(new Set(turns).size).toBeGreaterThanOrEqual(10);
  }
});

test('a wait that is over before it begins is answered in the same turn', async () => {
  let isSame = true;
  setImmediate(() => (isSame = false));
  expect(await inTurnAfter(Promise.resolve(true))).toBe(true);
  expect(isSame).toBe(true);
});

import { setTimeout as pause } from 'node:timers/promises';
import type { System } from './system.ts';

const POLL_MS = 2;

/**
 * Adds texts evenly, as if many clients sent them one by one, until `isOver`. Each latency begins when its text is due,
 * so it holds the time for which the text waited for its turn.
 * @returns latencies of the adds that were finished, ms, and how many were finished a second
 */
export async function addEvenly(
  { add, adding }: Pick<System, 'add' | 'adding'>,
  texts: readonly string[],
  { perSecond, isOver }: { readonly perSecond: number; readonly isOver: () => boolean },
): Promise<{ readonly latencies: readonly number[]; readonly finishedPerSecond: number }> {
  const latencies: number[] = [];
  const underWay = new Set<Promise<void>>();
  const begun = performance.now();
  const dueAt = (at: number) => begun + (1000 * (at + 1)) / perSecond;
  let taken = 0;
  let lastCall = -Infinity;
  let failure: unknown;
  const addFrom = async (first: number, count: number) => {
    await add(texts.slice(first, first + count));
    const now = performance.now();
    for (let at = first; at < first + count; at++) latencies.push(now - dueAt(at));
  };
  while (!isOver() && failure === undefined) {
    const now = performance.now();
    const due = Math.min(texts.length, Math.floor(((now - begun) * perSecond) / 1000)) - taken;
    if (due === 0 || underWay.size >= adding.atOnce || now - lastCall < adding.everyMs) {
      await pause(POLL_MS);
      continue;
    }
    const count = Math.min(due, adding.together);
    const call = addFrom(taken, count)
      .catch((error: unknown) => (failure ??= error))
      .then(() => void underWay.delete(call));
    underWay.add(call);
    taken += count;
    lastCall = now;
  }
  const finishedPerSecond = (1000 * latencies.length) / (performance.now() - begun);
  await Promise.all(underWay);
  if (failure !== undefined) throw failure as Error;
  return { latencies, finishedPerSecond };
}

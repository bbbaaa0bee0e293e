import { vi } from 'vitest';

/** Counts the iterations of the event loop (setImmediate), until it is stopped. */
export function countTurns(): { readonly turn: number; stop(): void } {
  let turn = 0;
  let isDone = false;
  const count = () => {
    turn += 1;
    if (!isDone) setImmediate(count);
  };
  setImmediate(count);
  return {
    get turn() {
      return turn;
    },
    stop: () => void (isDone = true),
  };
}

/**
 * Counts how many iterations of the event loop run until `work` is done, as a measure of how little it blocks. By the
 * clock that it sees, 10 ms pass between two looks, so that each step uses up its turn on a fast machine, too.
 */
export async function turnsDuring(work: () => Promise<unknown>): Promise<number> {
  let now = performance.now();
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => (now += 10));
  const turns = countTurns();
  try {
    await work();
    const { turn } = turns;
    await new Promise(setImmediate); // The last turn ends by the clock by which it began.
    return turn;
  } finally {
    turns.stop();
    clock.mockRestore();
  }
}

import { nextSharedTurn } from '../engine/index.ts';

/** Longest time for which a line lets its callers go on in one turn of the event loop (ms). */
const TURN_MS = 3;

/**
 * A line of short works that become due together, such as the requests of many connections. In each turn of the event
 * loop it lets them go on for about 3 ms, one after the other; shares, such as the networks of clients, take turns.
 *
 * `takeTurn` does not fit such works: each turn goes to one of those that wait, and none while connections arrive, and
 * those that ask together all go on before the first of them has worked.
 */
export interface TurnLine {
  /**
   * Tells whether nobody waits and a work may begin at once, since the 3 ms of the present turn are not over. They
   * begin with the first call in the turn.
   */
  isFree(): boolean;
  /** Waits for a later turn, in the order of the calls with the same share. It never rejects. */
  wait(share: string): Promise<void>;
}

export function createTurnLine(): TurnLine {
  /** Those who wait, by their share, whose turn is next first. No list in it is empty. */
  const waiting = new Map<string, (() => void)[]>();
  /** Time, as `performance.now()`, until which works begin at once in the present turn; undefined before the first. */
  let endsAt: number | undefined;
  let isAdmitting = false;

  /** Lets those who wait go on, in as many turns as are needed. */
  async function admitWaiting(): Promise<void> {
    isAdmitting = true;
    while (waiting.size > 0) {
      await nextSharedTurn();
      const until = performance.now() + TURN_MS;
      do {
        takeNext()();
        await settled();
      } while (waiting.size > 0 && performance.now() < until);
    }
    isAdmitting = false;
  }

  /**
   * Removes the work that has waited longest for the share whose turn it is, and returns the function that lets it go
   * on.
   */
  function takeNext(): () => void {
    const [[share, queue]] = waiting as unknown as [[string, (() => void)[]]];
    const goOn = queue.shift()!;
    waiting.delete(share);
    if (queue.length > 0) waiting.set(share, queue);
    return goOn;
  }

  return {
    isFree() {
      if (waiting.size > 0) return false;
      if (endsAt !== undefined) return performance.now() < endsAt;
      endsAt = performance.now() + TURN_MS;
      setImmediate(() => (endsAt = undefined));
      return true;
    },
    wait(share) {
      return new Promise((resolve) => {
        const queue = waiting.get(share) ?? [];
        queue.push(resolve);
        waiting.set(share, queue);
        if (!isAdmitting) void admitWaiting();
      });
    },
  };
}

/**
 * Waits until the work that was just let go on has run as far as it can without an event of the system, such as a timer
 * or data on a socket.
 */
async function settled(): Promise<void> {
  await Promise.resolve();
  await new Promise<void>((resolve) => process.nextTick(resolve));
}

/** Lets many pass together, or one by itself, in the order in which they came. */
export interface Gate {
  together<T>(work: () => Promise<T>): Promise<T>;
  /** Waits until everybody inside has left, and keeps everybody else out. */
  alone<T>(work: () => Promise<T>): Promise<T>;
  /**
   * Time in which nobody should ask to be alone (ms), so that the others lose a sixth of their time at most, however
   * many ask and however slow they are; 0 if somebody may ask now.
   */
  msUntilAlone(): number;
}

/** After somebody was alone the others come first, for this many times as long as they were kept out. */
const OTHERS_TIMES = 5;
/** Wait before asking again while somebody is alone (ms), as it is not known how long that takes. */
const ASK_AGAIN_MS = 1_000;

/** @param now a clock in ms that is never set back */
export function createGate(now: () => number = () => performance.now()): Gate {
  let inside = 0;
  let isClosed = false;
  let othersUntil = 0;
  const queue: { readonly alone: boolean; readonly enter: () => void }[] = [];

  const admit = () => {
    for (let next = queue[0]; next !== undefined; next = queue[0]) {
      if (isClosed || (next.alone && inside > 0)) return;
      queue.shift();
      inside += 1;
      isClosed = next.alone;
      next.enter();
    }
  };
  const pass = async <T>(alone: boolean, work: () => Promise<T>): Promise<T> => {
    const askedAt = now();
    await new Promise<void>((enter) => {
      queue.push({ alone, enter });
      admit();
    });
    try {
      return await work();
    } finally {
      inside -= 1;
      if (alone) {
        isClosed = false;
        othersUntil = now() + OTHERS_TIMES * (now() - askedAt);
      }
      admit();
    }
  };
  return {
    together: (work) => pass(false, work),
    alone: (work) => pass(true, work),
    msUntilAlone() {
      if (isClosed || queue.some(({ alone }) => alone)) return ASK_AGAIN_MS;
      return Math.max(0, Math.ceil(othersUntil - now()));
    },
  };
}

/** Admits asynchronous work in the order in which it came: either side by side with other work, or alone. */
export interface Gate {
  /** Runs `work` beside other work, after earlier work that is to run alone has ended. */
  together<T>(work: () => Promise<T>): Promise<T>;
  /** Waits until all earlier work has ended, and then runs `work` while nothing else runs. */
  alone<T>(work: () => Promise<T>): Promise<T>;
  /**
   * Returns how long callers should wait before they ask to run work alone (ms); 0 if they may ask now. If all callers
   * heed it, work that runs alone takes at most a sixth of the time. The gate does not enforce it.
   */
  msUntilAlone(): number;
}

/**
 * Multiple of the time that work which ran alone took, its wait included, for which other work has precedence
 * afterwards.
 */
const OTHERS_TIMES = 5;
/**
 * Value of `msUntilAlone` (ms) while work runs alone or waits to do so, since the duration of that work is not known
 * yet.
 */
const ASK_AGAIN_MS = 1_000;

/**
 * Creates a gate with no work in it.
 * @param now a clock in ms that is never set back
 */
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

/** Lets pieces of work run together, or one of them alone, in the order in which they came. */
export interface Gate {
  /** Runs work beside other work, once nothing that came before waits or runs alone. */
  together<T>(work: () => Promise<T>): Promise<T>;
  /** Waits until all work that came before has ended, and runs work while nothing else runs. */
  alone<T>(work: () => Promise<T>): Promise<T>;
  /**
   * Time in which nobody should ask to run alone (ms), so that other work loses a sixth of its time at most, however
   * much asks and however slow it is; 0 if somebody may ask now. The gate does not enforce it.
   */
  msUntilAlone(): number;
}

/**
 * Factor of the time that the others come first after work ran alone: this many times as long as they were kept out.
 */
const OTHERS_TIMES = 5;
/** Value of `msUntilAlone` while work runs alone or waits to run alone (ms), as it is not known how long that takes. */
const ASK_AGAIN_MS = 1_000;

/** Creates a gate that is open. @param now a clock in ms that is never set back */
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

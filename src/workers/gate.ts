/** Lets many pass together, or one by itself, in the order in which they came. */
export interface Gate {
  together<T>(work: () => Promise<T>): Promise<T>;
  /** Waits until everybody inside has left, and keeps everybody else out. */
  alone<T>(work: () => Promise<T>): Promise<T>;
}

export function createGate(): Gate {
  let inside = 0;
  let isClosed = false;
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
    await new Promise<void>((enter) => {
      queue.push({ alone, enter });
      admit();
    });
    try {
      return await work();
    } finally {
      inside -= 1;
      if (alone) isClosed = false;
      admit();
    }
  };
  return { together: (work) => pass(false, work), alone: (work) => pass(true, work) };
}

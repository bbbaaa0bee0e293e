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

/** Counts how many iterations of the event loop run until `work` is done, as a measure of how little it blocks. */
export async function turnsDuring(work: () => Promise<unknown>): Promise<number> {
  const turns = countTurns();
  await work();
  turns.stop();
  return turns.turn;
}

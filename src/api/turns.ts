/** Those that wait for the event loop to come round, the first of them first. */
const waiting: (() => void)[] = [];

/**
 * Resolves once the event loop has come round, for one caller each time. So work that many requests do in small steps
 * holds the loop for one step, however many of them there are.
 */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    if (waiting.length === 1) setImmediate(giveTurn);
  });
}

function giveTurn(): void {
  const [resolve] = waiting.splice(0, 1);
  if (waiting.length > 0) setImmediate(giveTurn);
  resolve!();
}

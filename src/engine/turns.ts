/**
 * Turns of a thread's event loop for work that is done in small steps, such as parsing a long body. Everything that
 * takes turns shares one time limit in each turn, so that many short works hold the thread no longer than a long one.
 */

/** Longest time for which all callers of `takeTurn` together hold the thread in one turn of the event loop (ms). */
const TURN_MS = 3;

/**
 * Time, as `performance.now()`, at which work in this turn of the event loop must yield; undefined if none has begun in
 * it.
 */
let endsAt: number | undefined;
/** Resolve functions of the work that waits for a turn of the event loop, the longest waiting first. */
const waiting: (() => void)[] = [];

/**
 * Waits for a later turn of the event loop if all work in the present turn has together used up its 3 ms; returns at
 * once otherwise. Long work awaits it between two of its steps, so that it does not block the thread.
 */
export async function takeTurn(): Promise<void> {
  begin();
  if (performance.now() >= endsAt!) await nextTurn();
}

/**
 * Waits for a later turn of the event loop. Each turn goes to one caller, so that steps which cannot be divided hold
 * the event loop one at a time, even if there are many of them. A change of the control database is such a step: this
 * thread waits for its commit.
 */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    begin();
  });
}

/**
 * Starts the time limit of the present turn of the event loop, unless it runs already. At the end of the turn, the
 * caller that has waited longest goes on.
 */
function begin(): void {
  if (endsAt !== undefined) return;
  endsAt = performance.now() + TURN_MS;
  setImmediate(() => {
    endsAt = undefined;
    const resolve = waiting.shift();
    if (resolve === undefined) return;
    begin();
    resolve();
  });
}

/**
 * Turns of a thread's event loop for work that is done in small steps, such as parsing a long body. Everything that
 * takes turns shares one time limit in each turn, so that many short works hold the thread no longer than a long one.
 */

/** Longest time for which all works together hold the thread in one turn of the event loop (ms). */
const TURN_MS = 3;

/** Time at which the works of this turn must yield, as `performance.now()`; undefined if none has begun in it. */
let endsAt: number | undefined;
/** Works that wait for a turn, the one that has waited longest first. */
const waiting: (() => void)[] = [];

/**
 * Waits for a turn if the works of the present turn have used up its 3 ms; returns at once otherwise. Await it between
 * two steps.
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

/** Starts the time of the works in this turn, unless it runs; the end of the turn passes it on to one that waits. */
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

/**
 * Takes large results of reader threads a few in each turn of the event loop. To read a message of 1 MiB takes some
 * milliseconds, and a turn reads all messages that have arrived, of every thread.
 */
import { nextSharedTurn } from '../turns.ts';

/** Size above which a result waits until it is taken (bytes, as `packResult` counts). Smaller ones come as they are. */
export const LARGE_BYTES = 64 * 1024;
/** Greatest size of the large results that are taken in one turn together, unless a single one is larger (bytes). */
const TURN_BYTES = 256 * 1024;

/** A result that waits to be taken. */
interface WaitingResult {
  readonly bytes: number;
  take(): void;
}

/** The line in which the large results of all threads wait. */
const waiting: WaitingResult[] = [];
/** Size of the large results that were taken in the present turn (bytes). */
let takenInTurn = 0;

/**
 * Takes a large result in its turn: at once if no other waits and few were taken in this turn, else in a later one.
 * @param result.bytes its size
 * @param result.take takes it; must not throw
 */
export function takeInTurn(result: WaitingResult): void {
  if (waiting.length === 0 && hasRoom(result)) return takeNow(result);
  waiting.push(result);
  if (waiting.length === 1) void takeWaiting();
}

async function takeWaiting(): Promise<void> {
  // The end of the turn in which others were taken at once.
  await nextSharedTurn();
  while (waiting.length > 0) {
    await nextSharedTurn();
    while (waiting.length > 0 && hasRoom(waiting[0]!)) takeNow(waiting.shift()!);
  }
}

function hasRoom({ bytes }: WaitingResult): boolean {
  return takenInTurn === 0 || takenInTurn + bytes <= TURN_BYTES;
}

function takeNow({ bytes, take }: WaitingResult): void {
  if (takenInTurn === 0) setImmediate(() => (takenInTurn = 0));
  takenInTurn += bytes;
  take();
}

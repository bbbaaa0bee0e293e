import { setTimeout as pause } from 'node:timers/promises';
import type { Store } from '../store/open-store.ts';

const SLICE_MS = 4;
const PAUSE_MS = 1;

/**
 * Writes many small things in transactions of a few milliseconds with a pause between them, so that the writer that answers
 * clients never waits long for the lock.
 * @param open asked for each slice, since a pause lets others close the file
 */
export async function commitInSlices<T>(
  open: () => Store,
  items: readonly T[],
  write: (store: Store, item: T) => void,
): Promise<void> {
  for (let next = 0; next < items.length;) {
    if (next > 0) await pause(PAUSE_MS);
    const store = open();
    next = store.write(() => {
      const deadline = performance.now() + SLICE_MS;
      let position = next;
      do write(store, items[position++] as T);
      while (position < items.length && performance.now() < deadline);
      return position;
    });
  }
}

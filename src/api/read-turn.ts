import { currentShare } from '../engine/index.ts';
import { createTurnLine } from './turn-line.ts';

/** Line of the requests that read one memory or item, which may have half a megabyte. */
const readers = createTurnLine();

/**
 * Waits for a turn of the event loop in which one memory may be read or encoded. Requests that ask for one go on for
 * about 3 ms in each turn, however many connections arrive; tenants' keys that wait take turns with each other.
 */
export async function readTurn(): Promise<void> {
  if (readers.isFree()) return;
  const { tenantId, keyId } = currentShare();
  await readers.wait(`${tenantId} ${keyId}`);
}

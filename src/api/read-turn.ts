import { currentShare } from '../engine/index.ts';
import { createTurnLine } from './turn-line.ts';

/** Queue of the requests that wait for their turn to read one memory or item, which may have half a megabyte. */
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

/**
 * Waits for a later turn of the event loop in which the reply with a memory may be made. The answers of one commit, up
 * to 256, arrive in one turn: each of them would find it free, and all replies would be made before it ends.
 */
export async function answerTurn(): Promise<void> {
  const { tenantId, keyId } = currentShare();
  await readers.wait(`${tenantId} ${keyId}`);
}

/** Line of the requests with bodies that were waited for, whose last bytes may come together. */
const parsers = createTurnLine();

/**
 * Waits for a turn of the event loop in which a body that was waited for may be parsed. A client may hold back the last
 * byte of many bodies and send all of these bytes at once. Their requests go on for about 3 ms in each turn; tenants'
 * keys that wait take turns with each other.
 */
export async function parseTurn(): Promise<void> {
  if (parsers.isFree()) return;
  const { tenantId, keyId } = currentShare();
  await parsers.wait(`${tenantId} ${keyId}`);
}

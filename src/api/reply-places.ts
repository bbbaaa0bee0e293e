import { EngineError } from '../engine/index.ts';
import { OwnedBytes, type Owner } from './byte-share.ts';
import { requireClient } from './room-in.ts';
import type { TenantCall } from './route.ts';

const MIB = 1024 * 1024;
/**
 * Greatest memory that large replies being sent may take for one API key (bytes); `TOTAL_BYTES` is the limit for all
 * keys together.
 */
const KEY_BYTES = 32 * MIB;
/**
 * Greatest memory that large replies being sent may take for all keys of one tenant together (bytes), since a tenant
 * may make a thousand keys. A tenant that holds none gets memory for one reply, however large.
 */
const TENANT_BYTES = 64 * MIB;
const TOTAL_BYTES = 128 * MIB;
/**
 * If the large replies being sent take this much memory (bytes), every further large reply waits, even to a key that
 * has no other one.
 */
const FULL_BYTES = 256 * MIB;
/**
 * Greatest memory of the large replies that wait to be sent, for one API key (bytes). `TENANT_WAITING_BYTES` is the
 * limit for the keys of one tenant together, `TOTAL_WAITING_BYTES` that for all keys. Further replies are refused.
 */
const KEY_WAITING_BYTES = 64 * MIB;
const TENANT_WAITING_BYTES = 96 * MIB;
const TOTAL_WAITING_BYTES = 128 * MIB;
/**
 * Length from which memory is reserved for the texts of one memory, in UTF-16 code units. Over the 10,000 connections
 * of `OM_MAX_CONNECTIONS` shorter texts take at most 160 MiB.
 */
const LONG_CHARACTERS = 8 * 1024;
/**
 * Memory of a reply whose values are still being gathered: up to `GATHERED_BYTES` need no place, and each place has 16
 * times as much as the one before, up to `MOST_GATHERED_BYTES`, so that small replies do not wait for large ones.
 */
const GATHERED_BYTES = 32 * 1024;
const GROWTH = 16;
const MOST_GATHERED_BYTES = 8 * MIB;
/** Longest time for which a large reply waits until memory is free (ms). */
const WAIT_MS = 5_000;

interface Waiting {
  readonly owner: Owner;
  readonly bytes: number;
  readonly enter: () => void;
}

/**
 * Limits the memory that large replies take in this process. The memory of a reply is taken until its client has read
 * the reply. Meanwhile other large replies to the same key may have to wait, and are refused after 5 s. So no key can
 * fill the memory with replies that nobody reads.
 */
export class ReplyPlaces {
  readonly #held = new OwnedBytes();
  readonly #waiting = new OwnedBytes();
  #queue: Waiting[] = [];

  /**
   * Memory of the large replies that are being sent (`held`) and of those that wait to be sent (`waiting`), in bytes.
   */
  get bytes(): { readonly held: number; readonly waiting: number } {
    return { held: this.#held.total, waiting: this.#waiting.total };
  }

  /**
   * Reserves memory for a large reply, and waits until it is free. One key may hold 32 MiB, the
   * keys of one tenant 64 MiB, and all keys together 128 MiB. A key that holds none gets memory for one reply until all
   * keys together hold 256 MiB, within the share of its tenant.
   * @param bytes memory that the reply takes
   * @returns a function that releases the memory; further calls of it do nothing
   * @throws EngineError `unavailable` with `retryAfterMs` if too many replies wait already, or after `waitMs`
   */
  async enter(owner: Owner, bytes: number, waitMs: number = WAIT_MS): Promise<() => void> {
    if (!this.#hasRoom(owner, bytes)) await this.#wait(owner, bytes, waitMs);
    else this.#held.add(owner, bytes);
    let isIn = true;
    return () => {
      if (isIn) this.#leave(owner, bytes);
      isIn = false;
    };
  }

  #hasRoom(owner: Owner, bytes: number): boolean {
    const held = this.#held.of(owner);
    if (held.tenant > 0 && held.tenant + bytes > TENANT_BYTES) return false;
    if (held.key === 0) return this.#held.total < FULL_BYTES;
    return held.key + bytes <= KEY_BYTES && this.#held.total + bytes <= TOTAL_BYTES;
  }

  #wait(owner: Owner, bytes: number, waitMs: number): Promise<void> {
    const waits = this.#waiting.of(owner);
    if (waits.key + bytes > KEY_WAITING_BYTES || waits.tenant + bytes > TENANT_WAITING_BYTES) throw refused();
    if (this.#waiting.total + bytes > TOTAL_WAITING_BYTES) throw refused();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiting: Waiting = { owner, bytes, enter: resolve };
    this.#queue.push(waiting);
    this.#waiting.add(owner, bytes);
    const timer = setTimeout(() => {
      this.#queue = this.#queue.filter((other) => other !== waiting);
      this.#waiting.add(owner, -bytes);
      reject(refused());
    }, waitMs);
    return promise.finally(() => clearTimeout(timer));
  }

  #leave(owner: Owner, bytes: number): void {
    this.#held.add(owner, -bytes);
    this.#queue = this.#queue.filter((next) => {
      if (!this.#hasRoom(next.owner, next.bytes)) return true;
      this.#waiting.add(next.owner, -next.bytes);
      this.#held.add(next.owner, next.bytes);
      next.enter();
      return false;
    });
  }
}

/** The one `ReplyPlaces` of this process, which all its requests share. */
export const replyPlaces = new ReplyPlaces();

/**
 * Reserves memory for what a reply holds, or is made of, among all large replies of the process, until it has been sent
 * or its client has left. If there is none, it waits.
 * @throws EngineError `unavailable` if no memory became free in time
 */
export async function takeReplyPlace({ principal, response }: TenantCall, bytes: number): Promise<void> {
  const leave = await replyPlaces.enter(principal, bytes);
  response.once('close', leave);
  if (response.destroyed) leave();
  requireClient(response);
}

/**
 * Reserves memory as `takeReplyPlace` does for the texts of one memory, 2 bytes for each UTF-16 code unit. Short texts
 * need none.
 * @returns whether memory was reserved
 * @throws EngineError `unavailable` if no memory became free in time
 */
export async function takePlaceOfTexts(call: TenantCall, characters: number): Promise<boolean> {
  if (characters < LONG_CHARACTERS) return false;
  await takeReplyPlace(call, 2 * characters);
  return true;
}

/**
 * Makes the place of a reply whose values are gathered before it is sent. The returned function reserves memory for
 * them; it is called with the bytes of all of them as they grow. A place that becomes too small is given back before a
 * larger one is taken: if all kept theirs, each could wait for the others.
 * @throws EngineError `unavailable` (the returned function) if no memory became free in time, or the client left
 */
export function growingPlace({ principal, response }: TenantCall): (bytes: number) => Promise<void> {
  let [held, leave] = [GATHERED_BYTES, () => {}];
  response.once('close', () => leave());
  return async (bytes) => {
    requireClient(response);
    if (bytes <= held) return;
    leave();
    held = Math.max(bytes, Math.min(GROWTH * held, MOST_GATHERED_BYTES));
    leave = await replyPlaces.enter(principal, held);
    if (response.destroyed) leave();
    requireClient(response);
  };
}

function refused(): EngineError {
  return new EngineError(
    'unavailable',
    'large replies to this key, or of its tenant, are not read: read them to their end, or close them',
    {
      retryAfterMs: 1_000,
    },
  );
}

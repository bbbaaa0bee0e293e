import { EngineError } from '../engine/index.ts';
import { addTo, type ByteShare } from './byte-share.ts';
import { requireClient } from './room-in.ts';
import type { TenantCall } from './route.ts';

const MIB = 1024 * 1024;
/**
 * Greatest memory that large replies being sent may take for one API key (bytes); `TOTAL_BYTES` is the limit for all
 * keys together.
 */
const KEY_BYTES = 32 * MIB;
const TOTAL_BYTES = 128 * MIB;
/**
 * If the large replies being sent take this much memory (bytes), every further large reply waits, even to a key that
 * has no other one.
 */
const FULL_BYTES = 256 * MIB;
/**
 * Greatest memory of the large replies that wait to be sent, for one API key (bytes); `TOTAL_WAITING_BYTES` is the
 * limit for all keys together. Further replies are refused.
 */
const KEY_WAITING_BYTES = 64 * MIB;
const TOTAL_WAITING_BYTES = 128 * MIB;
/** Longest time for which a large reply waits until memory is free (ms). */
const WAIT_MS = 5_000;

interface Waiting {
  readonly key: string;
  readonly bytes: number;
  readonly enter: () => void;
}

/**
 * Limits the memory that large replies take in this process. The memory of a reply is taken until its client has read
 * the reply. Meanwhile other large replies to the same key may have to wait, and are refused after 5 s. So no key can
 * fill the memory with replies that nobody reads.
 */
export class ReplyPlaces {
  readonly #held: ByteShare = { ofKey: new Map(), total: 0 };
  readonly #waiting: ByteShare = { ofKey: new Map(), total: 0 };
  #queue: Waiting[] = [];

  /**
   * Memory of the large replies that are being sent (`held`) and of those that wait to be sent (`waiting`), in bytes.
   */
  get bytes(): { readonly held: number; readonly waiting: number } {
    return { held: this.#held.total, waiting: this.#waiting.total };
  }

  /**
   * Reserves memory for a large reply, and waits until it is free. One key may hold 32 MiB, and all keys together 128
   * MiB. A key that holds none gets memory for one reply until all keys together hold 256 MiB.
   * @param key text that identifies the API key to which the reply is sent
   * @param bytes memory that the reply takes
   * @returns a function that releases the memory; further calls of it do nothing
   * @throws EngineError `unavailable` with `retryAfterMs` if too many replies wait already, or after `waitMs`
   */
  async enter(key: string, bytes: number, waitMs: number = WAIT_MS): Promise<() => void> {
    if (!this.#hasRoom(key, bytes)) await this.#wait(key, bytes, waitMs);
    else addTo(this.#held, key, bytes);
    let isIn = true;
    return () => {
      if (isIn) this.#leave(key, bytes);
      isIn = false;
    };
  }

  #hasRoom(key: string, bytes: number): boolean {
    const own = this.#held.ofKey.get(key) ?? 0;
    if (own === 0) return this.#held.total < FULL_BYTES;
    return own + bytes <= KEY_BYTES && this.#held.total + bytes <= TOTAL_BYTES;
  }

  #wait(key: string, bytes: number, waitMs: number): Promise<void> {
    const own = this.#waiting.ofKey.get(key) ?? 0;
    if (own + bytes > KEY_WAITING_BYTES || this.#waiting.total + bytes > TOTAL_WAITING_BYTES) throw refused();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiting: Waiting = { key, bytes, enter: resolve };
    this.#queue.push(waiting);
    addTo(this.#waiting, key, bytes);
    const timer = setTimeout(() => {
      this.#queue = this.#queue.filter((other) => other !== waiting);
      addTo(this.#waiting, key, -bytes);
      reject(refused());
    }, waitMs);
    return promise.finally(() => clearTimeout(timer));
  }

  #leave(key: string, bytes: number): void {
    addTo(this.#held, key, -bytes);
    this.#queue = this.#queue.filter((next) => {
      if (!this.#hasRoom(next.key, next.bytes)) return true;
      addTo(this.#waiting, next.key, -next.bytes);
      addTo(this.#held, next.key, next.bytes);
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
  const leave = await replyPlaces.enter(`${principal.tenantId} ${principal.keyId}`, bytes);
  response.once('close', leave);
  if (response.destroyed) leave();
  requireClient(response);
}

function refused(): EngineError {
  return new EngineError(
    'unavailable',
    'large replies to this key are not read: read them to their end, or close them',
    {
      retryAfterMs: 1_000,
    },
  );
}

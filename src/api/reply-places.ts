import type { Response } from 'express';
import type { EngineError } from '../engine/index.ts';
import { OwnedBytes, type Owner } from './byte-share.ts';
import { clientLeftError, requireClient } from './await-drain.ts';
import type { TenantCall } from './route.ts';
import { withoutStack } from './without-stack.ts';

const MIB = 1024 * 1024;
/**
 * Greatest memory that large replies being sent may take for one API key (bytes); `TOTAL_BYTES` is the limit for all
 * keys together. A key that holds none may exceed both with one reply.
 */
const KEY_BYTES = 32 * MIB;
/**
 * Greatest memory that large replies being sent may take for all keys of one tenant together (bytes), since a tenant
 * may make a thousand keys. A tenant that holds none gets memory for one reply, however large, as long as all keys
 * together hold less than `FULL_BYTES`.
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
 * Memory of a reply whose values are still being gathered (bytes): up to `GATHERED_BYTES` need no place. Each further
 * place has `GROWTH` times as much as the one before, but at most `GROWTH_BYTES` more, so that a reply of 2 MiB takes
 * no more than 2 MiB from the share of its key.
 */
const GATHERED_BYTES = 32 * 1024;
const GROWTH = 4;
const GROWTH_BYTES = 2 * MIB;
/** Longest time for which a large reply waits until memory is free (ms). */
const WAIT_MS = 5_000;

interface WaitOptions {
  readonly waitMs?: number;
  readonly response?: Response;
}

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
  /** Replies that wait, the longest waiting first. */
  readonly #queue = new Set<Waiting>();
  /** Whether memory was freed since those that wait were looked at. */
  #isFreed = false;

  /**
   * Memory of the large replies that are being sent (`held`) and of those that wait to be sent (`waiting`), in bytes.
   */
  get bytes(): { readonly held: number; readonly waiting: number } {
    return { held: this.#held.total, waiting: this.#waiting.total };
  }

  /**
   * Reserves memory for a large reply, and waits until it is free. One key may hold 32 MiB, the keys of one tenant 64
   * MiB, and all keys together 128 MiB. A key that holds none gets memory for one reply, however large, unless all keys
   * together hold 256 MiB already or its tenant holds some and would exceed its share.
   * @param bytes memory that the reply takes
   * @param options `waitMs` is the longest wait. `response` is the reply: the wait ends if its client leaves
   * @returns a function that releases the memory; further calls of it do nothing
   * @throws EngineError `unavailable` with `retryAfterMs` if too many replies wait already, or after `waitMs`;
   *   `unavailable` if the client leaves
   */
  async enter(owner: Owner, bytes: number, options: WaitOptions = {}): Promise<() => void> {
    this.#admitWaiting();
    if (this.#hasRoom(owner, bytes)) return this.take(owner, bytes);
    await this.#wait(owner, bytes, options);
    return this.#leaveOnce(owner, bytes);
  }

  /** Reserves memory as `enter` does, but at once, even beyond the limits. */
  take(owner: Owner, bytes: number): () => void {
    this.#held.add(owner, bytes);
    return this.#leaveOnce(owner, bytes);
  }

  #leaveOnce(owner: Owner, bytes: number): () => void {
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

  #wait(owner: Owner, bytes: number, { waitMs = WAIT_MS, response }: WaitOptions): Promise<void> {
    if (response !== undefined) requireClient(response);
    const waits = this.#waiting.of(owner);
    if (waits.key + bytes > KEY_WAITING_BYTES || waits.tenant + bytes > TENANT_WAITING_BYTES) throw refused();
    if (this.#waiting.total + bytes > TOTAL_WAITING_BYTES) throw refused();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiting: Waiting = { owner, bytes, enter: resolve };
    this.#queue.add(waiting);
    this.#waiting.add(owner, bytes);
    const giveUp = (problem: () => EngineError) => {
      if (!this.#queue.delete(waiting)) return;
      this.#waiting.add(owner, -bytes);
      reject(problem());
    };
    const timer = setTimeout(() => giveUp(refused), waitMs);
    const onClose = () => giveUp(clientLeftError);
    response?.once('close', onClose);
    return promise.finally(() => {
      clearTimeout(timer);
      response?.off('close', onClose);
    });
  }

  /**
   * Frees memory. Thousands of replies may be closed in one turn of the event loop, so those that wait are looked at
   * after it, or before the next reply asks for memory.
   */
  #leave(owner: Owner, bytes: number): void {
    this.#held.add(owner, -bytes);
    if (this.#isFreed || this.#queue.size === 0) return;
    this.#isFreed = true;
    setImmediate(() => this.#admitWaiting());
  }

  #admitWaiting(): void {
    if (!this.#isFreed) return;
    this.#isFreed = false;
    for (const next of this.#queue) {
      if (!this.#hasRoom(next.owner, next.bytes)) continue;
      this.#queue.delete(next);
      this.#waiting.add(next.owner, -next.bytes);
      this.#held.add(next.owner, next.bytes);
      next.enter();
    }
  }
}

/** Limits the memory of large replies to reads, for all requests of the process; replies to writes: `writePlaces`. */
export const replyPlaces = new ReplyPlaces();

/**
 * The `ReplyPlaces` of the answers to writes, which have limits of their own: a client that leaves the answers to its
 * reads unread holds up no write.
 */
export const writePlaces = new ReplyPlaces();

/**
 * Reserves memory for what a reply holds, or is made of, among all large replies of the process, until it has been sent
 * or its client has left. If too much is taken, it waits up to 5 s.
 * @param bytes memory that is reserved
 * @throws EngineError `unavailable` if no memory became free in time, or the client left
 */
export async function takeReplyPlace(call: TenantCall, bytes: number, places = replyPlaces): Promise<void> {
  const { principal, response } = call;
  const leave = await places.enter(principal, bytes, { response });
  response.once('close', leave);
  if (response.destroyed) leave();
  requireClient(response);
}

/**
 * Reserves memory as `takeReplyPlace` does for the texts of one memory, 2 bytes for each UTF-16 code unit. Short texts
 * need none.
 * @param places where it is reserved: `replyPlaces` for a read, `writePlaces` for the answer to a write
 * @throws EngineError `unavailable` if no memory became free in time, or the client left
 */
export async function takePlaceOfTexts(call: TenantCall, characters: number, places = replyPlaces): Promise<void> {
  if (characters >= LONG_CHARACTERS) await takeReplyPlace(call, 2 * characters, places);
}

/** Memory that is reserved, among all large replies, for a reply whose values are gathered before it is sent. */
export interface GrowingPlace {
  /**
   * Reserves memory for the values that were gathered so far, if more is needed than is reserved.
   * @param bytes memory of all of them
   * @throws EngineError `unavailable` if no memory became free in time, or the client left
   */
  readonly hold: (bytes: number) => Promise<void>;
  /** Reserves exactly the memory of the complete reply (bytes). It waits for nothing, even beyond the limits. */
  readonly settle: (bytes: number) => void;
}

/**
 * Makes what reserves memory for a reply while its values are gathered, which is given back when the reply has been
 * sent or its client has left. Memory that becomes too small is given back before more is reserved: if all replies kept
 * theirs, each could wait for the others.
 */
export function growingPlace({ principal, response }: TenantCall): GrowingPlace {
  let [held, leave] = [GATHERED_BYTES, () => {}];
  response.once('close', () => leave());
  return {
    async hold(bytes) {
      requireClient(response);
      if (bytes <= held) return;
      leave();
      held = Math.max(bytes, Math.min(GROWTH * held, held + GROWTH_BYTES));
      leave = await replyPlaces.enter(principal, held, { response });
      if (response.destroyed) leave();
      requireClient(response);
    },
    settle(bytes) {
      const leaveFormer = leave;
      held = Math.max(bytes, GATHERED_BYTES);
      leave = bytes > GATHERED_BYTES && !response.destroyed ? replyPlaces.take(principal, bytes) : () => {};
      leaveFormer();
    },
  };
}

function refused(): EngineError {
  return withoutStack(
    'unavailable',
    'large replies to this key, or of its tenant, are not read: read them to their end, or close them',
    { retryAfterMs: 1_000 },
  );
}

import { EngineError } from '../engine/index.ts';

const MIB = 1024 * 1024;
/** Memory that the large replies under way may hold, in bytes: of one key, and of all keys together. */
const KEY_BYTES = 32 * MIB;
const TOTAL_BYTES = 128 * MIB;
/** Memory of replies under way from which on also the first reply of a key waits, in bytes. */
const FULL_BYTES = 256 * MIB;
/** Memory that the large replies may hold that wait for a place, in bytes: of one key, and of all keys together. */
const KEY_WAITING_BYTES = 64 * MIB;
const TOTAL_WAITING_BYTES = 128 * MIB;
/** Longest time for which a large reply waits for a place (ms). */
const WAIT_MS = 5_000;

/** Bytes of replies: of each key, and of all keys. */
interface Share {
  readonly ofKey: Map<string, number>;
  total: number;
}

interface Waiting {
  readonly key: string;
  readonly bytes: number;
  readonly enter: () => void;
}

/**
 * The memory that large replies hold in this process. A client that reads slowly keeps its reply's memory; others of
 * its key then wait, and are refused after a while, so that no key can fill the memory with replies that nobody reads.
 */
class ReplyPlaces {
  readonly #held: Share = { ofKey: new Map(), total: 0 };
  readonly #waiting: Share = { ofKey: new Map(), total: 0 };
  #queue: Waiting[] = [];

  /** Memory of the replies under way, and of those that wait, in bytes. */
  get bytes(): { readonly held: number; readonly waiting: number } {
    return { held: this.#held.total, waiting: this.#waiting.total };
  }

  /**
   * Takes the memory of a reply, as soon as there is room for it. A key without any reply has room until many keys
   * leave theirs unread.
   * @param key whose reply it is
   * @returns a function that gives the memory back; calling it again does nothing
   * @throws EngineError `unavailable` with `retryAfterMs` if too many replies wait, or after `waitMs`
   */
  async enter(key: string, bytes: number, waitMs: number = WAIT_MS): Promise<() => void> {
    if (!this.#hasRoom(key, bytes)) await this.#wait(key, bytes, waitMs);
    else add(this.#held, key, bytes);
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
    add(this.#waiting, key, bytes);
    const timer = setTimeout(() => {
      this.#queue = this.#queue.filter((other) => other !== waiting);
      add(this.#waiting, key, -bytes);
      reject(refused());
    }, waitMs);
    return promise.finally(() => clearTimeout(timer));
  }

  #leave(key: string, bytes: number): void {
    add(this.#held, key, -bytes);
    this.#queue = this.#queue.filter((next) => {
      if (!this.#hasRoom(next.key, next.bytes)) return true;
      add(this.#waiting, next.key, -next.bytes);
      add(this.#held, next.key, next.bytes);
      next.enter();
      return false;
    });
  }
}

/** The places of this process. */
export const replyPlaces = new ReplyPlaces();

function add(share: Share, key: string, bytes: number): void {
  const own = (share.ofKey.get(key) ?? 0) + bytes;
  if (own === 0) share.ofKey.delete(key);
  else share.ofKey.set(key, own);
  share.total += bytes;
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

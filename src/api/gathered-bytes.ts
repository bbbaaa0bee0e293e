import { inOwnMemory } from '../engine/index.ts';

/**
 * Empty buffer that all objects share which have gathered nothing, since even an empty buffer takes some time to make.
 */
const NOTHING = Buffer.alloc(0);
/** Smallest memory that is taken for pieces that are put together (bytes), so that single bytes grow it seldom. */
const MIN_BYTES = 256;

/**
 * Bytes that arrive in pieces and are wanted as one buffer. A list of the pieces would take about 200 bytes for each of
 * them, so that a client which sends single bytes could fill the memory with a short text.
 */
export class GatheredBytes {
  /**
   * The first piece itself or a copy of it, or a buffer of at most twice the bytes that were gathered, or of 256. It is
   * never a part of Node's pool, of which a few bytes keep 64 KiB from being freed.
   */
  #bytes: Buffer = NOTHING;
  #size = 0;

  /** Number of bytes that were added since the last `take`. */
  get size(): number {
    return this.#size;
  }

  /**
   * Adds a piece at the end. The first piece is kept without a copy if it is at least half of the memory that it is
   * part of, so its bytes must not change until `take`; a smaller part would keep the whole from being freed.
   */
  add(piece: Buffer): void {
    const size = this.#size + piece.length;
    if (this.#size === 0) this.#bytes = inOwnMemory(piece);
    else {
      if (size > this.#bytes.length) {
        const larger = Buffer.allocUnsafeSlow(Math.max(MIN_BYTES, 2 * size));
        this.#bytes.copy(larger, 0, 0, this.#size);
        this.#bytes = larger;
      }
      piece.copy(this.#bytes, this.#size);
    }
    this.#size = size;
  }

  /** Returns all gathered bytes and forgets them, so that gathering begins anew. */
  take(): Buffer {
    const whole = this.#size === this.#bytes.length ? this.#bytes : this.#bytes.subarray(0, this.#size);
    this.#bytes = NOTHING;
    this.#size = 0;
    return whole;
  }
}

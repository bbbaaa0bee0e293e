/** Collects the messages of the server's replies. */

/** Size of the header of each message: its type and its length, bytes. */
export const HEADER = 5;
/** Type of the message that ends a reply (ReadyForQuery). */
const READY = 0x5a;

/** Size of a new buffer, in bytes. */
const FIRST_BYTES = 65_536;
/** Size beyond which a buffer is replaced by a new one once it is empty, in bytes. */
const KEPT_BYTES = 4_194_304;
/** Least room for a read, in bytes; a buffer with less becomes larger. */
const LEAST_ROOM = 4_096;

/** A buffer that collects replies, one after the other. */
export class ReplyBuffer {
  #bytes = Buffer.allocUnsafeSlow(FIRST_BYTES);
  /** Offset after the last whole message that `isComplete` has looked at. */
  #read = 0;
  /** Offset after all bytes that came. */
  #filled = 0;
  #isComplete = false;

  /** Returns the part of the buffer into which the next bytes are read. Tell `filled` how many came. */
  room(): Buffer {
    if (this.#bytes.length - this.#filled < LEAST_ROOM) this.#grow(2 * this.#bytes.length);
    return this.#bytes.subarray(this.#filled);
  }

  /**
   * Takes note of bytes that were written into the room.
   * @returns whether a reply is complete, which `take` then returns
   */
  filled(count: number): boolean {
    this.#filled += count;
    return this.isComplete();
  }

  /** Adds a copy of bytes. Returns whether a reply is complete. */
  append(bytes: Uint8Array): boolean {
    if (this.#filled + bytes.length > this.#bytes.length)
      this.#grow(Math.max(2 * this.#bytes.length, this.#filled + bytes.length));
    this.#bytes.set(bytes, this.#filled);
    return this.filled(bytes.length);
  }

  /** Tells whether the bytes that came hold a whole reply. */
  isComplete(): boolean {
    while (!this.#isComplete && this.#read + HEADER <= this.#filled) {
      const end = this.#read + 1 + this.#bytes.readUInt32BE(this.#read + 1);
      if (end > this.#filled) return false;
      this.#isComplete = this.#bytes[this.#read] === READY;
      this.#read = end;
    }
    return this.#isComplete;
  }

  /** Returns a copy of the messages of the complete reply, or of those that came so far, and begins the next reply. */
  take(): Uint8Array<ArrayBuffer> {
    const reply = new Uint8Array(this.#bytes.buffer.slice(0, this.#read));
    this.#bytes.copyWithin(0, this.#read, this.#filled);
    this.#filled -= this.#read;
    this.#read = 0;
    this.#isComplete = false;
    if (this.#filled === 0 && this.#bytes.length > KEPT_BYTES) this.#bytes = Buffer.allocUnsafeSlow(FIRST_BYTES);
    return reply;
  }

  #grow(size: number): void {
    const larger = Buffer.allocUnsafeSlow(size);
    this.#bytes.copy(larger, 0, 0, this.#filled);
    this.#bytes = larger;
  }
}

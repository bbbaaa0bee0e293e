import { IncomingMessage } from 'node:http';
import { readInTurn } from '../engine/index.ts';

/** Length below which a piece of a body is short, in bytes. */
const SHORT_BYTES = 1024;
/**
 * Number of short pieces in one turn of the event loop from which the connection waits for a turn before it is read
 * again. With fewer, a read costs about as much as one of a body without pieces.
 */
const MANY_PIECES = 256;

/**
 * A request whose body may arrive in short pieces. A client that sends each byte as a chunk of its own (chunked
 * transfer encoding) makes Node call JavaScript 11,000 times for one read of a connection, and Node reads a connection
 * up to 32 times in one turn of the event loop. A few such clients, with or without a key, would hold up all others.
 * Therefore short pieces that arrive together are passed on as one piece. If there were many, the connection is read
 * again only when its turn comes, among all connections of this kind. (`parse-in-turns.ts` bounds what is parsed in one
 * turn of all connections together.)
 */
export class PacedRequest extends IncomingMessage {
  /** Short pieces that arrived in this turn and were not passed on yet. */
  #held: Buffer[] = [];
  /** Number of short pieces that arrived in this turn. */
  #pieces = 0;
  #hasBegun = false;
  /** Whether this turn had many pieces, so that the next read waits for its turn. */
  #hasMany = false;
  /** Whether the request was answered, so that what is left of its body is of no use. */
  #isDumped = false;

  /**
   * Passes a piece of the body on; a short one is held until the end of the present turn of the event loop, to be
   * passed on together with others. Node calls this for each piece, and with null at the end of the body. Returns false
   * to make Node stop reading.
   */
  override push(piece: Buffer | null): boolean {
    // The first piece goes straight on, as most bodies have no other.
    if (piece === null || piece.length >= SHORT_BYTES || !this.#hasBegun) {
      this.#hasBegun = true;
      this.#passOn();
      const waits = this.#hasMany;
      if (piece === null && waits) this.#holdConnection();
      return super.push(piece) && !waits;
    }
    this.#pieces += 1;
    if (this.#pieces === 1) {
      setImmediate(() => {
        this.#pieces = 0;
        this.#passOn();
      });
    }
    if (this.#held.length === 0 || !this.#isDumped) this.#held.push(piece);
    if (this.#pieces >= MANY_PIECES) this.#hasMany = true;
    return !this.#hasMany;
  }

  /**
   * Reads on from the connection: at once, or, after many short pieces in one turn, when its turn comes. Node calls
   * this when somebody wants more of the body.
   */
  override _read(size: number): void {
    if (!this.#hasMany) return super._read(size);
    this.#hasMany = false;
    readInTurn(() => {
      if (!this.destroyed) super._read(size);
    });
  }

  /**
   * Drops the rest of the body. Node calls this for a request that was answered and whose body nobody reads. Node's own
   * method would drop the pieces before `push` could count them.
   */
  _dump(): void {
    if (this.#isDumped) return;
    this.#isDumped = true;
    this.removeAllListeners('data');
    this.resume();
  }

  /** Makes the connection wait for its turn. At the end of a body Node reads on at once, so it is paused after that. */
  #holdConnection(): void {
    const { socket } = this;
    this.#hasMany = false;
    queueMicrotask(() => socket.pause());
    readInTurn(() => {
      if (!socket.destroyed) socket.resume();
    });
  }

  /** Passes on the pieces that are held, and stops reading while nobody takes them. */
  #passOn(): void {
    if (this.#held.length === 0) return;
    const held = this.#held;
    this.#held = [];
    if (!super.push(held.length === 1 ? held[0] : Buffer.concat(held))) this.socket.pause();
  }
}

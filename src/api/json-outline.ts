import { randomUUID } from 'node:crypto';
import { EngineError } from '../engine/index.ts';

/** Fields of a document whose strings are left in the body, as they may be as long as the document. */
const LONG_FIELDS: ReadonlySet<string> = new Set(['data', 'text']);
/** Containers around a document's fields: the document itself, or the list of a batch. */
const DOCUMENT_PATHS: ReadonlySet<string> = new Set(['{', '{[{']);
/** Deepest nesting that is looked at; every schema allows less. */
const MAX_DEPTH = 256;

const [QUOTE, BACKSLASH, COLON, COMMA] = [0x22, 0x5c, 0x3a, 0x2c];
const [OPEN_OBJECT, CLOSE_OBJECT, OPEN_LIST, CLOSE_LIST] = [0x7b, 0x7d, 0x5b, 0x5d];

/** Place of a JSON string in a body, without its quotes, as byte offsets. */
export interface StringPlace {
  readonly start: number;
  readonly end: number;
}

/**
 * Takes the long strings of a document out of a JSON body while it arrives: what is left is a short JSON text, in which
 * each of them is replaced by a name. The body is never held in memory, and the outline says nothing about whether it
 * is well-formed: parsing what is left does.
 */
export class JsonOutline {
  /** Place of each string that was taken out, by the name that stands for it. */
  readonly places = new Map<string, StringPlace>();
  readonly #maxBytes: number;
  /** Nobody can write such a name into a body, since it is made anew for each. */
  readonly #name = randomUUID();
  readonly #rest: Buffer[] = [];
  #restBytes = 0;
  /** Bytes of the body before the chunk at hand. */
  #offset = 0;
  /** The containers that are open, from outside in, as a text of `{` and `[`. */
  #path = '';
  #inString = false;
  #isEscaped = false;
  /** Where the string began that is being left out, behind its quote; -1 if none is. */
  #leftOutFrom = -1;
  /** The bytes of the string at hand, as long as it may be a name of a field. */
  #key = '';
  #lastKey = '';
  /** Whether a value follows, rather than the name of a field. */
  #isValue = true;

  /** @param maxBytes most bytes of what is left of the body */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Takes the next bytes of the body. @throws EngineError `too_large`; `invalid` for values nested too deep */
  push(chunk: Buffer): void {
    let from = 0;
    let at = 0;
    while (at < chunk.length) {
      if (this.#inString) {
        at = this.#throughString(chunk, at);
        if (this.#inString) break;
        if (this.#leftOutFrom !== -1) {
          this.#takeOut(this.#offset + at - 1);
          from = at - 1;
        }
        continue;
      }
      const byte = chunk[at++]!;
      if (byte === QUOTE) {
        this.#inString = true;
        this.#key = '';
        if (this.#isValue && LONG_FIELDS.has(this.#lastKey) && DOCUMENT_PATHS.has(this.#path)) {
          this.#leftOutFrom = this.#offset + at;
          this.#keep(chunk.subarray(from, at));
          from = chunk.length;
        }
      } else this.#step(byte);
    }
    if (this.#leftOutFrom === -1) this.#keep(chunk.subarray(from));
    this.#offset += chunk.length;
  }

  /** Returns the JSON text that is left, once the whole body was taken. */
  rest(): Buffer {
    return Buffer.concat(this.#rest, this.#restBytes);
  }

  /**
   * Moves to the end of a string, or of the chunk. The bytes are looked at one by one: searches for quotes and
   * backslashes take forty times as long where a text is full of them.
   * @returns the offset behind the closing quote
   */
  #throughString(chunk: Buffer, start: number): number {
    let isEscaped = this.#isEscaped;
    let at = start;
    for (; at < chunk.length; at++) {
      const byte = chunk[at];
      if (isEscaped) isEscaped = false;
      else if (byte === BACKSLASH) isEscaped = true;
      else if (byte === QUOTE) break;
    }
    this.#isEscaped = isEscaped;
    if (this.#leftOutFrom === -1 && this.#key.length < 16)
      this.#key += chunk.toString('latin1', start, Math.min(at, start + 16));
    if (at === chunk.length) return at;
    this.#inString = false;
    return at + 1;
  }

  /** Reads a byte outside of strings. */
  #step(byte: number): void {
    if (byte === OPEN_OBJECT || byte === OPEN_LIST) {
      this.#path += byte === OPEN_OBJECT ? '{' : '[';
      this.#lastKey = '';
      if (this.#path.length > MAX_DEPTH) throw new EngineError('invalid', 'the body is nested too deep');
    } else if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) this.#path = this.#path.slice(0, -1);
    else if (byte === COLON) {
      this.#lastKey = this.#key;
      this.#isValue = true;
      return;
    }
    if (byte === OPEN_OBJECT || byte === COMMA) this.#isValue = !this.#path.endsWith('{');
    else if (byte === OPEN_LIST) this.#isValue = true;
    if (byte === COMMA) this.#lastKey = '';
  }

  #takeOut(end: number): void {
    const name = `${this.#name} ${this.places.size}`;
    this.places.set(name, { start: this.#leftOutFrom, end });
    this.#leftOutFrom = -1;
    this.#keep(Buffer.from(name));
  }

  #keep(bytes: Buffer): void {
    this.#restBytes += bytes.length;
    if (this.#restBytes > this.#maxBytes) {
      throw new EngineError('too_large', `the body is over ${this.#maxBytes} bytes beside its data and text`);
    }
    if (bytes.length > 0) this.#rest.push(Buffer.from(bytes));
  }
}

import { randomUUID } from 'node:crypto';
import { EngineError } from '../engine/index.ts';
import { GatheredBytes } from './gathered-bytes.ts';

/**
 * Names of the fields whose strings are taken out of the JSON of a document, since they may be as long as the document.
 */
const LONG_FIELDS: ReadonlySet<string> = new Set(['data', 'text']);
/**
 * Length from which such a string is taken out (bytes). A shorter one stays in the outline: reading it from the file of
 * the body would cost more than its memory, and a batch may have 100 of them.
 */
export const LONG_BYTES = 1024;
/**
 * The two positions at which fields of a document may stand, each written as the brackets that are open there: `{` is
 * the body itself, `{[{` is an object in a list of the body (a batch of documents).
 */
const DOCUMENT_PATHS: ReadonlySet<string> = new Set(['{', '{[{']);
/** Deepest nesting that is accepted in the body of a document; every schema of such a body allows less. */
const MAX_DEPTH = 256;

const [QUOTE, BACKSLASH, COLON, COMMA] = [0x22, 0x5c, 0x3a, 0x2c];
const [OPEN_OBJECT, CLOSE_OBJECT, OPEN_LIST, CLOSE_LIST] = [0x7b, 0x7d, 0x5b, 0x5d];

/** Start and end of a JSON string in a body, without its quotes, as byte offsets; `end` is exclusive. */
export interface StringPlace {
  readonly start: number;
  readonly end: number;
}

/**
 * Takes the long strings of documents (`data`, `text`, from 1 KiB) out of a JSON body while the body arrives, so that
 * the body is never held in memory. The outline is the short JSON text that is left; a short placeholder stands in it
 * for each long string. Whether the body is well-formed JSON is found out later, when the outline is parsed.
 */
export class JsonOutline {
  /**
   * Position in the body of each string that was taken out, by the placeholder that replaces the string in the outline.
   */
  readonly places = new Map<string, StringPlace>();
  readonly #maxBytes: number;
  readonly #hold: (bytes: number) => void;
  /**
   * Prefix of the placeholders. It is random for each body, so that no client can write such a placeholder into a body.
   */
  readonly #name = randomUUID();
  readonly #rest = new GatheredBytes();
  /** Number of bytes of the body before the present chunk. */
  #offset = 0;
  /** The open brackets, the outermost first, as a text of `{` and `[`. */
  #path = '';
  #inString = false;
  #isEscaped = false;
  /**
   * Offset in the body of the first byte after the opening quote of the string that is being taken out; -1 if none is.
   */
  #leftOutFrom = -1;
  /** Bytes of that string in the chunks before the present one; none once it is long. */
  readonly #short = new GatheredBytes();
  /** First bytes, at most 31, of the string that was read last or is being read: it may be the name of a field. */
  #key = '';
  #lastKey = '';
  /** True if the next string is a value; false if it is the name of a field. */
  #isValue = true;

  /**
   * Makes the outline of a body that has not arrived yet.
   * @param maxBytes greatest size of the outline in bytes, without the long strings; `push` throws beyond it
   * @param hold called each time bytes are added to the outline, with its whole size in bytes; `push` throws what it
   *   throws
   */
  constructor(maxBytes: number, hold: (bytes: number) => void = () => {}) {
    this.#maxBytes = maxBytes;
    this.#hold = hold;
  }

  /**
   * Processes the next bytes of the body.
   * @throws EngineError `too_large` if the outline exceeds its bound; `invalid` for more than 256 levels of nesting
   */
  push(chunk: Buffer): void {
    let from = 0;
    let at = 0;
    while (at < chunk.length) {
      if (this.#inString) {
        at = this.#throughString(chunk, at);
        if (this.#inString) break;
        if (this.#leftOutFrom !== -1) from = this.#endLong(at - 1);
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
    else if (this.#offset + chunk.length - this.#leftOutFrom >= LONG_BYTES) this.#short.take();
    else this.#short.add(chunk.subarray(Math.max(0, this.#leftOutFrom - this.#offset)));
    this.#offset += chunk.length;
  }

  /**
   * Returns the outline: the JSON text of the body, with placeholders for the long strings. Call it after the whole
   * body was pushed.
   */
  rest(): Buffer {
    return this.#rest.take();
  }

  /**
   * Moves to the end of a string, or of the chunk. It reads byte by byte, since searches for quotes and backslashes
   * take forty times as long in a text that is full of them.
   * @returns the offset after the closing quote; the chunk's length if the string goes on
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

  /** Processes a byte outside of strings: tracks the open brackets, and whether a field name or a value comes next. */
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

  /**
   * Ends a string that may be long: puts a placeholder into the outline if it is, else the string itself.
   * @param end offset of its closing quote in the present chunk
   * @returns the offset in the present chunk from which bytes are still to be kept
   */
  #endLong(end: number): number {
    const place = { start: this.#leftOutFrom, end: this.#offset + end };
    const before = this.#short.take();
    this.#leftOutFrom = -1;
    if (place.end - place.start < LONG_BYTES) {
      this.#keep(before);
      return Math.max(0, place.start - this.#offset);
    }
    const name = `${this.#name} ${this.places.size}`;
    this.places.set(name, place);
    this.#keep(Buffer.from(name));
    return end;
  }

  #keep(bytes: Buffer): void {
    if (this.#rest.size + bytes.length > this.#maxBytes) {
      throw new EngineError('too_large', `the body is over ${this.#maxBytes} bytes beside its data and text`);
    }
    this.#rest.add(bytes);
    this.#hold(this.#rest.size);
  }
}

import { CliError } from './cli-error.ts';
import {
  BACKSLASH,
  COMMA,
  cutError,
  isClosing,
  LINE_FEED,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  scan,
  type Scanner,
  SPACE,
} from './json-text.ts';

/** Longest item that is held in memory, in UTF-16 code units. */
const MAX_ITEM = 64 * 1024 * 1024;

/**
 * Where a file has its items. `list`: the file is a list of items; `sequence`: they follow one another, as in lines of
 * JSON; a list of names: the items are in lists, in the fields of these names of an object.
 */
export type ItemPlace = 'list' | 'sequence' | readonly string[];

/** Description of a file for the reader of its items. */
interface ItemFile {
  readonly name: string;
  readonly place: ItemPlace;
  /** Called with a message for each item that is damaged, too long or not an object; reading goes on after it. */
  onDamage(message: string): void;
}

/**
 * Yields the items of a JSON file one by one, parsed, in bounded memory. Only brackets and strings are followed in the
 * file, and each item is then parsed by itself. Anything between two separators counts as an item, so that nothing is
 * skipped in silence.
 * @throws CliError if the text ends within an item, or has no items at all; the items before were yielded
 */
export function jsonItems(texts: AsyncIterable<string>, file: ItemFile): AsyncGenerator<object> {
  return scan(texts, new ItemScanner(file));
}

/** Follows the brackets and strings of a text that is given in pieces. */
class ItemScanner implements Scanner<object> {
  readonly #file: ItemFile;
  /** Number of brackets that are open around an item: 0 in a sequence; Infinity while no list of items is open. */
  #itemDepth: number;
  #depth = 0;
  #inString = false;
  #isEscaped = false;
  /** Text of the open item, or of the open string of the outer object, from earlier pieces; null if none is open. */
  #open: string | null = null;
  #isTooLong = false;
  /** Last string in the outer object. It is the name of the field when a list begins. */
  #field = '';
  #items = 0;
  #line = 1;
  /** Line on which the open item begins. */
  #itemLine = 1;
  #isLineStart = true;
  #isFound = false;

  constructor(file: ItemFile) {
    this.#file = file;
    this.#itemDepth = file.place === 'sequence' ? 0 : file.place === 'list' ? 1 : Infinity;
  }

  *take(text: string): Generator<object> {
    let start = 0;
    for (let at = 0; at < text.length; at += 1) {
      const code = text.charCodeAt(at);
      if (this.#inString && code !== LINE_FEED) {
        this.#followString(code);
        if (!this.#inString && this.#itemDepth === Infinity && this.#open !== null) {
          this.#field = this.#open + text.slice(start, at + 1);
          [this.#open, this.#isTooLong] = [null, false];
        }
        continue;
      }
      if (this.#open !== null && this.#endsItem(code)) {
        yield* this.#parsed(this.#open + text.slice(start, at));
        this.#open = null;
        this.#inString = false;
        if (this.#itemDepth === 0) this.#depth = 0;
      }
      if (this.#open === null && this.#begins(code)) {
        this.#open = '';
        start = at;
        this.#itemLine = this.#line;
      }
      this.#follow(code);
    }
    if (this.#open === null) return;
    if (this.#open.length + text.length - start > MAX_ITEM) [this.#isTooLong, this.#open] = [true, ''];
    if (!this.#isTooLong) this.#open += text.slice(start);
  }

  *end(): Generator<object> {
    const { name, place } = this.#file;
    const isComplete = this.#depth === this.#itemDepth && !this.#inString;
    if (this.#open !== null && isComplete) yield* this.#parsed(this.#open);
    if (this.#depth !== 0 || this.#inString) throw cutError(name, this.#items);
    if (this.#isFound || this.#items > 0) return;
    const expected = place === 'list' ? 'a list' : place === 'sequence' ? 'objects' : `a list in ${place.join(' or ')}`;
    throw new CliError(`${name} holds no items: expected JSON with ${expected}`);
  }

  #followString(code: number): void {
    if (this.#isEscaped) this.#isEscaped = false;
    else if (code === BACKSLASH) this.#isEscaped = true;
    else if (code === QUOTE) this.#inString = false;
  }

  #follow(code: number): void {
    this.#isLineStart = code === LINE_FEED;
    if (code === LINE_FEED) this.#line += 1;
    else if (code === QUOTE) {
      this.#inString = true;
      this.#isEscaped = false;
    } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      if (code === OPEN_BRACKET && this.#depth === 1 && this.#isNamed()) this.#itemDepth = 2;
      this.#depth += 1;
      if (this.#depth === this.#itemDepth) this.#isFound = true;
    } else if (isClosing(code)) {
      this.#depth -= 1;
      if (typeof this.#file.place !== 'string' && this.#depth < this.#itemDepth) this.#itemDepth = Infinity;
    }
  }

  #isNamed(): boolean {
    const { place } = this.#file;
    return typeof place !== 'string' && place.includes(this.#field.slice(1, -1));
  }

  /** Tells whether an item ends before this character. */
  #endsItem(code: number): boolean {
    if (this.#itemDepth > 0) return this.#depth === this.#itemDepth && (code === COMMA || isClosing(code));
    // No string goes on in the next line. A line that begins with an object begins a new item, even if the item before
    // is damaged.
    return code === LINE_FEED ? this.#depth <= 0 || this.#inString : code === OPEN_BRACE && this.#isLineStart;
  }

  /** Tells whether this character is the first of an item, or of a string in the outer object. */
  #begins(code: number): boolean {
    if (this.#itemDepth === Infinity) return code === QUOTE && this.#depth === 1;
    if (this.#depth !== this.#itemDepth || code <= SPACE) return false;
    return this.#itemDepth === 0 || (code !== COMMA && !isClosing(code));
  }

  *#parsed(text: string): Generator<object> {
    this.#items += 1;
    const here = `${this.#file.name}: item ${this.#items}, on line ${this.#itemLine},`;
    if (this.#isTooLong) {
      this.#isTooLong = false;
      return this.#file.onDamage(`${here} is over ${MAX_ITEM / 2 ** 20} MB`);
    }
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      return this.#file.onDamage(`${here} is no JSON`);
    }
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) yield value;
    else this.#file.onDamage(`${here} is no object`);
  }
}

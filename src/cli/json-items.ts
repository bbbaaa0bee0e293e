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

/** Longest item that is held in memory, in UTF-16 code units; a longer one is reported and passed over. */
const MAX_ITEM = 64 * 1024 * 1024;

/**
 * Where a file has its items. `list`: the whole file is one JSON list of items. `sequence`: the items follow one
 * another, as in NDJSON. A list of field names: the file is an object, and its fields with these names are lists of
 * items.
 */
export type ItemPlace = 'list' | 'sequence' | readonly string[];

/** Description of a file for the reader of its items. */
interface ItemFile {
  readonly name: string;
  readonly place: ItemPlace;
  /** Called with a message for each item that is damaged, too long or not an object. Reading continues after it. */
  onDamage(message: string): void;
}

/**
 * Yields the items of a JSON file one by one, parsed, without holding the file in memory. To find where an item ends,
 * it only follows brackets and strings; then it parses the item. Text between two separators that is no object is
 * reported to `onDamage` and passed over.
 * @throws CliError if the text ends within an item, list or object, or holds neither a list of items nor an item; the
 *   items before were yielded
 */
export function jsonItems(texts: AsyncIterable<string>, file: ItemFile): AsyncGenerator<object> {
  return scan(texts, new ItemScanner(file));
}

/** Finds the items in a text that arrives in pieces, by following its brackets and strings. */
class ItemScanner implements Scanner<object> {
  readonly #file: ItemFile;
  /**
   * Number of brackets that are open around each item: 0 in a sequence, 1 in a list. It is Infinity while no list of
   * items is open.
   */
  #itemDepth: number;
  #depth = 0;
  #inString = false;
  #isEscaped = false;
  /**
   * Text of the unfinished item from earlier pieces, or of an unfinished string of the outer object; null if there is
   * none.
   */
  #open: string | null = null;
  #isTooLong = false;
  /**
   * Last string that was read in the outer object, with its quotes. When a list begins, it is the name of the list's
   * field.
   */
  #field = '';
  #items = 0;
  #line = 1;
  /** Line of the file on which the item that is being read begins, counted from 1. */
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
      return this.#file.onDamage(`${here} is longer than ${MAX_ITEM / 2 ** 20} Mi characters`);
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

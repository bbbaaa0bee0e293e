/**
 * Reads a JSON list of objects of any size. One field of each object, such as the messages of a conversation, may be
 * too large for memory: its entries are parsed one by one. The other fields (the rest) are parsed as one object.
 */
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

/**
 * Greatest length of one entry of the large field, and of an object without that field, in UTF-16 code units; a longer
 * one is reported and passed over.
 */
const MAX_PART = 16 * 1024 * 1024;

/**
 * A part of an object: either one entry of its large field (`part`), or the object without that field's entries
 * (`rest`), which comes last. `item` is the number of the object, counted from 0. `key` is the name of the entry; '' if
 * the field is a list.
 */
export type JsonPart =
  | { readonly item: number; readonly key: string; readonly part: unknown }
  | { readonly item: number; readonly rest: object };

interface PartFile {
  readonly name: string;
  /** Name of the large field, a list or an object, whose entries are read one by one. In `rest` the field is empty. */
  readonly field: string;
  /**
   * Called with a message for each entry, and for each remaining object, that is damaged or too long. Reading continues
   * after it.
   */
  onDamage(message: string): void;
}

/**
 * Yields for each object the entries of its large field, and then the object without them.
 * @throws CliError if the text ends within the list, or has no list at all; the parts before were yielded
 */
export function jsonParts(texts: AsyncIterable<string>, file: PartFile): AsyncGenerator<JsonPart> {
  return scan(texts, new PartScanner(file));
}

/**
 * Finds the parts in a text that arrives in pieces, by following its brackets and strings. `#depth` is the number of
 * open brackets: 1 in the outer list, 2 in an object.
 */
class PartScanner implements Scanner<JsonPart> {
  readonly #file: PartFile;
  #depth = 0;
  #inString = false;
  #isEscaped = false;
  #line = 1;
  #items = 0;
  /** Collects the text of the current object, without the entries of its large field. */
  readonly #rest = new Keeper();
  /** Collects the text of the current entry. */
  readonly #part = new Keeper();
  /** Collects the last string at the level of the current object's fields, which may be the name of the large field. */
  readonly #name = new Keeper();
  /** Character code of the bracket that opened the large field; 0 outside of that field. */
  #within = 0;
  #parts = 0;
  #isFound = false;

  constructor(file: PartFile) {
    this.#file = file;
  }

  *take(text: string): Generator<JsonPart> {
    for (const keeper of [this.#rest, this.#part, this.#name]) keeper.nextPiece();
    for (let at = 0; at < text.length; at += 1) {
      if (this.#inString) {
        const end = this.#endOfString(text, at);
        if (end === -1) break;
        this.#inString = false;
        this.#name.close(text, end + 1);
        at = end;
        continue;
      }
      const code = text.charCodeAt(at);
      if (code === LINE_FEED) this.#line += 1;
      if (code <= SPACE) continue;
      const isEnd = code === COMMA || isClosing(code);
      if (isEnd && this.#depth === 3 && this.#within !== 0) yield* this.#endPart(text, at, code);
      else if (isEnd && this.#depth === 1 && this.#rest.isOpen) yield* this.#endItem(text, at);
      else if (!isEnd) this.#begin(code, at);
      this.#follow(code, text, at);
    }
    for (const keeper of [this.#rest, this.#part, this.#name]) keeper.carry(text);
  }

  *end(): Generator<JsonPart> {
    const { name } = this.#file;
    // The text may end behind a whole object.
    if (this.#depth === 1 && !this.#inString && this.#rest.isOpen) yield* this.#endItem('', 0);
    if (this.#depth !== 0 || this.#inString) throw cutError(name, this.#items);
    if (!this.#isFound) throw new CliError(`${name} holds no items: expected JSON with a list`);
  }

  /** Begins to collect an object of the list, or an entry of the large field, if none is being collected. */
  #begin(code: number, at: number): void {
    if (this.#depth === 1 && !this.#rest.isOpen) {
      this.#rest.open(at, this.#line);
      this.#parts = 0;
    } else if (this.#depth === 3 && this.#within !== 0 && !this.#part.isOpen) this.#part.open(at, this.#line);
    if (code === QUOTE && this.#depth === 2) this.#name.open(at, this.#line);
  }

  #follow(code: number, text: string, at: number): void {
    if (code === QUOTE) this.#inString = true;
    else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      if (this.#depth === 2 && this.#name.text === `"${this.#file.field}"`) {
        this.#rest.pause(text, at + 1);
        this.#within = code;
      }
      this.#depth += 1;
      if (this.#depth === 1) this.#isFound = true;
    } else if (isClosing(code)) this.#depth -= 1;
  }

  *#endPart(text: string, at: number, code: number): Generator<JsonPart> {
    if (this.#part.isOpen) {
      const { line } = this.#part;
      const entry = this.#part.close(text, at);
      this.#parts += 1;
      const here = `${this.#file.name}: part ${this.#parts} of item ${this.#items + 1}, on line ${line},`;
      const parsed = this.#parsed(entry, here, (whole): readonly [key: string, part: unknown] => {
        if (this.#within === OPEN_BRACKET) return ['', JSON.parse(whole)];
        // An object for each key would cost the engine a hidden class each.
        const [start, key] = KEY.exec(whole) ?? [];
        if (start === undefined) throw new SyntaxError('an entry without a key');
        return [JSON.parse(key!) as string, JSON.parse(whole.slice(start.length))];
      });
      if (parsed !== undefined) yield { item: this.#items, key: parsed[0], part: parsed[1] };
    }
    if (code === COMMA) return;
    this.#within = 0;
    this.#name.forget();
    this.#rest.resume(at);
  }

  *#endItem(text: string, at: number): Generator<JsonPart> {
    const { line } = this.#rest;
    const here = `${this.#file.name}: item ${this.#items + 1}, on line ${line},`;
    const rest = this.#parsed(this.#rest.close(text, at), here, (whole) => JSON.parse(whole) as unknown);
    if (typeof rest === 'object' && rest !== null && !Array.isArray(rest)) yield { item: this.#items, rest };
    else if (rest !== undefined) this.#file.onDamage(`${here} is no object`);
    this.#items += 1;
  }

  /**
   * Parses a text with `parse`. If that throws, or the text is null since it was too long, calls `onDamage` and returns
   * undefined.
   * @param here position of the text in the file, as the subject of the message
   */
  #parsed<Value>(text: string | null, here: string, parse: (text: string) => Value): Value | undefined {
    if (text === null) this.#file.onDamage(`${here} is longer than ${MAX_PART / 2 ** 20} Mi characters`);
    else {
      try {
        return parse(text);
      } catch {
        this.#file.onDamage(`${here} is no JSON`);
      }
    }
    return undefined;
  }

  /** Returns the index of the quote that ends the open string; -1 if the string goes on in the next piece. */
  #endOfString(text: string, from: number): number {
    let at = this.#isEscaped ? from + 1 : from;
    for (;;) {
      const quote = text.indexOf('"', at);
      const end = quote === -1 ? text.length : quote;
      let slashes = 0;
      while (end - slashes > at && text.charCodeAt(end - slashes - 1) === BACKSLASH) slashes += 1;
      this.#isEscaped = slashes % 2 === 1;
      if (quote === -1) return -1;
      if (!this.#isEscaped) return quote;
      this.#isEscaped = false;
      at = quote + 1;
    }
  }
}

const KEY = /^("(?:[^"\\]|\\.)*")\s*:/;

/**
 * Collects a section of a text that arrives in pieces. If the section exceeds 16 Mi UTF-16 code units, its text becomes
 * null.
 */
class Keeper {
  isOpen = false;
  line = 0;
  /** The text collected so far, complete after `close`; null if it is too long. */
  text: string | null = '';
  #start = -1;

  open(at: number, line: number): void {
    [this.isOpen, this.line, this.text, this.#start] = [true, line, '', at];
  }

  /** Continues to collect at the beginning of the next piece, unless collecting is paused. */
  nextPiece(): void {
    if (this.#start !== -1) this.#start = 0;
  }

  resume(at: number): void {
    this.#start = at;
  }

  /** Collects the text before `end`, and nothing after it until `resume`. */
  pause(text: string, end: number): void {
    this.#keep(text, end);
    this.#start = -1;
  }

  /** Collects the rest of the current piece. Call it at the end of each piece. */
  carry(text: string): void {
    this.#keep(text, text.length);
  }

  close(text: string, end: number): string | null {
    if (!this.isOpen) return this.text;
    this.#keep(text, end);
    this.isOpen = false;
    return this.text;
  }

  forget(): void {
    this.text = '';
  }

  #keep(text: string, end: number): void {
    if (!this.isOpen || this.#start === -1 || this.text === null) return;
    this.text = this.text.length + end - this.#start > MAX_PART ? null : this.text + text.slice(this.#start, end);
  }
}

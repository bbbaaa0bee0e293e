import { EngineError } from '../engine/index.ts';

/** Most values of a JSON body: lists, objects, texts, numbers and so on, at any depth. */
export const MAX_JSON_VALUES = 100_000;
/** Most names of fields in a JSON body, all objects together. Parsing 20,000 different ones takes some 15 ms. */
export const MAX_JSON_NAMES = 20_000;
/** Most values, and most names of fields, of a text of JSON. */
export interface JsonBounds {
  readonly values: number;
  readonly names: number;
}

const BODY_BOUNDS: JsonBounds = { values: MAX_JSON_VALUES, names: MAX_JSON_NAMES };
/** Deepest nesting of a JSON body. Fields have closer bounds of their own; this one keeps recursion shallow. */
const MAX_JSON_DEPTH = 512;

const [QUOTE, BACKSLASH, COLON, COMMA] = [0x22, 0x5c, 0x3a, 0x2c];
const [OPEN_OBJECT, CLOSE_OBJECT, OPEN_LIST, CLOSE_LIST] = [0x7b, 0x7d, 0x5b, 0x5d];
const [MINUS, ZERO, NINE] = [0x2d, 0x30, 0x39];
const SPACE = 0x20;
/** Matches a number of JSON, with its fraction in group 1 and its exponent in group 2. */
const NUMBER = /-?\d+(\.\d+)?([eE][+-]?\d+)?/y;
/** Longest whole number that is surely kept exactly, in characters with its sign. */
const SAFE_CHARACTERS = 15;
/** Characters of a name that a refusal quotes. */
const QUOTED_CHARACTERS = 64;

/**
 * Refuses a text of JSON that names a field of an object twice, where JSON.parse would keep the last: what checked the
 * request on its way may have read the first. Refuses numbers that JSON.parse would replace by another number, more
 * values or names than `most` allows and a nesting over `MAX_JSON_DEPTH`, too. All of this comes before anything is
 * made of the text: JSON.parse takes twenty times as long for a text of empty lists as it takes to find that there are
 * too many. A text that is not JSON may pass.
 * @throws EngineError `invalid`; SyntaxError for a name that is no JSON string
 */
export function checkJson(text: string, most: JsonBounds = BODY_BOUNDS): void {
  /** The names in each open container, from outside in; null for a list. */
  const open: (Set<string> | null)[] = [];
  let [values, names] = [1, 0];
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      const end = endOfString(text, at);
      const known = open.at(-1);
      if (known != null && isBeforeColon(text, end)) {
        names++;
        addName(known, text.slice(at, end));
      }
      at = end - 1;
    } else if ((code >= ZERO && code <= NINE) || code === MINUS) {
      at = endOfNumber(text, at) - 1;
      continue;
    } else if (code === OPEN_OBJECT) open.push(new Set());
    else if (code === OPEN_LIST) open.push(null);
    else if (code === CLOSE_OBJECT || code === CLOSE_LIST) open.pop();
    else if (code !== COMMA) continue;
    if (code !== QUOTE && code !== CLOSE_OBJECT && code !== CLOSE_LIST) values++;
    if (open.length > MAX_JSON_DEPTH)
      throw new EngineError('invalid', `the body is nested over ${MAX_JSON_DEPTH} deep`);
    if (values > most.values) throw new EngineError('invalid', `the body has over ${most.values} values`);
    if (names > most.names)
      throw new EngineError('invalid', `the body has over ${most.names} names of fields, in all objects together`);
  }
}

/** Returns the offset behind the closing quote of the string that begins at `start`. */
function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (end !== -1 && isEscaped(text, end)) end = text.indexOf('"', end + 1);
  return end === -1 ? text.length : end + 1;
}

/**
 * Returns the offset behind the number that begins at `start`. Whole numbers come back as they were sent or are
 * refused, since some programs count beyond what a JavaScript number holds. A fraction means the nearest 64-bit number
 * to every program, which is 0 for one under 2.5e-324.
 * @throws EngineError `invalid` for a whole number that would come back as another one, and for a number beyond 1.8e308
 */
function endOfNumber(text: string, start: number): number {
  NUMBER.lastIndex = start;
  const number = NUMBER.exec(text);
  if (number === null) return start + 1; // A minus without digits: JSON.parse refuses it.
  const [written, fraction, exponent] = number;
  const end = start + written.length;
  const isWhole = fraction === undefined && exponent === undefined;
  if (isWhole && written.length <= SAFE_CHARACTERS) return end;
  const value = Number(written);
  const isKept = () => !isWhole || String(value) === written || BigInt(value) === BigInt(written);
  const place = `the number at character ${start + 1} of the body`;
  if (!Number.isFinite(value))
    throw new EngineError(
      'invalid',
      `${place} is too large: numbers reach from -${Number.MAX_VALUE} to ${Number.MAX_VALUE}; send it as a string`,
    );
  if (isKept()) return end;
  throw new EngineError(
    'invalid',
    `${place} cannot be kept exactly: whole numbers reach from ` +
      `${Number.MIN_SAFE_INTEGER} to ${Number.MAX_SAFE_INTEGER}; send a larger one as a string`,
  );
}

function isEscaped(text: string, quote: number): boolean {
  let before = quote - 1;
  while (text.charCodeAt(before) === BACKSLASH) before--;
  return (quote - before) % 2 === 0;
}

function isBeforeColon(text: string, from: number): boolean {
  let at = from;
  while (text.charCodeAt(at) <= SPACE) at++;
  return text.charCodeAt(at) === COLON;
}

/** @param quoted the name as it is written, in its quotes */
function addName(names: Set<string>, quoted: string): void {
  const name = quoted.includes('\\') ? (JSON.parse(quoted) as string) : quoted.slice(1, -1);
  if (names.has(name)) {
    const shown = JSON.stringify(name.slice(0, QUOTED_CHARACTERS));
    throw new EngineError('invalid', `the body names the field ${shown} twice in one object`);
  }
  names.add(name);
}

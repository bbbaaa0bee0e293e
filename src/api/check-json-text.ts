import { beginningOf, EngineError } from '../engine/index.ts';

/** Greatest number of values in a JSON body. Lists, objects, strings, numbers and so on all count, at any depth. */
export const MAX_JSON_VALUES = 100_000;
/**
 * Greatest number of field names in a JSON body, all objects together. Parsing 20,000 different ones takes about 15 ms.
 */
export const MAX_JSON_NAMES = 20_000;
/**
 * Greatest number of field names in a body that holds a query or filters. A schema lists all names that it does not
 * know, in one step: 20,000 of them took 30 to 50 ms.
 */
export const MAX_FILTER_NAMES = 3_000;
/**
 * Greatest number of values (`values`) and of field names (`names`) in a JSON text, at all levels together. For
 * `values`, an empty list or object counts as two.
 */
export interface JsonBounds {
  readonly values: number;
  readonly names: number;
  /**
   * Further limits for the outermost object: `most` is the greatest number of its fields, `values` and `names` are the
   * greatest numbers of values and field names inside one of its fields. If it is undefined, only the totals are
   * limited.
   */
  readonly fields?: { readonly most: number; readonly values: number; readonly names: number };
}

const BODY_BOUNDS: JsonBounds = { values: MAX_JSON_VALUES, names: MAX_JSON_NAMES };
/** Greatest nesting depth of a JSON body. It keeps recursion shallow. Fields such as metadata have lower limits. */
const MAX_JSON_DEPTH = 512;

const [QUOTE, BACKSLASH, COLON, COMMA] = [0x22, 0x5c, 0x3a, 0x2c];
const [OPEN_OBJECT, CLOSE_OBJECT, OPEN_LIST, CLOSE_LIST] = [0x7b, 0x7d, 0x5b, 0x5d];
const [MINUS, ZERO, NINE] = [0x2d, 0x30, 0x39];
const SPACE = 0x20;
/**
 * Matches a JSON number, with its fraction in group 1 and its exponent in group 2. Nothing follows a leading zero: so a
 * whole number that is finite has at most 309 digits.
 */
const NUMBER = /-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/y;
/** Number of values and names that are checked in one step of the generator. A step takes about 2 ms. */
const STEP = 4_096;
/**
 * Number of characters after which a step ends, since a text that is not JSON may have neither values nor names that
 * are counted: 64 Ki characters of numbers take about 2 ms. Only a string without escapes may be longer in one step.
 */
const STEP_CHARACTERS = 64 * 1024;
/** Greatest length, in characters with the sign, at which JavaScript keeps every whole number exactly. */
const SAFE_CHARACTERS = 15;
/** Greatest number of characters of a field name that an error message quotes. */
const QUOTED_CHARACTERS = 64;

/**
 * Checks a JSON text before it is parsed. It refuses an object that names a field twice, since JSON.parse keeps the
 * last value, while a proxy that checked the request may have read the first. It also refuses whole numbers that
 * JavaScript would write with other digits, numbers beyond 1.8e308, more values or names than `most` allows (by default
 * 100,000 and 20,000), and more than 512 levels of nesting. The check comes first because it is cheap: parsing a text
 * of empty lists takes twenty times as long as finding that there are too many. A text that is not JSON may pass.
 * @throws EngineError `invalid`; SyntaxError for a name that is not a JSON string
 */
export function checkJson(text: string, most: JsonBounds = BODY_BOUNDS): void {
  const steps = checkJsonInSteps(text, most);
  while (steps.next().done !== true);
}

/**
 * Checks a JSON text as `checkJson` does, but as a generator: the caller may let other requests run between two steps.
 * @returns the offsets of the commas between the fields of the outermost object, by which the fields can be parsed one
 *   by one
 */
export function* checkJsonInSteps(text: string, most: JsonBounds = BODY_BOUNDS): Generator<undefined, number[]> {
  /** Field names found so far in each open object, the outermost first; null for an open list. */
  const open: (Set<string> | null)[] = [];
  const commas: number[] = [];
  const counted = { values: 1, names: 0 };
  let before = { ...counted };
  let stepEnd = STEP;
  let placeEnd = STEP_CHARACTERS;
  for (let at = 0; at < text.length; at++) {
    if (at >= placeEnd) {
      placeEnd = at + STEP_CHARACTERS;
      yield;
    }
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      const quote = text.indexOf('"', at + 1);
      const end = isEscaped(text, quote) ? yield* endOfEscaped(text, quote) : afterQuote(text, quote);
      const known = open.at(-1);
      if (known != null && isBeforeColon(text, end)) {
        counted.names++;
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
    if (code !== QUOTE && code !== CLOSE_OBJECT && code !== CLOSE_LIST) counted.values++;
    if (open.length > MAX_JSON_DEPTH)
      throw new EngineError('invalid', `the body is nested over ${MAX_JSON_DEPTH} deep`);
    requireWithin(counted, most, before);
    if (code === COMMA && open.length === 1 && open[0] !== null) {
      commas.push(at);
      before = { ...counted };
      if (most.fields !== undefined && commas.length >= most.fields.most)
        throw new EngineError('invalid', `the body has over ${most.fields.most} fields`);
    }
    if (counted.values + counted.names < stepEnd) continue;
    stepEnd += STEP;
    yield;
  }
  return commas;
}

type Counted = Pick<JsonBounds, 'values' | 'names'>;

/**
 * Throws EngineError `invalid` if the counted values or names exceed a limit, in the whole body or in one field.
 * @param before the counts at the beginning of the current field of the outermost object
 */
function requireWithin({ values, names }: Counted, most: JsonBounds, before: Counted): void {
  if (values > most.values) throw new EngineError('invalid', `the body has over ${most.values} values`);
  if (names > most.names)
    throw new EngineError('invalid', `the body has over ${most.names} names of fields, in all objects together`);
  if (most.fields === undefined) return;
  if (values - before.values > most.fields.values)
    throw new EngineError('invalid', `a field has over ${most.fields.values} values`);
  if (names - before.names > most.fields.names)
    throw new EngineError('invalid', `a field has over ${most.fields.names} names of fields, in all objects together`);
}

/**
 * Returns the offset after the closing quote of a string; the end of the text if it has none. Like `checkJsonInSteps`,
 * it lets other requests run within a long string.
 * @param escaped offset of the first quote within the string, which is escaped
 */
function* endOfEscaped(text: string, escaped: number): Generator<undefined, number> {
  let quote = escaped;
  let placeEnd = escaped + STEP_CHARACTERS;
  while (isEscaped(text, quote)) {
    if (quote >= placeEnd) {
      placeEnd = quote + STEP_CHARACTERS;
      yield;
    }
    quote = text.indexOf('"', quote + 1);
  }
  return afterQuote(text, quote);
}

/** Returns the offset after a quote; the end of the text if there is none, for which `quote` is -1. */
function afterQuote(text: string, quote: number): number {
  return quote === -1 ? text.length : quote + 1;
}

/**
 * Returns the offset after the number that begins at `start`. A whole number must be returned as it was sent or be
 * refused, since other programs can hold numbers that JavaScript rounds. A fraction is read by every program as the
 * nearest 64-bit number, which is 0 for one under 2.5e-324.
 * @throws EngineError `invalid` for a number beyond 1.8e308, and for a whole number, written without a fraction or an
 *   exponent, that JavaScript would write with other digits
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
  const place = `the number at character ${start + 1} of the body`;
  if (!Number.isFinite(value))
    throw new EngineError(
      'invalid',
      `${place} is too large: numbers reach from -${Number.MAX_VALUE} to ${Number.MAX_VALUE}; send it as a string`,
    );
  if (!isWhole || digitsOf(value) === written.replace('-', '').replace(/0+$/, '')) return end;
  throw new EngineError(
    'invalid',
    `${place} cannot be kept exactly: whole numbers reach from ` +
      `${Number.MIN_SAFE_INTEGER} to ${Number.MAX_SAFE_INTEGER}; send a larger one as a string`,
  );
}

/** Returns the digits with which JavaScript writes a number, without its sign, its dot and its last zeros. */
function digitsOf(value: number): string {
  return Math.abs(value).toExponential().replace('.', '').split('e')[0]!;
}

/** Tells whether the character at `quote` is escaped; false for -1, which stands for no quote. */
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

/**
 * Adds the name of a field to the names that were found in the same object before.
 * @param quoted the name as it is written, in its quotes
 * @throws EngineError `invalid` if the object has a field of this name already
 */
function addName(names: Set<string>, quoted: string): void {
  const name = quoted.includes('\\') ? (JSON.parse(quoted) as string) : quoted.slice(1, -1);
  if (names.has(name)) {
    const shown = JSON.stringify(beginningOf(name, QUOTED_CHARACTERS));
    throw new EngineError('invalid', `the body names the field ${shown} twice in one object`);
  }
  names.add(name);
}

import { JsonText, takeTurn } from '../engine/index.ts';

/**
 * Length from which the JSON of a text is made in pieces, in UTF-16 code units; a piece is made of `PIECE_CHARACTERS`
 * of them.
 */
const LONG_CHARACTERS = 16 * 1024;
const PIECE_CHARACTERS = 8 * 1024;

/** Greatest number of objects and lists around a long text that is looked for. */
const MAX_DEPTH = 2;

/**
 * Tells whether a value is a text of at least 16,384 UTF-16 code units or a `JsonText`, or an object or list with one
 * of these directly in it, or in an object or list in it.
 */
export function hasLongText(value: unknown): boolean {
  return isLongWithin(value, MAX_DEPTH);
}

function isLongWithin(value: unknown, depth: number): boolean {
  if (isLong(value)) return true;
  if (depth === 0 || typeof value !== 'object' || value === null) return false;
  return Object.values(value).some((part) => isLongWithin(part, depth - 1));
}

/** Tells whether a value is an object with a `JsonText` directly in it, whose text need not be parsed for a reply. */
export function hasJsonText(value: unknown): value is object {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return Object.values(value).some((field) => field instanceof JsonText);
}

/**
 * Makes the JSON of a value in pieces; joined, they equal the result of `JSON.stringify`. A text or object for which
 * `hasLongText` holds gives many pieces, at most 48 KB of each long text at a time, so that other work can be done in
 * between: the JSON of a memory of a megabyte takes 5 ms. Every other value, and a list, is one piece.
 */
export function* jsonPieces(value: unknown): Generator<string> {
  if (isLong(value)) yield* piecesOf(value);
  else if (!hasLongText(value) || Array.isArray(value)) yield JSON.stringify(value);
  else {
    let separator = '{';
    for (const [name, field] of Object.entries(value as object)) {
      if (field === undefined) continue;
      yield `${separator}${JSON.stringify(name)}:`;
      separator = ',';
      yield* jsonPieces(field);
    }
    yield '}';
  }
}

/** Returns how many bytes the JSON of a value has, and lets other work be done between two pieces of it. */
export async function jsonBytes(value: unknown): Promise<number> {
  let bytes = 0;
  for (const piece of jsonPieces(value)) {
    bytes += Buffer.byteLength(piece);
    await takeTurn();
  }
  return bytes;
}

function isLong(value: unknown): value is string | JsonText {
  return typeof value === 'string' ? value.length >= LONG_CHARACTERS : value instanceof JsonText;
}

function* piecesOf(value: string | JsonText): Generator<string> {
  const isJson = typeof value !== 'string';
  const text = isJson ? value.text : value;
  if (!isJson) yield '"';
  for (let start = 0; start < text.length;) {
    const end = endOfPiece(text, start + PIECE_CHARACTERS);
    const piece = text.slice(start, end);
    yield isJson ? piece : JSON.stringify(piece).slice(1, -1);
    start = end;
  }
  if (!isJson) yield '"';
}

/** Moves the end of a piece back by one code unit if the piece would end between the halves of a surrogate pair. */
function endOfPiece(text: string, end: number): number {
  const last = text.charCodeAt(end - 1);
  return end < text.length && last >= 0xd800 && last <= 0xdbff ? end - 1 : end;
}

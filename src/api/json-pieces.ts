/** Characters of a text from which on its JSON is made piece by piece, and characters of a piece. */
const LONG_CHARACTERS = 16 * 1024;
const PIECE_CHARACTERS = 8 * 1024;

/** Whether a value is a long text, or an object with a long text in a field of its own. */
export function hasLongText(value: unknown): boolean {
  if (isLong(value)) return true;
  return typeof value === 'object' && value !== null && Object.values(value).some(isLong);
}

/**
 * Makes the JSON of a value in pieces, which together are what `JSON.stringify` makes. Of a text for which
 * `hasLongText` holds, a piece has at most 48 KB, so that a caller may do other things in between: a memory of a
 * megabyte takes 5 ms.
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
      if (isLong(field)) yield* piecesOf(field);
      else yield JSON.stringify(field);
    }
    yield '}';
  }
}

function isLong(value: unknown): value is string {
  return typeof value === 'string' && value.length >= LONG_CHARACTERS;
}

function* piecesOf(text: string): Generator<string> {
  yield '"';
  for (let start = 0; start < text.length;) {
    const end = endOfPiece(text, start + PIECE_CHARACTERS);
    yield JSON.stringify(text.slice(start, end)).slice(1, -1);
    start = end;
  }
  yield '"';
}

/** Moves the end of a piece in front of a pair of surrogates that it would part. */
function endOfPiece(text: string, end: number): number {
  const last = text.charCodeAt(end - 1);
  return end < text.length && last >= 0xd800 && last <= 0xdbff ? end - 1 : end;
}

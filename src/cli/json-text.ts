/** What readers of JSON that comes in pieces have in common. */
import { CliError } from './cli-error.ts';

export const LINE_FEED = 10;
export const SPACE = 32;
export const QUOTE = 34;
export const COMMA = 44;
export const OPEN_BRACKET = 91;
export const BACKSLASH = 92;
const CLOSE_BRACKET = 93;
export const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;

export function isClosing(code: number): boolean {
  return code === CLOSE_BRACE || code === CLOSE_BRACKET;
}

/** Follows the brackets and strings of a text that comes in pieces, and yields what it finds. */
export interface Scanner<Found> {
  take(text: string): Generator<Found>;
  /** Ends it behind the last piece. Throws CliError where the text is not whole. */
  end(): Generator<Found>;
}

/** Yields what a scanner finds in the pieces of a text. */
export async function* scan<Found>(texts: AsyncIterable<string>, scanner: Scanner<Found>): AsyncGenerator<Found> {
  for await (const text of texts) yield* scanner.take(text);
  yield* scanner.end();
}

/** The error for a file that ends before its JSON does. */
export function cutError(name: string, items: number): CliError {
  return new CliError(`${name} was cut: it ends behind ${items} items, before the end of the file's JSON`);
}

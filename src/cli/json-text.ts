/** Character codes and helpers that the readers of JSON in pieces share. */
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

/** Reads a text that arrives in pieces, and yields the values that it finds in them. */
export interface Scanner<Found> {
  take(text: string): Generator<Found>;
  /**
   * Ends the scan after the last piece, and yields the values that are left.
   * @throws CliError if the text is not complete
   */
  end(): Generator<Found>;
}

/** Passes the pieces of a text to a scanner, and yields the values that it finds, up to the end of the text. */
export async function* scan<Found>(texts: AsyncIterable<string>, scanner: Scanner<Found>): AsyncGenerator<Found> {
  for await (const text of texts) yield* scanner.take(text);
  yield* scanner.end();
}

/**
 * Makes the error for a file that ends before its JSON does.
 * @param items number of items that were read from it
 */
export function cutError(name: string, items: number): CliError {
  return new CliError(`${name} was cut: it ends after ${items} items, before the end of the file's JSON`);
}

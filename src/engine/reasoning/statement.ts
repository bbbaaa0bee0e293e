import { quote } from '../text/fence.ts';

/** A text that is quoted to a language model, with its time. */
export interface Statement {
  readonly text: string;
  /** Time at which the text was said or its event happened, Unix ms. */
  readonly saidAt: number;
}

/**
 * Quotes a statement with its date (UTC), for a prompt.
 * @param fence result of `fenceOf` for all texts of the prompt
 * @param name name of the text in its markers; it is not escaped
 * @param maxCharacters length to which the text is cut, in UTF-16 code units
 */
export function quoteStatement(
  fence: string,
  name: string,
  { text, saidAt }: Statement,
  maxCharacters: number,
): string {
  return quote(fence, `${name} of ${new Date(saidAt).toISOString().slice(0, 10)}`, text.slice(0, maxCharacters));
}

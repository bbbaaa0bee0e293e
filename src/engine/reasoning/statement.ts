import { quote } from '../text/fence.ts';

/** A text that is shown to a language model, with its time. */
export interface Statement {
  readonly text: string;
  /** Time at which the text was said or its event happened, Unix ms. */
  readonly saidAt: number;
}

/**
 * Quotes a statement with its date (UTC), for a prompt.
 * @param fence result of `fenceOf` for all texts of the prompt
 * @param name says in the marker what the text is; not escaped
 * @param maxCharacters length at which the text is cut
 */
export function quoteStatement(
  fence: string,
  name: string,
  { text, saidAt }: Statement,
  maxCharacters: number,
): string {
  return quote(fence, `${name} of ${new Date(saidAt).toISOString().slice(0, 10)}`, text.slice(0, maxCharacters));
}

import { createHmac, randomBytes } from 'node:crypto';

const SECRET = randomBytes(32);

/**
 * Returns a random-looking string for the markers around quoted texts in a prompt. A text cannot know the string, so it
 * cannot end its own quotation. Equal texts give equal strings, so that equal questions make equal prompts while this
 * process runs.
 * @param texts all texts that the prompt quotes
 * @returns 12 hexadecimal digits
 */
export function fenceOf(texts: readonly string[]): string {
  return createHmac('sha256', SECRET).update(JSON.stringify(texts)).digest('hex').slice(0, 12);
}

/**
 * Encloses a text in markers with a fence, for a prompt. Runs of two or more `<` or `>` in the text are separated by
 * blanks, and white space around the text is removed.
 * @param fence result of `fenceOf` for all texts of the prompt
 * @param name name of the text in its markers; it is not escaped, so it must not come from a user
 */
export function quote(fence: string, name: string, text: string): string {
  return `<<<${name} ${fence}>>>\n${withoutMarkers(text)}\n<<<end ${fence}>>>`;
}

function withoutMarkers(text: string): string {
  return text
    .toWellFormed()
    .replace(/<{2,}|>{2,}/g, (run) => [...run].join(' '))
    .trim();
}

import { createHmac, randomBytes } from 'node:crypto';

const SECRET = randomBytes(32);

/**
 * A random-looking string for the markers around quoted texts in a prompt. A text cannot know the string, so it cannot
 * end its own quotation. Equal texts give an equal string, so that an equal question makes an equal prompt while this
 * process runs.
 * @param texts all texts that the prompt quotes
 * @returns 12 hexadecimal digits
 */
export function fenceOf(texts: readonly string[]): string {
  return createHmac('sha256', SECRET).update(JSON.stringify(texts)).digest('hex').slice(0, 12);
}

/**
 * Puts a text between markers that hold a fence, for a prompt. Runs of `<` or `>` in the text are spread by blanks, and
 * white space around it is removed.
 * @param fence result of `fenceOf` for all texts of the prompt
 * @param name says in the marker what the text is; not escaped, so it must not come from a user
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

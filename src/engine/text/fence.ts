import { createHmac, randomBytes } from 'node:crypto';

const SECRET = randomBytes(32);

/**
 * A number for the markers around texts that a language model quotes. No text can know it, so that none can end its own quotation; of
 * the same texts it is the same, so that the same question makes the same prompt while this process runs.
 */
export function fenceOf(texts: readonly string[]): string {
  return createHmac('sha256', SECRET).update(JSON.stringify(texts)).digest('hex').slice(0, 12);
}

/** A text for a prompt, between markers that hold a fence. What looks like a marker in it is taken apart. */
export function quote(fence: string, name: string, text: string): string {
  return `<<<${name} ${fence}>>>\n${withoutMarkers(text)}\n<<<end ${fence}>>>`;
}

function withoutMarkers(text: string): string {
  return text
    .toWellFormed()
    .replace(/<{2,}|>{2,}/g, (run) => [...run].join(' '))
    .trim();
}

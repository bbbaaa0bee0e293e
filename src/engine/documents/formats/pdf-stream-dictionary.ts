/** Dictionaries of the streams of a PDF file, as far as they are written in the plain and usual form. */

/** Entries of a dictionary: keys without their slash; values as their tokens, joined by spaces. */
export type StreamDictionary = ReadonlyMap<string, string>;

/**
 * A token after white space: a name without escapes, a bracket, a number or keyword, a string without escapes or inner
 * parentheses, or a hexadecimal string.
 */
const TOKEN = /[\s\0]*(\/[^\s\0()<>[\]{}/%#]*|<<|>>|\[|\]|[^\s\0()<>[\]{}/%#]+|\([^()\\]*\)|<[\da-fA-F\s]*>)[\s\0]*/y;

/**
 * Reads a dictionary that has no comment, no escaped name, no string with escapes and no key twice. Returns undefined
 * for any other text, also if anything stands before or after the dictionary.
 */
export function readStreamDictionary(text: string): StreamDictionary | undefined {
  const tokens = tokensOf(text);
  if (tokens === undefined || tokens.length < 2 || tokens[0] !== '<<') return undefined;
  const entries = new Map<string, string>();
  let at = 1;
  while (tokens[at]?.startsWith('/') === true) {
    const key = tokens[at]!.slice(1);
    const end = endOfValue(tokens, at + 1);
    if (entries.has(key) || end === at + 1) return undefined;
    entries.set(key, tokens.slice(at + 1, end).join(' '));
    at = end;
  }
  return tokens[at] === '>>' && at === tokens.length - 1 ? entries : undefined;
}

function tokensOf(text: string): string[] | undefined {
  const tokens: string[] = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.length) {
    const token = TOKEN.exec(text)?.[1];
    if (token === undefined) return undefined;
    tokens.push(token);
  }
  return tokens;
}

/** Returns the index after the value that begins at `start`: a name, or all up to the next key or the end. */
function endOfValue(tokens: readonly string[], start: number): number {
  if (tokens[start]?.startsWith('/') === true) return start + 1;
  let depth = 0;
  let at = start;
  for (; at < tokens.length; at += 1) {
    const token = tokens[at]!;
    if (depth === 0 && (token === '>>' || token.startsWith('/'))) break;
    if (token === '<<' || token === '[') depth += 1;
    if (token === '>>' || token === ']') depth -= 1;
  }
  return at;
}

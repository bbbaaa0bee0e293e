/** Splits SQL statements into tokens: enough of SQL's grammar to change a statement without a complete parser. */

/** Kind of a token. A `word` is a keyword or a name, and `space` includes comments. */
type TokenKind = 'space' | 'word' | 'quoted' | 'text' | 'bytes' | 'number' | 'parameter' | 'sign';

export interface Token {
  readonly kind: TokenKind;
  /** Text of the token, as in the statement. */
  readonly text: string;
  /** Number of parentheses that are open around the token. A parenthesis itself counts as outside of its pair. */
  readonly depth: number;
}

const PATTERNS: readonly (readonly [TokenKind, string])[] = [
  ['space', String.raw`\s+|--[^\n]*|/\*[\s\S]*?\*/`],
  ['bytes', String.raw`x'[0-9a-fA-F]*'`],
  ['text', String.raw`'(?:[^']|'')*'`],
  ['quoted', String.raw`"(?:[^"]|"")*"`],
  ['number', String.raw`\d+\.\d*(?:e[+-]?\d+)?|\d+`],
  ['word', String.raw`[A-Za-z_]\w*`],
  ['parameter', String.raw`\?|[:@][A-Za-z_]\w*|\$\d+`],
  ['sign', String.raw`->>|->|::|\|\||<<|>>|<=|>=|<>|!=|==|[\s\S]`],
];
const TOKEN = new RegExp(PATTERNS.map(([, pattern]) => `(${pattern})`).join('|'), 'g');

/** Splits a statement into tokens, whose texts joined are the statement again. */
export function tokensOf(sql: string): Token[] {
  const tokens: Token[] = [];
  let depth = 0;
  for (const match of sql.matchAll(TOKEN)) {
    const text = match[0];
    const kind = PATTERNS[match.slice(1).findIndex((group) => group !== undefined)]![0];
    if (text === ')' && kind === 'sign') depth -= 1;
    tokens.push({ kind, text, depth });
    if (text === '(' && kind === 'sign') depth += 1;
  }
  return tokens;
}

/**
 * Returns the index of the next token after the index `from` that is no space; the number of tokens if there is none.
 */
export function nextPlace(tokens: readonly Token[], from: number): number {
  let place = from + 1;
  while (tokens[place]?.kind === 'space') place += 1;
  return place;
}

/** Returns the text of the next token after the index `from` that is no space; '' if there is none. */
export function nextText(tokens: readonly Token[], from: number): string {
  return tokens[nextPlace(tokens, from)]?.text ?? '';
}

/** Returns the text of the last token before the index `from` that is no space; '' if there is none. */
export function textBefore(tokens: readonly Token[], from: number): string {
  let place = from - 1;
  while (tokens[place]?.kind === 'space') place -= 1;
  return tokens[place]?.text ?? '';
}

/** Returns the index of the parenthesis that closes the one at the index `open`; the number of tokens if none does. */
export function closingPlace(tokens: readonly Token[], open: number): number {
  const place = tokens.findIndex(
    ({ text, kind, depth }, at) => at > open && kind === 'sign' && text === ')' && depth === tokens[open]!.depth,
  );
  return place === -1 ? tokens.length : place;
}

/** The tokens of a statement: enough of SQL's grammar to change a text without a parser for all of it. */

/** Kind of a token. A `word` is a keyword or a name; `space` holds comments, too. */
type TokenKind = 'space' | 'word' | 'quoted' | 'text' | 'bytes' | 'number' | 'parameter' | 'sign';

export interface Token {
  readonly kind: TokenKind;
  /** The token as it stands in the statement. */
  readonly text: string;
  /** Number of parentheses that are open around the token; a parenthesis counts as outside of itself. */
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

/** Takes a statement apart. The texts of the tokens, joined, are the statement again. */
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

/** Returns the place of the next token after `from` that is no space; the number of tokens if there is none. */
export function nextPlace(tokens: readonly Token[], from: number): number {
  let place = from + 1;
  while (tokens[place]?.kind === 'space') place += 1;
  return place;
}

/** Returns the text of the next token after `from` that is no space, `''` at the end. */
export function nextText(tokens: readonly Token[], from: number): string {
  return tokens[nextPlace(tokens, from)]?.text ?? '';
}

/** Returns the text of the last token before `from` that is no space, `''` at the beginning. */
export function textBefore(tokens: readonly Token[], from: number): string {
  let place = from - 1;
  while (tokens[place]?.kind === 'space') place -= 1;
  return tokens[place]?.text ?? '';
}

/** Returns the place of the parenthesis that closes the one at `open`; the number of tokens if nothing closes it. */
export function closingPlace(tokens: readonly Token[], open: number): number {
  const place = tokens.findIndex(
    ({ text, kind, depth }, at) => at > open && kind === 'sign' && text === ')' && depth === tokens[open]!.depth,
  );
  return place === -1 ? tokens.length : place;
}

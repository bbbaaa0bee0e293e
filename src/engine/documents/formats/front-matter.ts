/**
 * Values of YAML front matter by their keys in lower case. A list has several values, a key without a value has an
 * empty array.
 */
export type FrontMatter = ReadonlyMap<string, readonly string[]>;

/**
 * Greatest length of front matter, in UTF-16 code units. Real front matter has a few lines, while a text may begin with
 * a horizontal rule (`---`) and have another one chapters later.
 */
const LONGEST = 20_000;

/**
 * Splits the YAML block from the start of a Markdown file. Only the YAML that people write by hand is read, `key:
 * value` and lists of plain values; other lines are skipped. A block without any `key:` line is no front matter, but a
 * text between two horizontal rules.
 * @param longest greatest length of the block, in UTF-16 code units
 * @returns `body` is the rest of the file without line feeds at its start, and `block` the lines between the rules; if
 *   there is no such block of that length, `body` is the whole file, and the other fields are empty
 */
export function splitFrontMatter(
  markdown: string,
  longest = LONGEST,
): {
  readonly matter: FrontMatter;
  readonly body: string;
  readonly block: string;
} {
  const block = /^---[ \t]*\n([^]*?)\n(?:---|\.\.\.)[ \t]*(?:\n|$)/.exec(markdown.slice(0, longest));
  const lines = block?.[1]!.split('\n') ?? [];
  if (block === null || !lines.every(isYaml) || !lines.some((line) => KEY.test(line))) {
    return { matter: new Map(), body: markdown, block: '' };
  }
  return { matter: readLines(lines), body: markdown.slice(block[0].length).replace(/^\n+/, ''), block: block[1]! };
}

/** Matches a line with a key, plain or in double quotes, and its value. */
const KEY = /^(?:([A-Za-z_][\w-]{0,60})|"((?:[^"\\]|\\.){1,120})")[ \t]*:(?:[ \t]+([^]*))?$/;
const DOUBLE_QUOTED = /^("(?:[^"\\]|\\.)*")(?:\s+#.*)?$/;

function isYaml(line: string): boolean {
  return line.trim() === '' || /^(?:[ \t]|#|- |-$)/.test(line) || KEY.test(line);
}

function readLines(lines: readonly string[]): FrontMatter {
  const matter = new Map<string, string[]>();
  let key = '';
  for (const line of lines) {
    const pair = KEY.exec(line);
    const item = /^\s*-[ \t]+(.*)$/.exec(line)?.[1];
    if (pair !== null) {
      key = (pair[1] ?? unescaped(`"${pair[2]!}"`)).toLowerCase();
      matter.set(key, valuesOf(pair[3] ?? ''));
    } else if (item !== undefined) {
      matter.get(key)?.push(...valuesOf(item));
    }
  }
  return matter;
}

/**
 * Returns the value after a key, or the values of a list in brackets; [] if there is no value or the value is on the
 * next lines.
 */
function valuesOf(text: string): string[] {
  const trimmed = text.trim();
  const list = /^\[(.*)\]$/.exec(trimmed)?.[1];
  const values = list === undefined ? [trimmed] : (list.match(/"(?:[^"\\]|\\.)*"|'[^']*'|[^,]+/g) ?? []);
  return values.map((value) => unquote(value.trim())).filter((value) => value !== '' && !/^[|>&*{]/.test(value));
}

function unquote(value: string): string {
  const quoted = DOUBLE_QUOTED.exec(value)?.[1];
  if (quoted !== undefined) return unescaped(quoted);
  return /^'([^']*)'(?:\s+#.*)?$/.exec(value)?.[1] ?? value.replace(/\s#.*$/, '').trimEnd();
}

/**
 * Decodes a text in double quotes by the rules of JSON. A text with escapes that only YAML has is returned unchanged.
 */
function unescaped(quoted: string): string {
  try {
    return JSON.parse(quoted) as string;
  } catch {
    return quoted.slice(1, -1);
  }
}

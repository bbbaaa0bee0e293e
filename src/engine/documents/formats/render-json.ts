import { PARSE_LIMITS } from '../parsed-document.ts';
import { tooMuchText } from './bare-document.ts';

/**
 * Greatest length of the path before a value, in UTF-16 code units. Of a longer path only the end is kept, since it
 * says most. Without this limit, a long key would be repeated on every line below it.
 */
const MAX_PATH = 200;
/** Number of characters of a list's plain values on one line, after which a new line begins. */
const MAX_LINE = 200;

/**
 * Renders a parsed JSON value as lines `a.b[2].c: value`; a plain value at the top has no path. A list of plain values
 * alone is joined by commas, and continues on a new line with the same path after each 200 characters; objects and
 * lists in an outermost list become blocks with a blank line between them. null, empty texts, lists and objects are
 * left out; '' is returned if nothing is left. The function is not recursive, so deep nesting is no problem.
 * @throws DocumentError `document_too_large` beyond 20,000,000 characters (`PARSE_LIMITS.textCharacters`)
 */
export function renderJson(root: unknown): string {
  const lines: string[] = [];
  let characters = 0;
  const pending: Node[] = [{ path: '', value: root as JsonValue, inList: false }];
  while (pending.length > 0) {
    const { path, value, inList, startsBlock } = pending.pop()!;
    if (startsBlock && lines.length > 0 && lines.at(-1) !== '') lines.push('');
    if (!isPlain(value) && !isPlainList(value)) pushChildren(pending, path, value, inList);
    else {
      for (const line of renderPlain(path, isPlain(value) ? [value] : value)) {
        lines.push(line);
        characters += line.length;
      }
    }
    if (characters > PARSE_LIMITS.textCharacters) throw tooMuchText();
  }
  return lines.join('\n').trim();
}

interface Node {
  readonly path: string;
  readonly value: JsonValue;
  /** Whether the node is within a list. Only the records of an outermost list have blank lines around them. */
  readonly inList: boolean;
  readonly startsBlock?: boolean;
}

/** Pushes the children of a value onto the stack `pending`, in reverse, so that they are popped in order. */
function pushChildren(pending: Node[], path: string, value: JsonList | JsonObject, inList: boolean): void {
  if (Array.isArray(value)) {
    const list = value as JsonList;
    for (let index = list.length - 1; index >= 0; index--) {
      const child = list[index]!;
      pending.push({
        path: shorten(`${path}[${index}]`),
        value: child,
        inList: true,
        startsBlock: !inList && !isPlain(child),
      });
    }
    return;
  }
  for (const [key, child] of Object.entries(value as JsonObject).reverse()) {
    pending.push({ path: shorten(path === '' ? key : `${path}.${key}`), value: child, inList });
  }
}

function shorten(path: string): string {
  return path.length <= MAX_PATH ? path : `…${path.slice(-MAX_PATH)}`;
}

type Plain = string | number | boolean | null;
type JsonList = readonly JsonValue[];
interface JsonObject {
  readonly [key: string]: JsonValue;
}
type JsonValue = Plain | JsonList | JsonObject;

function isPlain(value: JsonValue): value is Plain {
  return typeof value !== 'object' || value === null;
}

function isPlainList(value: JsonValue): value is readonly Plain[] {
  return Array.isArray(value) && (value as JsonList).every(isPlain);
}

function renderPlain(path: string, values: readonly Plain[]): string[] {
  const words = values.filter((value) => value !== null && value !== '').map(withLineFeeds);
  // Notebooks keep the text of a cell as a list of its lines.
  if (words.length > 1 && words.slice(0, -1).every((word) => word.endsWith('\n'))) {
    return [renderLine(path, words.join(''))];
  }
  const lines: string[] = [];
  let line: string[] = [];
  let length = 0;
  for (const word of words) {
    line.push(word);
    length += word.length;
    if (length < MAX_LINE) continue;
    lines.push(renderLine(path, line.join(', ')));
    line = [];
    length = 0;
  }
  return line.length === 0 ? lines : [...lines, renderLine(path, line.join(', '))];
}

/** Writes a value as text whose lines end in \n. */
function withLineFeeds(value: Plain): string {
  return String(value).replace(/\r\n?/g, '\n');
}

/**
 * Renders a value after its path, or alone if the path is ''. A text of several lines begins on a new line after the
 * path.
 */
function renderLine(path: string, value: string): string {
  if (path === '') return value;
  return value.includes('\n') ? `${path}:\n${value}` : `${path}: ${value}`;
}

import { PARSE_LIMITS } from '../parsed-document.ts';
import { tooMuchText } from './bare-document.ts';

/** Of a path, the end says most; a path without bound would repeat a long key on every line below it. */
const PATH_MOST = 200;
/** Characters of plain values of a list on one line. */
const LINE_MOST = 200;

/**
 * A parsed JSON value as lines `a.b[2].c: value`; a list of plain values shares lines, and records of the outermost list stand in
 * blocks with a blank line between them. null, empty texts and empty lists are left out. Descends without recursion.
 * @throws DocumentError `document_too_large` beyond PARSE_LIMITS.textCharacters
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
  /** Within a list, whose records have blank lines around them already. */
  readonly inList: boolean;
  readonly startsBlock?: boolean;
}

/** In reverse, so that they are popped in order. */
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
  return path.length <= PATH_MOST ? path : `…${path.slice(-PATH_MOST)}`;
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
  const words = values.filter((value) => value !== null && value !== '').map(String);
  // The lines of one text, as notebooks keep their cells.
  if (words.length > 1 && words.slice(0, -1).every((word) => word.endsWith('\n'))) {
    return [renderLine(path, words.join(''))];
  }
  const lines: string[] = [];
  let line: string[] = [];
  let length = 0;
  for (const word of words) {
    line.push(word);
    length += word.length;
    if (length < LINE_MOST) continue;
    lines.push(renderLine(path, line.join(', ')));
    line = [];
    length = 0;
  }
  return line.length === 0 ? lines : [...lines, renderLine(path, line.join(', '))];
}

/** A text of several lines begins on a line of its own. */
function renderLine(path: string, value: string): string {
  if (path === '') return value;
  return value.includes('\n') ? `${path}:\n${value}` : `${path}: ${value}`;
}

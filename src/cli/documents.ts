import fs from 'node:fs';
import path from 'node:path';

/**
 * A paragraph of a Markdown file, or several that `splitMarkdown` joins, or an item of a long list; the demo stores it
 * as one memory.
 */
export interface Passage {
  /** Name of the file, as it was given to `splitMarkdown`. */
  readonly file: string;
  /** Headings above the paragraph, outermost first. */
  readonly headings: readonly string[];
  readonly content: string;
}

/**
 * Shortest paragraph that becomes a passage of its own, in UTF-16 code units. A shorter paragraph, such as "Note
 * well.", is joined with the next one.
 */
const SHORT_PARAGRAPH = 60;
/** Greatest length of a list that is kept whole, in UTF-16 code units. A longer one is split into its items. */
const LONG_LIST = 500;

/**
 * Lists the Markdown files of a folder: those directly in it, the README first, and then those in `docs` and its
 * subfolders. `docs/reference` is left out, since its pages are tables to look things up in. Paths are relative to
 * `folder`, with forward slashes.
 */
export function listDocuments(folder: string): string[] {
  const namesIn = (inside: string, recursive: boolean) =>
    fs.existsSync(path.join(folder, inside))
      ? fs
          .readdirSync(path.join(folder, inside), { recursive, encoding: 'utf8' })
          .map((name) => name.split(path.sep).join('/'))
          .filter((name) => name.endsWith('.md') && !name.startsWith('reference/'))
          .sort(readmeFirst)
      : [];
  return [...namesIn('.', false), ...namesIn('docs', true).map((name) => `docs/${name}`)];
}

function readmeFirst(a: string, b: string): number {
  return Number(b === 'README.md') - Number(a === 'README.md') || (a < b ? -1 : 1);
}

/**
 * Splits Markdown into paragraphs. Code stays with the paragraph before it, and a paragraph that is short (under 60
 * UTF-16 code units) or ends in a colon is joined with the next one. A list of over 500 code units is split into its
 * items, unless it was joined with a paragraph before it. Paragraphs without a word are left out.
 * @param file name of the file, which each passage repeats
 */
export function splitMarkdown(file: string, markdown: string): Passage[] {
  const passages: Passage[] = [];
  const headings: string[] = [];
  let section: string[] = [];
  let block: string[] = [];
  let fence = '';

  const endBlock = () => {
    const content = block.join('\n').trim();
    block = [];
    if (content === '') return;
    const before = section.at(-1);
    const belongs =
      before !== undefined && (content.startsWith('```') || before.length < SHORT_PARAGRAPH || before.endsWith(':'));
    if (belongs) section[section.length - 1] = `${before}\n\n${content}`;
    else section.push(content);
  };
  const endSection = () => {
    endBlock();
    const contents = section.flatMap(itemsOf).filter((content) => HAS_WORDS.test(content));
    passages.push(...contents.map((content) => ({ file, headings: headings.filter(Boolean), content })));
    section = [];
  };

  for (const line of markdown.split(/\r?\n/)) {
    const marker = FENCE.exec(line)?.[1] ?? '';
    if (fence === '') fence = marker;
    else if (marker.startsWith(fence)) fence = '';
    const heading = fence === '' && marker === '' ? HEADING.exec(line) : null;
    if (heading !== null) {
      endSection();
      const depth = heading[1]!.length;
      headings.length = depth - 1;
      headings[depth - 1] = heading[2]!.trim();
    } else if (line.trim() === '' && fence === '') {
      endBlock();
    } else {
      block.push(line);
    }
  }
  endSection();
  return passages;
}

/**
 * Splits a list of over 500 UTF-16 code units into the items of its outermost level; returns any other text as it is,
 * also one with a paragraph before its list.
 */
function itemsOf(content: string): string[] {
  if (content.length <= LONG_LIST || !ITEM.test(content)) return [content];
  const items: string[] = [];
  for (const line of content.split('\n')) {
    if (ITEM.test(line) || items.length === 0) items.push(line);
    else items.push(`${items.pop()}\n${line}`);
  }
  return items;
}

const HEADING = /^(#{1,6}) (.*)$/;
const FENCE = /^(`{3,})/;
const ITEM = /^(?:[-*]|\d{1,3}\.) /;
const HAS_WORDS = /\p{L}{2}/u;

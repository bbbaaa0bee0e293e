import fs from 'node:fs';
import path from 'node:path';

/** A paragraph of a Markdown file: what the demo remembers as one memory. */
export interface Passage {
  readonly file: string;
  /** The headings above it, from the outermost in. */
  readonly headings: readonly string[];
  readonly content: string;
}

/** A paragraph under this is a line such as "For example:", which says nothing without the next one. */
const SHORT = 60;
/** A list over this is remembered item by item. */
const LONG = 500;

/** The Markdown files of a folder and of its `docs`, by name, the README first. */
export function listDocuments(folder: string): string[] {
  const namesIn = (inside: string) =>
    fs.existsSync(path.join(folder, inside))
      ? fs
          .readdirSync(path.join(folder, inside))
          .filter((name) => name.endsWith('.md'))
          .sort(readmeFirst)
      : [];
  return [...namesIn('.'), ...namesIn('docs').map((name) => `docs/${name}`)];
}

function readmeFirst(a: string, b: string): number {
  return Number(b === 'README.md') - Number(a === 'README.md') || (a < b ? -1 : 1);
}

/** Cuts Markdown into paragraphs; code stays with the paragraph that introduces it. */
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
      before !== undefined && (content.startsWith('```') || before.length < SHORT || before.endsWith(':'));
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

/** The items of a long list at its outermost level; anything else is one piece. */
function itemsOf(content: string): string[] {
  if (content.length <= LONG || !ITEM.test(content)) return [content];
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

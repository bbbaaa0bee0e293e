import { isUtf8 } from 'node:buffer';
import type { DocumentWarning } from '../../types.ts';
import { decodeText } from '../decode-text.ts';
import { warnOfHiddenMarkdown, warnOfInvisible } from '../hidden-text.ts';
import type { FormatParser } from '../parsed-document.ts';
import { bareDocument, instantOf } from './bare-document.ts';
import { type FrontMatter, splitFrontMatter } from './front-matter.ts';

/** Plain text, exactly as it stands in the file. Its first line is the title where it looks like one. */
export const readText: FormatParser = async (bytes, { charset }) => {
  const { text, warnings } = await decodeText(bytes, charset);
  return bareDocument(text, {
    title: titleOfText(text),
    warnings: [...warnings, ...warnOfInvisible(text), ...warnOfBase64(text)],
  });
};

/** Markdown as it stands in the file, but for YAML front matter, which is read for what it says about the document. */
export const readMarkdown: FormatParser = async (bytes, { charset }) => {
  const { text, warnings } = await decodeText(bytes, charset);
  const { matter, body } = splitFrontMatter(text);
  return bareDocument(body, {
    title: first(matter, ['title']) ?? titleOfMarkdown(body),
    authors: matter.get('author') ?? matter.get('authors') ?? [],
    language: first(matter, ['lang', 'language']) ?? null,
    publishedAt: instantOf(first(matter, ['date', 'published', 'created'])),
    modifiedAt: instantOf(first(matter, ['updated', 'modified', 'lastmod', 'last_modified'])),
    warnings: [...warnings, ...warnOfHiddenMarkdown(body), ...warnOfBase64(text)],
  });
};

/** Fewer letters could be a word or a key. */
const BASE64_LEAST = 64;
const BASE64_JUDGED = 4_096;

/** Where a caller sent a text in base64 and did not say so, its letters are what is stored. */
function warnOfBase64(text: string): DocumentWarning[] {
  const start = text.slice(0, BASE64_JUDGED).trim();
  if (start.length < BASE64_LEAST || !/^[A-Za-z0-9+/\r\n]+={0,2}$/.test(start)) return [];
  const letters = start.replaceAll(/\s/g, '');
  const bytes = Buffer.from(letters.slice(0, letters.length & ~3), 'base64');
  // The last characters may be cut in two.
  const isText = [0, 1, 2, 3].some((cut) => isUtf8(bytes.subarray(0, bytes.length - cut)));
  if (!isText || /[\0-\x08\x0e-\x1f\x7f]/.test(bytes.toString('latin1'))) return [];
  return [
    {
      code: 'base64_text',
      message: 'The text reads like base64. To have it decoded, send it as data with encoding base64.',
    },
  ];
}

function first(matter: FrontMatter, keys: readonly string[]): string | undefined {
  return keys.map((key) => matter.get(key)?.[0]).find((value) => value !== undefined);
}

/** What is longer is a paragraph. */
const TITLE_MOST = 120;
/** Titles stand at the start. */
const SEARCHED_CHARACTERS = 100_000;

/** A short line of words with a blank or ruled line under it, which does not end as a sentence does. */
function titleOfText(text: string): string {
  const [line = '', next = ''] = text.slice(0, SEARCHED_CHARACTERS).trimStart().split('\n', 2);
  const title = line.trim();
  const isShort = title.length > 0 && title.length <= TITLE_MOST;
  const isAlone = next.trim() === '' || /^\s*([=\-~*])\1{2,}\s*$/.test(next);
  return isShort && isAlone && /\p{L}{2}/u.test(title) && !/[.,;:。，；：]$/.test(title) ? title : '';
}

/** The first heading of the first level outside of code. */
function titleOfMarkdown(markdown: string): string {
  let fence = '';
  let before = '';
  for (const line of markdown.slice(0, SEARCHED_CHARACTERS).split('\n')) {
    const marker = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1] ?? '';
    if (fence === '') fence = marker;
    else if (marker.startsWith(fence)) fence = '';
    if (fence === '' && /^ {0,3}#[ \t]/.test(line)) return plain(line.replace(/^\s*#\s*|\s#+\s*$/g, ''));
    if (fence === '' && /^ {0,3}={2,}\s*$/.test(line) && before.trim() !== '') return plain(before);
    before = marker === '' ? line : '';
  }
  return '';
}

function plain(heading: string): string {
  return heading
    .slice(0, 10 * TITLE_MOST)
    .replace(/!?\[([^[\]]*)\](?:\([^()]*\)|\[[^[\]]*\])/g, '$1')
    .replace(/[*`]|(?<!\w)_+|_+(?!\w)/g, '')
    .trim();
}

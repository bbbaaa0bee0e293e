import { isUtf8 } from 'node:buffer';
import type { DocumentWarning, Omission } from '../../types.ts';
import { decodeText } from '../decode-text.ts';
import { warnOfHiddenMarkdown, warnOfInvisible } from '../hidden-text.ts';
import type { FormatParser } from '../parsed-document.ts';
import { bareDocument, instantOf } from './bare-document.ts';
import { type FrontMatter, splitFrontMatter } from './front-matter.ts';

/**
 * Reads plain text unchanged, except that line ends become \n and control characters other than tabs are removed. Its
 * first line becomes the title if it looks like one, and is also kept in the text.
 * @throws DocumentError `unsupported_encoding`
 */
export const readText: FormatParser = async (bytes, { charset }) => {
  const { text, warnings, omissions } = await decodeText(bytes, charset);
  return bareDocument(text, {
    title: titleOfText(text),
    omissions,
    warnings: [...warnings, ...warnOfInvisible(text), ...warnOfBase64(text)],
  });
};

/**
 * Reads Markdown. YAML front matter is removed from the text and read as the document's metadata.
 * @throws DocumentError `unsupported_encoding`
 */
export const readMarkdown: FormatParser = async (bytes, { charset }) => {
  const { text, warnings, omissions } = await decodeText(bytes, charset);
  const { matter, body } = splitFrontMatter(text);
  return bareDocument(body, {
    title: first(matter, ['title']) ?? titleOfMarkdown(body),
    authors: matter.get('author') ?? matter.get('authors') ?? [],
    language: first(matter, ['lang', 'language']) ?? null,
    publishedAt: instantOf(first(matter, ['date', 'published', 'created'])),
    modifiedAt: instantOf(first(matter, ['updated', 'modified', 'lastmod', 'last_modified'])),
    omissions: [...omissions, ...frontMatterOf(text, body)],
    warnings: [...warnings, ...warnOfHiddenMarkdown(body), ...warnOfBase64(text)],
  });
};

function frontMatterOf({ length: all }: string, { length: kept }: string): Omission[] {
  return all === kept ? [] : [{ reason: 'front_matter', count: 1, characters: all - kept }];
}

/** Least number of base64 letters for a warning; fewer could be a word or a key. */
const MIN_BASE64 = 64;
/** Number of characters at the start of a text that are examined for base64. */
const BASE64_JUDGED = 4_096;

/**
 * Warns of a text that is probably base64 of another text: it would be stored in base64 unless the caller declares it.
 * Returns one warning `base64_text`, or an empty list.
 */
function warnOfBase64(text: string): DocumentWarning[] {
  const start = text.slice(0, BASE64_JUDGED).trim();
  if (start.length < MIN_BASE64 || !/^[A-Za-z0-9+/\r\n]+={0,2}$/.test(start)) return [];
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

/**
 * Greatest length of a plain text's first line that may be its title (UTF-16 code units); a longer line is a paragraph.
 */
const MAX_TITLE = 120;
/** Length of the start of a Markdown heading that becomes the title, with its marks (UTF-16 code units). */
const MAX_HEADING = 1_200;
/** Number of characters at the start of a text in which a title is searched for. */
const SEARCHED_CHARACTERS = 100_000;

/**
 * Returns the first line that is not blank as a title, if it has at most 120 UTF-16 code units, has a word, is followed
 * by a blank line or an underline, and does not end like a sentence; else ''.
 */
function titleOfText(text: string): string {
  const [line = '', next = ''] = text.slice(0, SEARCHED_CHARACTERS).trimStart().split('\n', 2);
  const title = line.trim();
  const isShort = title.length > 0 && title.length <= MAX_TITLE;
  const isAlone = next.trim() === '' || /^\s*([=\-~*])\1{2,}\s*$/.test(next);
  return isShort && isAlone && /\p{L}{2}/u.test(title) && !/[.,;:。，；：]$/.test(title) ? title : '';
}

/** Returns the words of the first heading of level 1 outside of fenced code; '' if there is none. */
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
    .slice(0, MAX_HEADING)
    .replace(/!?\[([^[\]]*)\](?:\([^()]*\)|\[[^[\]]*\])/g, '$1')
    .replace(/[*`]|(?<!\w)_+|_+(?!\w)/g, '')
    .trim();
}

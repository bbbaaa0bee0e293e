import { PARSE_LIMITS, type DocumentMetadata } from '../parsed-document.ts';
import { beginningOf } from '../../text/beginning-of.ts';

/** Greatest number of authors of a file; further ones are dropped. */
const MAX_AUTHORS = 50;
/** Greatest length of an author's name, in UTF-16 code units; a longer one is cut. */
const MAX_AUTHOR_CHARACTERS = 200;

/**
 * Reads a PDF's own metadata from its information dictionary. A value that the dictionary lacks is read from the file's
 * XMP packet, and so are the authors if the packet names several. The date of creation counts as the date of
 * publication.
 * @param info the dictionary as pdf.js reads it, with the catalog's language as `Language`
 * @param xmp returns a property of the packet by its name in lower case; undefined or null if it is missing
 * @param parseDate parses a date in PDF's own form; null if the text is not a date
 */
export function readMetadata(
  info: Readonly<Record<string, unknown>>,
  xmp: (name: string) => unknown,
  parseDate: (text: string) => Date | null,
): DocumentMetadata {
  return {
    title: cleanTitle(textOf(info['Title'])) || cleanTitle(textOf(xmp('dc:title'))),
    authors: authorsOf(info['Author'], xmp('dc:creator')),
    language: languageOf(info['Language']) ?? languageOf(xmp('dc:language')),
    publishedAt: timeOf(info['CreationDate'], parseDate) ?? timeOf(xmp('xmp:createdate'), parseIsoDate),
    modifiedAt: timeOf(info['ModDate'], parseDate) ?? timeOf(xmp('xmp:modifydate'), parseIsoDate),
  };
}

/** Returns a text, or the first text of a list, well-formed and on one line; '' for any other value. */
function textOf(value: unknown): string {
  const text: unknown = Array.isArray(value) ? value[0] : value;
  return typeof text === 'string' ? cleanText(text) : '';
}

function cleanText(text: string): string {
  return beginningOf(text, 4 * PARSE_LIMITS.titleCharacters)
    .toWellFormed()
    .replace(/[\p{Cc}\s]+/gu, ' ')
    .trim();
}

const PRINTED_FROM = /^Microsoft (?:Office )?(?:Word|PowerPoint|Excel|Publisher) - /i;
const FILE_EXTENSION =
  /\.(?:docx?|dotx?|odt|rtf|pptx?|xlsx?|indd|qxd|qxp|dvi|ps|tex|eps|ai|fm|pub|wpd|pdf|html?|md|txt|pages|key)$/i;
const PLACEHOLDER =
  /^(?:untitled|no ?title|title|document|presentation|slide|book|mappe|dokument|powerpoint presentation|microsoft word document|\(anonymous\)|\(unspecified\)|unknown|null|none|about:blank|print|pdf)?[\s_-]*\d*$/i;

/**
 * Cleans a title: from a file name, the extension and the name of a program before it are removed. A default title of a
 * program, such as "Untitled", becomes ''.
 */
function cleanTitle(text: string): string {
  const title = text.replace(PRINTED_FROM, '').replace(FILE_EXTENSION, '').trim();
  if (PLACEHOLDER.test(title)) return '';
  return beginningOf(title, PARSE_LIMITS.titleCharacters);
}

function authorsOf(author: unknown, creator: unknown): string[] {
  const named = Array.isArray(creator) && creator.length > 1 ? creator : [author ?? creator].flat();
  const authors = named
    .slice(0, MAX_AUTHORS)
    .filter((name): name is string => typeof name === 'string')
    .flatMap((name) => splitAuthors(cleanText(name)))
    .map((name) => beginningOf(name, MAX_AUTHOR_CHARACTERS))
    .filter((name) => /\p{L}/u.test(name) && !/^(?:unknown|anonymous|author|user|admin(?:istrator)?)$/i.test(name));
  return [...new Set(authors)].slice(0, MAX_AUTHORS);
}

/**
 * Splits a list of names at semicolons and commas. A comma separates names only if each part has a blank: `Lovelace,
 * Ada` is one person.
 */
function splitAuthors(names: string): string[] {
  const parts = names.split(/\s*;\s*/);
  return parts.flatMap((part) => {
    const byComma = part.split(/\s*,\s*/);
    return byComma.every((name) => name.includes(' ')) ? byComma : [part];
  });
}

function languageOf(value: unknown): string | null {
  const tag = textOf(value);
  if (!/^[a-z]{2,3}(?:[-_][a-z0-9]{2,8})*$/i.test(tag) || /^und\b/i.test(tag)) return null;
  try {
    return Intl.getCanonicalLocales(tag.replaceAll('_', '-'))[0] ?? null;
  } catch {
    return null;
  }
}

function timeOf(value: unknown, parse: (text: string) => Date | null): number | null {
  const time = typeof value === 'string' && value.length <= 64 ? parse(value)?.getTime() : undefined;
  return time !== undefined && time > 0 ? time : null;
}

function parseIsoDate(text: string): Date {
  return new Date(text);
}

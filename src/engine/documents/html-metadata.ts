import type { HtmlDocument } from './html-tree.ts';
import { PARSE_LIMITS, type DocumentMetadata } from './parsed-document.ts';
import { beginningOf } from '../text/beginning-of.ts';

/**
 * Reads a page's own metadata. For each field, the first source that has it is used: meta elements, then JSON-LD, then
 * `time` elements for times, and the `title` element or first `h1` for the title. The language is the root's `lang`
 * attribute, else that of the meta element `content-language`. A field that the page does not state is '', an empty
 * list or null. The page's scripts, which contain the JSON-LD, must still be in the tree.
 */
export function readHtmlMetadata(document: HtmlDocument): DocumentMetadata {
  const meta = readMeta(document);
  const article = readLinkedData(document);
  const first = (...names: string[]): string => names.map((name) => meta.get(name)?.[0]).find((value) => value) ?? '';
  const all = (...names: string[]): string[] => names.map((name) => meta.get(name)).find((values) => values) ?? [];
  const timeOf = (selector: string): string => document.querySelector(selector)?.getAttribute('datetime') ?? '';
  const title = first(...TITLE) || stringOf(article['headline']) || document.title || textOf(document, 'h1');
  const authors = all(...AUTHOR).filter((name) => !/^https?:/.test(name));
  return {
    title: line(title),
    authors: cleanNames(authors.length > 0 ? authors : namesOf(article['author'])),
    language: languageOf(document.documentElement.getAttribute('lang') ?? first('content-language')),
    publishedAt:
      parseTime(first(...PUBLISHED)) ??
      parseTime(stringOf(article['datePublished'])) ??
      parseTime(timeOf('time[pubdate][datetime],time[itemprop="datePublished"][datetime],article time[datetime]')),
    modifiedAt:
      parseTime(first(...MODIFIED)) ??
      parseTime(stringOf(article['dateModified'])) ??
      parseTime(timeOf('time[itemprop="dateModified"][datetime]')),
  };
}

const TITLE = ['og:title', 'citation_title', 'dc.title', 'dcterms.title', 'twitter:title'];
const AUTHOR = ['citation_author', 'dc.creator', 'dcterms.creator', 'author', 'article:author', 'parsely-author'];
const PUBLISHED = [
  'article:published_time',
  'citation_publication_date',
  'dcterms.created',
  'dcterms.issued',
  'dc.date',
  'dcterms.date',
  'datepublished',
  'parsely-pub-date',
  'pubdate',
  'date',
];
const MODIFIED = ['article:modified_time', 'og:updated_time', 'dcterms.modified', 'datemodified', 'last-modified'];

/**
 * Returns the contents of a page's meta elements, by their names (`property`, `name`, `itemprop` or `http-equiv`) in
 * lower case; the first 32 for each name.
 */
function readMeta(document: HtmlDocument): Map<string, string[]> {
  const values = new Map<string, string[]>();
  for (const element of document.querySelectorAll('meta[content]')) {
    const names = ['property', 'name', 'itemprop', 'http-equiv'].map((key) => element.getAttribute(key) ?? '');
    const content = (element.getAttribute('content') ?? '').trim();
    for (const name of names.join(' ').toLowerCase().split(/\s+/)) {
      if (name !== '' && content !== '') values.set(name, [...(values.get(name) ?? []), content].slice(0, MAX_NAMES));
    }
  }
  return values;
}

/**
 * Greatest number of values of one meta name that are read, and greatest number of authors; further ones are dropped.
 */
const MAX_NAMES = 32;
/** Greatest length of a JSON-LD script that is parsed, in UTF-16 code units; a longer one is ignored. */
const MAX_LINKED_DATA_CHARACTERS = 100_000;

type LinkedData = Readonly<Record<string, unknown>>;

/** Returns the first object in the page's JSON-LD that has a headline or a date of publication; {} if none has. */
function readLinkedData(document: HtmlDocument): LinkedData {
  for (const script of document.querySelectorAll('script[type="application/ld+json"]')) {
    const json = script.textContent ?? '';
    if (json.length > MAX_LINKED_DATA_CHARACTERS) continue;
    const article = articlesIn(parseJson(json)).find((item) => item['headline'] || item['datePublished']);
    if (article) return article;
  }
  return {};
}

function parseJson(json: string): unknown {
  try {
    return JSON.parse(json.replace(/^\s*<!\[CDATA\[|\]\]>\s*$/g, ''));
  } catch {
    return null;
  }
}

function articlesIn(data: unknown): LinkedData[] {
  const items = (Array.isArray(data) ? data : [data]).filter(isObject);
  return items.flatMap((item) => [item, ...(Array.isArray(item['@graph']) ? item['@graph'].filter(isObject) : [])]);
}

function isObject(value: unknown): value is LinkedData {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function namesOf(author: unknown): string[] {
  const authors: unknown[] = Array.isArray(author) ? author : [author];
  return authors.map((name) => stringOf(isObject(name) ? name['name'] : name)).filter((name) => name !== '');
}

function stringOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function textOf(document: HtmlDocument, selector: string): string {
  return document.querySelector(selector)?.textContent ?? '';
}

/** Converts a title or a name to a single trimmed line, cut to 1,024 UTF-16 code units. */
export function line(text: string): string {
  const folded = beginningOf(text, PARSE_LIMITS.titleCharacters * 2)
    .replace(/\s+/g, ' ')
    .trim();
  return beginningOf(folded, PARSE_LIMITS.titleCharacters).toWellFormed();
}

/** Returns each name once, as a single line, without empty ones; at most the first 32. */
export function cleanNames(names: readonly string[]): string[] {
  return [...new Set(names.map(line))].filter((name) => name !== '').slice(0, MAX_NAMES);
}

/** Returns a language tag in the spelling of BCP 47 (`pt-BR` for `pt_br`); null if it is not well-formed. */
export function languageOf(tag: string): string | null {
  try {
    return Intl.getCanonicalLocales(tag.trim().replaceAll('_', '-'))[0] ?? null;
  } catch {
    return null;
  }
}

/**
 * Parses a date or time, and returns it in Unix ms: in the format of ISO 8601 (`2024-5` and `2024/5/1`, too), of HTTP,
 * or any other that `Date.parse` reads. Returns null if it cannot be parsed, has no four digits in a row (a year), or
 * is longer than 64 characters. A time without a zone is read as UTC if `Date.parse` accepts a `Z` after it, otherwise
 * in the zone of the process.
 */
export function parseTime(text: string): number | null {
  const trimmed = text.trim();
  if (trimmed.length > 64 || !/\d{4}/.test(trimmed)) return null;
  const iso = /^(\d{4})[-/](\d{1,2})(?:[-/](\d{1,2}))?$/.exec(trimmed);
  if (iso) {
    const [year, month, day] = [Number(iso[1]), Number(iso[2]), Number(iso[3] ?? 1)];
    const date = new Date(Date.UTC(year, month - 1, day));
    // `Date.UTC` takes a day that no calendar has for one of another month.
    return date.getUTCMonth() === month - 1 && date.getUTCDate() === day ? date.getTime() : null;
  }
  const hasZone = /(?:Z|GMT|UTC|[+-]\d\d:?\d\d)$/i.test(trimmed);
  const time = Date.parse(hasZone || /^\d{4}$/.test(trimmed) ? trimmed : `${trimmed}Z`);
  const parsed = Number.isNaN(time) ? Date.parse(trimmed) : time;
  return Number.isNaN(parsed) ? null : parsed;
}

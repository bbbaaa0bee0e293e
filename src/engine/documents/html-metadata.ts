import type { ParsedDocument } from '../ports.ts';
import type { HtmlDocument } from './html-tree.ts';
import { PARSE_LIMITS } from './parsed-document.ts';

export type DocumentMetadata = Pick<ParsedDocument, 'title' | 'authors' | 'language' | 'publishedAt' | 'modifiedAt'>;

/** What a page says about itself: its meta elements first, then JSON-LD, then `time` elements. Its scripts must still be there. */
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

/** Values by the name or property of their meta element, in lower case. */
function readMeta(document: HtmlDocument): Map<string, string[]> {
  const values = new Map<string, string[]>();
  for (const element of document.querySelectorAll('meta[content]')) {
    const names = ['property', 'name', 'itemprop', 'http-equiv'].map((key) => element.getAttribute(key) ?? '');
    const content = (element.getAttribute('content') ?? '').trim();
    for (const name of names.join(' ').toLowerCase().split(/\s+/)) {
      if (name !== '' && content !== '') values.set(name, [...(values.get(name) ?? []), content].slice(0, NAMES_MOST));
    }
  }
  return values;
}

const NAMES_MOST = 32;
const LINKED_DATA_CHARACTERS_MOST = 100_000;

type LinkedData = Readonly<Record<string, unknown>>;

/** The first object in the page's JSON-LD that has a headline or a date of publication. */
function readLinkedData(document: HtmlDocument): LinkedData {
  for (const script of document.querySelectorAll('script[type="application/ld+json"]')) {
    const json = script.textContent ?? '';
    if (json.length > LINKED_DATA_CHARACTERS_MOST) continue;
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
  return authors.map((one) => (isObject(one) ? stringOf(one['name']) : stringOf(one))).filter((name) => name !== '');
}

function stringOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function textOf(document: HtmlDocument, selector: string): string {
  return document.querySelector(selector)?.textContent ?? '';
}

/** A title or a name: one line of bounded length. */
export function line(text: string): string {
  return text
    .slice(0, PARSE_LIMITS.titleCharacters * 2)
    .replace(/\s+/g, ' ')
    .trim()
    .slice(0, PARSE_LIMITS.titleCharacters)
    .toWellFormed();
}

export function cleanNames(names: readonly string[]): string[] {
  return [...new Set(names.map(line))].filter((name) => name !== '').slice(0, NAMES_MOST);
}

/** A language tag as BCP 47 spells it; null for what is none. */
export function languageOf(tag: string): string | null {
  try {
    return Intl.getCanonicalLocales(tag.trim().replaceAll('_', '-'))[0] ?? null;
  } catch {
    return null;
  }
}

/** Unix ms of a date or time as ISO 8601 or HTTP writes it; null for what is none. A time without a zone is taken as UTC. */
export function parseTime(text: string): number | null {
  const trimmed = text.trim();
  if (trimmed.length > 64 || !/\d{4}/.test(trimmed)) return null;
  const iso = /^(\d{4})[-/](\d{1,2})(?:[-/](\d{1,2}))?$/.exec(trimmed);
  if (iso) return Date.UTC(Number(iso[1]), Number(iso[2]) - 1, Number(iso[3] ?? 1));
  const hasZone = /(?:Z|GMT|UTC|[+-]\d\d:?\d\d)$/i.test(trimmed);
  const time = Date.parse(hasZone || /^\d{4}$/.test(trimmed) ? trimmed : `${trimmed}Z`);
  const known = Number.isNaN(time) ? Date.parse(trimmed) : time;
  return Number.isNaN(known) ? null : known;
}

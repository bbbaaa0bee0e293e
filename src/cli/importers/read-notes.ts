/** Reads folders of Markdown notes. */
import { parseDocument } from 'yaml';
import { splitFrontMatter } from '../../engine/index.ts';
import { CliError } from '../cli-error.ts';
import {
  type ForeignLine,
  idOf,
  type ImportContext,
  lineIn,
  lineOf,
  lose,
  metadataOf,
  problemOf,
  type SourceFile,
  tagsIn,
  textOf,
  timeIn,
  timeOf,
} from './format.ts';

/** Link types for the relations of basic-memory, by their names; other relations become `mentions`. */
const LINK_TYPES: Readonly<Record<string, string>> = {
  depends_on: 'depends_on',
  requires: 'depends_on',
  supports: 'supports',
  supersedes: 'supersedes',
  contradicts: 'contradicts',
  derived_from: 'derived_from',
  same_as: 'same_as',
};
/** Matches a link or an embed of a note, with its target in group 1, without heading and alias. */
const WIKILINK = /\[\[([^\]|#\n]{1,300})(?:[#|][^\]\n]{0,300})?\]\]/g;
const OBSERVATION = /^\s*- \[([^\]\n]{1,60})\] (.+)$/;
const RELATION = /^\s*- ([\w -]{1,60}) \[\[([^\]|#\n]{1,300})[^\]\n]{0,300}\]\]/;

/** A link of a note. It is kept until all notes are read, since the note to which it leads may come later. */
interface NotedLink {
  readonly src: string;
  readonly to: string;
  readonly type: string;
}

/**
 * Yields the lines of a folder of notes. Each note is a memory, and each observation of basic-memory (`- [category]
 * fact #tag`) is a memory derived from it. Links lead to notes by their path, name, title, permalink or alias, in any
 * case; one to a note that does not exist is skipped.
 */
export async function* readNotes(context: ImportContext): AsyncGenerator<ForeignLine> {
  const noteOf = new Map<string, string>();
  const links: NotedLink[] = [];
  for (const name of context.source.names.filter((one) => !isNote(one))) {
    if (name.startsWith('.')) continue;
    context.read();
    context.skip(name.endsWith('.md') ? 'a template' : 'no Markdown: use cairn ingest');
  }
  for await (const file of context.source.files(isNote)) yield* noteLines(context, file, noteOf, links);
  const known = new Set<string>();
  for (const { src, to, type } of links) {
    const dst = noteOf.get(to.trim().toLowerCase().replace(/\.md$/, ''));
    if (dst === undefined) context.skip('a link to a note that is not there');
    else if (dst !== src && !known.has(`${src} ${dst} ${type}`)) {
      known.add(`${src} ${dst} ${type}`);
      yield { type: 'link', src, dst, link_type: type };
    }
  }
}

function isNote(name: string): boolean {
  return name.endsWith('.md') && !/(^|\/)(\.[^/]+|_?templates?)\//i.test(name);
}

async function* noteLines(
  context: ImportContext,
  file: SourceFile,
  noteOf: Map<string, string>,
  links: NotedLink[],
): AsyncGenerator<ForeignLine> {
  context.read();
  let text = '';
  try {
    for await (const piece of file.texts()) {
      text += piece;
      if (text.length > 4 * 1024 * 1024) break;
    }
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    return context.damaged(error.message);
  }
  if (text.includes('\ufffd')) lose(context, 'bytes that are no UTF-8');
  const { fields, body, block } = frontMatterOf(context, text.replaceAll('\r\n', '\n'));
  const item = itemOf(fields['item']);
  const isEmptyItem = item !== undefined && body.trim() === '';
  const problem = problemOf(body);
  if (problem !== undefined && !isEmptyItem) return context.skip(problem);

  const userId = context.userId ?? '';
  const one = (key: string) => plainOf(fields[key]);
  const path = file.name.replace(/\.md$/, '');
  const base = path.slice(path.lastIndexOf('/') + 1);
  const title = lineIn(context, one('title') || base, 1_024);
  const externalId = lineOf(one('permalink') || path, 240);
  const id = idOf('notes', userId, externalId);
  const names = [path, base, title, one('permalink'), ...listOf(fields['aliases']).map(plainOf)];
  for (const name of names.map((each) => each.toLowerCase()))
    if (name !== '' && !noteOf.has(name)) noteOf.set(name, id);
  const created = timeIn(context, fields['created']) ?? null;
  const ownKeys = item === undefined ? OWN_KEYS : OWN_KEYS_OF_ITEM;
  const own = Object.entries(fields).filter(([key, value]) => !ownKeys.has(key) || isOddDate(key, value));
  const shared = { type: 'memory', user_id: userId, created_at: created } as const;
  yield {
    ...shared,
    id,
    content: isEmptyItem ? '' : body.toWellFormed(),
    title,
    ...(item === undefined ? { external_id: externalId } : { item, value: fields['value'] ?? null }),
    memory_type: lineIn(context, one('type'), 128) || 'note',
    tags: tagsIn(
      context,
      listOf(fields['tags']).map((tag) => plainOf(tag).replace(/^#/, '')),
    ),
    metadata: metadataOf(context, Object.fromEntries(own)),
    updated_at: timeIn(context, fields['modified']) ?? created,
  };
  for (const [, to] of block.matchAll(WIKILINK)) links.push({ src: id, to: to!, type: 'mentions' });
  for (const line of body.split('\n')) {
    const [, category, fact] = OBSERVATION.exec(line) ?? [];
    if (category !== undefined && fact !== undefined && !/^[ xX-]$/.test(category)) {
      const factId = idOf('notes', userId, externalId, fact);
      const tags = tagsIn(context, fact.match(/(?<=\s)#[\w/-]+/g)?.map((tag) => tag.slice(1)) ?? []);
      yield { ...shared, id: factId, content: fact.toWellFormed(), title, memory_type: lineOf(category, 128), tags };
      links.push({ src: factId, to: path, type: 'derived_from' });
    }
    const relation = RELATION.exec(line);
    if (relation !== null) {
      const word = relation[1]!.trim().toLowerCase().replaceAll(/[ -]/g, '_');
      links.push({ src: id, to: relation[2]!, type: Object.hasOwn(LINK_TYPES, word) ? LINK_TYPES[word]! : 'mentions' });
    }
    for (const [, to] of line.slice(relation?.[0].length ?? 0).matchAll(WIKILINK))
      links.push({ src: id, to: to!, type: 'mentions' });
  }
}

/**
 * Greatest length of front matter, in UTF-16 code units; a longer block counts as text of the note. A note that Cairn
 * exported has the value and the metadata of an item there.
 */
const LONGEST_FRONT_MATTER = 2 * 1024 * 1024;

/** Keys of front matter that become fields of a memory; all others become metadata. */
const OWN_KEYS = new Set(['title', 'type', 'tags', 'permalink', 'created', 'modified']);

/** Keys of front matter that become fields of a memory if a Markdown export of Cairn wrote them for an item. */
const OWN_KEYS_OF_ITEM = new Set([...OWN_KEYS, 'item', 'value']);

/** Reads the namespace and the key of an item, as a Markdown export writes them; undefined for anything else. */
function itemOf(value: unknown): { readonly namespace: string; readonly key: string } | undefined {
  if (typeof value !== 'object' || value === null || Object.keys(value).length !== 2) return undefined;
  const { namespace, key } = value as { readonly namespace?: unknown; readonly key?: unknown };
  return typeof namespace === 'string' && typeof key === 'string' ? { namespace, key } : undefined;
}

/** Tells whether a date of the front matter cannot be read; it then stays in the metadata as it is written. */
function isOddDate(key: string, value: unknown): boolean {
  return ['created', 'modified'].includes(key) && value !== null && timeOf(value) === undefined;
}

/**
 * Reads the fields of a note's front matter, nested ones too. If it is not valid YAML, reads its plain lines and counts
 * the loss.
 */
function frontMatterOf(context: ImportContext, text: string) {
  const { matter, body, block } = splitFrontMatter(text, LONGEST_FRONT_MATTER);
  try {
    const document = parseDocument(block, { uniqueKeys: false, logLevel: 'silent' });
    const fields: unknown = document.toJS();
    const isObject = typeof fields === 'object' && fields !== null && !Array.isArray(fields);
    if (document.errors.length === 0 && (isObject || block.trim() === ''))
      return { fields: (fields ?? {}) as Readonly<Record<string, unknown>>, body, block };
  } catch {
    // It refers to too many other parts of itself.
  }
  lose(context, 'front matter that is no YAML, of which plain lines are read');
  const values = [...matter].map(([key, found]) => [key, found.length < 2 ? (found[0] ?? '') : found] as const);
  return { fields: Object.fromEntries(values) as Readonly<Record<string, unknown>>, body, block };
}

/** Returns a text, number or boolean as a text; '' for anything else. */
function plainOf(value: unknown): string {
  return ['string', 'number', 'boolean'].includes(typeof value) ? textOf(String(value)) : '';
}

/** Returns a list as it is; splits any other value, as a text, at commas. */
function listOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  return plainOf(value)
    .split(',')
    .map((one) => one.trim());
}

/** Folders of Markdown notes: Obsidian and basic-memory. */
import { splitFrontMatter } from '../../engine/index.ts';
import {
  type ForeignLine,
  idOf,
  type ImportContext,
  type ImportFormat,
  lineOf,
  problemOf,
  type SourceFile,
  tagsOf,
  timeOf,
} from './format.ts';

/** Link types of basic-memory's relations by their words; other relations become `mentions`. */
const LINK_TYPES: Readonly<Record<string, string>> = {
  depends_on: 'depends_on',
  requires: 'depends_on',
  supports: 'supports',
  derived_from: 'derived_from',
  same_as: 'same_as',
};
/** A bare link or an embed, without its heading and its alias. */
const WIKILINK = /\[\[([^\]|#\n]{1,300})(?:[#|][^\]\n]{0,300})?\]\]/g;
const OBSERVATION = /^\s*- \[([^\]\n]{1,60})\] (.+)$/;
const RELATION = /^\s*- ([\w -]{1,60}) \[\[([^\]|#\n]{1,300})[^\]\n]{0,300}\]\]/;

/** A note whose links wait until all notes are known. */
interface NotedLink {
  readonly src: string;
  readonly to: string;
  readonly type: string;
}

/**
 * A note is a memory, and each observation of basic-memory (`- [category] fact #tag`) is a memory derived from it.
 * Links lead to notes by their path, name, title, permalink or alias, whatever the case.
 */
export const notes: ImportFormat = {
  name: 'notes',
  title: 'a folder of Markdown notes: Obsidian, basic-memory',
  detect: ({ names }) => names.some((name) => name.endsWith('.md')),
  async *lines(context) {
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
      const dst = noteOf.get(to.trim().toLowerCase());
      if (dst === undefined) context.skip('a link to a note that is not there');
      else if (dst !== src && !known.has(`${src} ${dst} ${type}`)) {
        known.add(`${src} ${dst} ${type}`);
        yield { type: 'link', src, dst, link_type: type };
      }
    }
  },
};

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
  for await (const piece of file.texts()) {
    text += piece;
    if (text.length > 4 * 1024 * 1024) break;
  }
  const { matter, body } = splitFrontMatter(text.replaceAll('\r\n', '\n'));
  const problem = problemOf(body);
  if (problem !== undefined) return context.skip(problem);

  const userId = context.userId ?? '';
  const one = (key: string) => matter.get(key)?.[0] ?? '';
  const path = file.name.replace(/\.md$/, '');
  const base = path.slice(path.lastIndexOf('/') + 1);
  const title = lineOf(one('title') || base, 1_024);
  const externalId = lineOf(one('permalink') || path, 240);
  const id = idOf('notes', userId, externalId);
  for (const name of [path, base, title, one('permalink'), ...(matter.get('aliases') ?? [])])
    if (name !== '' && !noteOf.has(name.toLowerCase())) noteOf.set(name.toLowerCase(), id);
  const created = timeOf(one('created')) ?? null;
  const own = [...matter].filter(([key]) => !OWN_KEYS.has(key)).slice(0, 50);
  const shared = { type: 'memory', user_id: userId, created_at: created } as const;
  yield {
    ...shared,
    id,
    content: body.toWellFormed(),
    title,
    external_id: externalId,
    memory_type: lineOf(one('type'), 128) || 'note',
    tags: tagsOf((matter.get('tags') ?? []).map((tag) => tag.replace(/^#/, ''))),
    metadata: Object.fromEntries(own.map(([key, values]) => [key, lineOf(values.join(', '), 200)])),
    updated_at: timeOf(one('modified')) ?? created,
  };
  for (const line of body.split('\n')) {
    const [, category, fact] = OBSERVATION.exec(line) ?? [];
    if (category !== undefined && fact !== undefined && !/^[ xX-]$/.test(category)) {
      const factId = idOf('notes', userId, externalId, fact);
      const tags = tagsOf(fact.match(/(?<=\s)#[\w/-]+/g)?.map((tag) => tag.slice(1)) ?? []);
      yield { ...shared, id: factId, content: fact.toWellFormed(), title, memory_type: lineOf(category, 128), tags };
      links.push({ src: factId, to: path, type: 'derived_from' });
    }
    const relation = RELATION.exec(line);
    if (relation !== null) {
      const word = relation[1]!.trim().toLowerCase().replaceAll(/[ -]/g, '_');
      links.push({ src: id, to: relation[2]!, type: LINK_TYPES[word] ?? 'mentions' });
    } else for (const [, to] of line.matchAll(WIKILINK)) links.push({ src: id, to: to!, type: 'mentions' });
  }
}

/** Keys of front matter that have fields of their own. */
const OWN_KEYS = new Set(['title', 'type', 'tags', 'permalink', 'created', 'modified', 'aliases']);

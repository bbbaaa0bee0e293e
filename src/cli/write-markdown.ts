import fs from 'node:fs';
import path from 'node:path';
import { Readable } from 'node:stream';
import { linesOf } from '../api/lines.ts';
import { CliError } from './cli-error.ts';
import { beginningOf } from '../engine/for-options.ts';

/** Longest line of an export that is read, in bytes. */
const MAX_LINE_BYTES = 16 * 1024 * 1024;

type Line = Readonly<Record<string, unknown>>;

/**
 * Writes an export as Markdown notes into a new or empty folder: one file for each memory that is not part of a
 * document, and for each document, named by its id, with YAML front matter as Obsidian and basic-memory read it. Links
 * between memories become `- type [[id]]` at the end of a note.
 * @returns the number of files that were written
 * @throws CliError for a folder that is not empty, and for a line of over 16 MiB
 */
export async function writeMarkdown(
  folder: string,
  bytes: AsyncIterable<Uint8Array>,
): Promise<{ readonly notes: number }> {
  fs.mkdirSync(folder, { recursive: true });
  if (fs.readdirSync(folder).length > 0) throw new CliError(`${folder} is not empty`);
  for (const name of ['memories', 'documents']) fs.mkdirSync(path.join(folder, name));
  const fileOf = (kind: string, id: unknown) => path.join(folder, kind, `${String(id).replaceAll(/[^\w-]/g, '')}.md`);
  let notes = 0;
  for await (const lines of linesOf(Readable.from(bytes), { maxBytes: MAX_LINE_BYTES })) {
    for (const line of lines) {
      if (line.bytes === null) throw new CliError(`line ${line.number} is too long`);
      const value = JSON.parse(line.bytes.toString()) as Line;
      if (value['type'] === 'memory' && value['document'] === undefined) {
        fs.writeFileSync(fileOf('memories', value['id']), noteOf(value, String(value['content'])), { mode: 0o600 });
        notes += 1;
      } else if (value['type'] === 'document') {
        fs.writeFileSync(fileOf('documents', value['id']), noteOf(value, ''), { mode: 0o600 });
        notes += 1;
      } else if (value['type'] === 'document_text') {
        fs.appendFileSync(fileOf('documents', value['document']), String(value['text']));
      } else if (value['type'] === 'link') {
        const file = fileOf('memories', value['src']);
        // A link of a part of a document is left out, since it describes the document's structure.
        if (fs.existsSync(file) && fs.existsSync(fileOf('memories', value['dst'])))
          fs.appendFileSync(file, `- ${String(value['link_type'])} [[${String(value['dst'])}]]\n`);
      }
    }
  }
  return { notes };
}

/**
 * Fields of a line that become fields of the front matter under the same names, unless they are empty. `item` has the
 * namespace and the key of an item, by which an import of the notes makes it one again.
 */
const PICKED = ['user_id', 'session_id', 'event_time', 'status', 'external_id', 'url', 'file_name', 'item', 'value'];
/** Names in the front matter that metadata must not take. */
const RESERVED = new Set(['title', 'type', 'tags', 'permalink', 'created', 'modified', 'metadata', ...PICKED]);

/**
 * Makes a note with its front matter. Every value is written as JSON, which is also YAML. Metadata under a reserved
 * name is put below `metadata`.
 */
function noteOf(line: Line, content: string): string {
  const title = (line['title'] as string | undefined) || beginningOf(content.split('\n', 1)[0]!, 80);
  const fields: Line = {
    title,
    type: line['memory_type'] ?? line['document_type'] ?? (line['type'] === 'document' ? 'document' : 'note'),
    tags: line['tags'] ?? [],
    permalink: line['id'],
    created: line['created_at'],
    modified: line['updated_at'],
    ...pick({ ...line, item: nameOf(line['item']) }, PICKED),
  };
  // Metadata with the name of a field above stands below a key of its own.
  const metadata = Object.entries((line['metadata'] ?? {}) as Line);
  const [others, alike] = [false, true].map((isAlike) =>
    Object.fromEntries(metadata.filter(([name]) => RESERVED.has(name) === isAlike)),
  );
  const all = { ...fields, ...others, ...(Object.keys(alike!).length === 0 ? {} : { metadata: alike }) };
  const matter = Object.entries(all)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `${/^[A-Za-z_][\w-]*$/.test(key) ? key : JSON.stringify(key)}: ${JSON.stringify(value)}`)
    .join('\n');
  return `---\n${matter}\n---\n\n${content}${content === '' ? '' : '\n\n'}`;
}

/** Returns the name of an item without its lifetime, since a note has no expiry that a read could move. */
function nameOf(item: unknown): unknown {
  return item === undefined || item === null ? item : { ...item, ttl_ms: undefined };
}

function pick(line: Line, names: readonly string[]): Line {
  // An empty text is nothing, except as the value of an item.
  const isEmpty = (name: string) => [undefined, null, ...(name === 'value' ? [] : [''])].includes(line[name] as string);
  const found = names.filter((name) => !isEmpty(name));
  return Object.fromEntries(found.map((name) => [name, line[name]]));
}

import { v5 as uuidv5 } from 'uuid';

/** A file of a source: of a folder, of an archive, or the only one. */
export interface SourceFile {
  /** Path below the folder or in the archive, with slashes. */
  readonly name: string;
  /** Time of the file's last change, Unix ms; null in an archive. */
  readonly modifiedAt: number | null;
  /** Reads the file as UTF-8, in pieces. */
  texts(): AsyncIterable<string>;
}

/** What is imported: a file, an archive or a folder. */
export interface ImportSource {
  /** Names of its files. */
  readonly names: readonly string[];
  /** Opens its files one after the other, those with names that pass. */
  files(isWanted: (name: string) => boolean): AsyncIterable<SourceFile>;
  /** First characters of the only file; '' for an archive and a folder. */
  readonly head: string;
}

/** What an importer works with. */
export interface ImportContext {
  readonly source: ImportSource;
  /** User who owns what is imported; undefined leaves the user of the source, or nobody. */
  readonly userId: string | undefined;
  /** Counts something of the source that was read. */
  read(): void;
  /** Counts something that is not imported, by its reason. */
  skip(reason: string): void;
  /** Counts a field that is not known, and therefore passed over. */
  passOver(field: string): void;
  /** Tells of something that should be imported and is damaged; the message names its file and its place. */
  damaged(message: string): void;
}

/** A line of the portable form, as JSON; a memory without `state` is linked by the server. */
export type ForeignLine = { readonly type: 'memory' | 'link'; readonly [field: string]: unknown };

/** A format of another program. */
export interface ImportFormat {
  readonly name: string;
  /** What it is, for the help. */
  readonly title: string;
  /** Tells whether a source looks like it. */
  detect(source: Pick<ImportSource, 'names' | 'head'>): boolean;
  /** Reads the source as lines. Throws CliError for a file that was cut or is damaged, after the lines before. */
  lines(context: ImportContext): AsyncGenerator<ForeignLine>;
}

/** The records in an archive of mem0's OpenMemory; its memories.json tells the same in another form. */
export const OPENMEMORY_RECORDS = /(^|\/)memories\.jsonl\.gz$/;

/** Whether an archive is one of mem0's OpenMemory. */
export function isOpenMemory(names: readonly string[]): boolean {
  return names.some((name) => OPENMEMORY_RECORDS.test(name));
}

const NAMESPACE = '7c0d9a52-5a0a-4f0e-9a39-3a8a3f6f3d10';
/** Longest text of a memory, in bytes of UTF-8. */
const MAX_CONTENT_BYTES = 256 * 1024;

/**
 * Makes a UUID (version 5) from names that together identify a record of a source. Equal names in the same order give
 * the same id, so that a second import adds nothing twice.
 */
export function idOf(...names: readonly string[]): string {
  return uuidv5(names.join('\n'), NAMESPACE);
}

/** Counts a part of something that is imported without it. */
export function lose(context: ImportContext, part: string): void {
  context.read();
  context.skip(`${part} (what it belongs to is imported)`);
}

/** A time as `timeOf` reads it; one that cannot be read is counted, and none at all is not. */
export function timeIn(context: ImportContext, value: unknown): number | undefined {
  const time = timeOf(value);
  if (time === undefined && value !== undefined && value !== null && value !== '') lose(context, 'a date that is none');
  return time;
}

/** A text on one line as `lineOf` makes it; one that is cut because it is too long is counted. */
export function lineIn(context: ImportContext, value: unknown, most: number): string {
  const line = lineOf(value, most);
  if (line.length === most && textOf(value).trim().length > most) lose(context, 'the end of a name that is too long');
  return line;
}

/** Tells why a text cannot be a memory; undefined if it can. */
export function problemOf(content: string): string | undefined {
  if (content.trim() === '') return 'without text';
  if (Buffer.byteLength(content) > MAX_CONTENT_BYTES) return 'longer than 256 KiB: use cairn ingest';
  return undefined;
}

/** The text of a value that should be one, well-formed; '' for any other. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value.toWellFormed() : '';
}

/** A time in seconds, milliseconds or ISO 8601 as Unix ms; undefined if it is none. */
export function timeOf(value: unknown): number | undefined {
  const ms =
    typeof value === 'number'
      ? Math.round(value < 100_000_000_000 ? value * 1000 : value)
      : typeof value === 'string'
        ? Date.parse(value)
        : Number.NaN;
  return Number.isFinite(ms) && ms > -62_135_596_800_000 && ms < 253_402_300_800_000 ? ms : undefined;
}

/** Most tags of a memory, and the most characters of each. */
const MOST_TAGS = 64;
const TAG_CHARACTERS = 128;

/** Names of a list that can be tags: at most 64, each once and of at most 128 characters; others are counted. */
export function tagsIn(context: ImportContext, value: unknown): string[] {
  const whole = (Array.isArray(value) ? value : []).map((name) =>
    textOf(name)
      .replaceAll(/\p{Cc}/gu, ' ')
      .trim(),
  );
  const names = [...new Set(whole)].filter((name) => name !== '');
  const tags = [...new Set(names.map((name) => name.slice(0, TAG_CHARACTERS).toWellFormed()))].slice(0, MOST_TAGS);
  names.slice(MOST_TAGS).forEach(() => lose(context, `a tag beyond the first ${MOST_TAGS}`));
  if (names.some((name) => name.length > TAG_CHARACTERS)) lose(context, 'the end of a tag that is too long');
  return tags;
}

/** Longest metadata, in bytes of JSON. */
const METADATA_BYTES = 16_000;
/** Most levels of lists and objects that the server takes in metadata and in the value of an item. */
const MOST_LEVELS = 64;

/** What can be metadata. Cairn has a meaning of its own for `sector`, so that of the source has another name. */
export function metadataOf(context: ImportContext, value: unknown): Readonly<Record<string, unknown>> {
  const renamed = Object.entries(fieldsOf(value)).map(
    ([name, one]) => [name === 'sector' ? 'source_sector' : name, one] as const,
  );
  const metadata = Object.fromEntries(renamed);
  const isDeep = isTooDeep(metadata);
  if (!isDeep && Buffer.byteLength(JSON.stringify(metadata)) <= METADATA_BYTES) return metadata;
  lose(context, isDeep ? 'metadata that is nested too deeply' : 'metadata over 16 KiB');
  return {};
}

/** Whether a value has more than `levels` levels of lists and objects, as one that contains itself has. */
export function isTooDeep(value: unknown, levels = MOST_LEVELS): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((one) => isTooDeep(one, levels - 1));
}

/**
 * The text of a value on one line: each run of control characters and white space becomes one blank, and what is beyond
 * `most` UTF-16 units is cut. '' for what is no text.
 */
export function lineOf(value: unknown, most: number): string {
  return textOf(value)
    .replaceAll(/[\p{Cc}\s]+/gu, ' ')
    .trim()
    .slice(0, most)
    .toWellFormed();
}

/** Returns an object's own fields; an empty object for anything else. */
export function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}

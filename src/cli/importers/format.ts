import { v5 as uuidv5 } from 'uuid';
import { beginningOf } from '../../engine/for-options.ts';

/** A file of a source, which is a folder, an archive or a single file. */
export interface SourceFile {
  /** Path below the folder or in the archive, with forward slashes. */
  readonly name: string;
  /**
   * Reads the file as UTF-8, in pieces.
   * @throws CliError if it cannot be read, or is damaged
   */
  texts(): AsyncIterable<string>;
}

/** The source of an import: a file, an archive or a folder. */
export interface ImportSource {
  readonly kind: 'file' | 'archive' | 'folder';
  /** Names of its files; an archive may have a name twice. */
  readonly names: readonly string[];
  /**
   * One reason for each entry of a folder that is not opened: a symbolic link, another entry that is no regular file,
   * or a folder that cannot be read.
   */
  readonly leftOut: readonly string[];
  /** Opens the files whose names pass `isWanted`, one after the other. */
  files(isWanted: (name: string) => boolean): AsyncIterable<SourceFile>;
  /**
   * First 64 Ki characters of the only file, or of the first file with conversations, by which the format is
   * recognised; '' if there is neither, or it cannot be read.
   */
  readonly head: string;
}

/** What an importer receives: the source, the user, and functions that count what was read, skipped or damaged. */
export interface ImportContext {
  readonly source: ImportSource;
  /** User who owns what is imported; undefined keeps the user that the source names, if any. */
  readonly userId: string | undefined;
  /** Counts one record of the source as read. */
  read(): void;
  /** Counts a record, or a part of one, that is not imported, under this reason. */
  skip(reason: string): void;
  /** Counts a field of a record that this importer does not know and therefore ignores. */
  passOver(field: string): void;
  /** Reports a record that should be imported but is damaged. The message names its file and its place in it. */
  damaged(message: string): void;
}

/**
 * A line of Cairn's export format that an importer makes from a record of another program, before it becomes JSON text.
 * For a memory without `state`, the server makes vectors and links.
 */
export type ForeignLine = { readonly type: 'memory' | 'link'; readonly [field: string]: unknown };

/** A format in which another program exports its data. */
export interface ImportFormat {
  readonly name: string;
  /** Tells whether a source looks like this format. */
  detect(source: Pick<ImportSource, 'names' | 'head'>): boolean;
  /**
   * Reads the source and yields lines to import. For a file that was cut or is damaged, it throws CliError after it has
   * yielded the lines before that place, or calls `damaged` if it can go on.
   */
  lines(context: ImportContext): AsyncGenerator<ForeignLine>;
}

/** Matches the names of files that contain conversations. */
export const CONVERSATIONS = /(^|\/)conversations(-\d+)?\.json$/;

/**
 * Matches the name of the file of records in an archive of mem0's OpenMemory. The archive's memories.json contains the
 * same records in another form.
 */
export const OPENMEMORY_RECORDS = /(^|\/)memories\.jsonl\.gz$/;

/** Tells whether the names are those of an archive of mem0's OpenMemory. */
export function isOpenMemory(names: readonly string[]): boolean {
  return names.some((name) => OPENMEMORY_RECORDS.test(name));
}

const NAMESPACE = '7c0d9a52-5a0a-4f0e-9a39-3a8a3f6f3d10';
/** Longest text of a memory that the server accepts, in bytes of UTF-8. */
const MAX_CONTENT_BYTES = 256 * 1024;

/**
 * Makes a UUID (version 5) from names that together identify a record of a source. Equal names in the same order give
 * the same id, so that a second import stores nothing twice.
 */
export function idOf(...names: readonly string[]): string {
  return uuidv5(names.join('\n'), NAMESPACE);
}

/**
 * Counts the fields of a record that are not in `known`, and are therefore not imported. Fields with an empty value are
 * not counted.
 * @param within prefix of the names under which the fields are counted, such as `metadata.`
 */
export function passOverOthers(
  context: ImportContext,
  record: Readonly<Record<string, unknown>>,
  known: readonly string[],
  within = '',
): void {
  for (const [field, value] of Object.entries(record))
    if (!known.includes(field) && !isEmpty(value)) context.passOver(within + field);
}

function isEmpty(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) return Object.keys(value).length === 0;
  return value === null || value === undefined || value === '';
}

/**
 * Counts a part of a record as lost: as read, and as skipped for the reason `part`. The record to which the part
 * belongs is imported without it.
 */
export function lose(context: ImportContext, part: string): void {
  context.read();
  context.skip(`${part} (what it belongs to is imported)`);
}

/**
 * Converts a value to Unix ms as `timeOf` does. If it cannot be read as a time, it is counted as lost and the result is
 * undefined. null, undefined and '' also give undefined, but are not counted.
 */
export function timeIn(context: ImportContext, value: unknown): number | undefined {
  const time = timeOf(value);
  if (time === undefined && value !== undefined && value !== null && value !== '') lose(context, 'a date that is none');
  return time;
}

/**
 * Returns a text on one line as `lineOf` does, and cuts it to `most` UTF-16 code units. If something was cut, or the
 * value is neither a text nor a number nor missing, the loss is counted.
 */
export function lineIn(context: ImportContext, value: unknown, most: number): string {
  const line = lineOf(value, most);
  if (isOdd(value)) lose(context, 'a field that should be a text and is none');
  if (line.length === most && textOf(value).trim().length > most) lose(context, 'the end of a name that is too long');
  return line;
}

/** Returns why a text cannot be a memory (it is blank, or over 256 KiB); undefined if it can. */
export function problemOf(content: string): string | undefined {
  if (content.trim() === '') return 'without text';
  if (Buffer.byteLength(content) > MAX_CONTENT_BYTES) return 'longer than 256 KiB: use cairn ingest';
  return undefined;
}

/** Returns a string as well-formed Unicode, and a number in digits; '' for anything else. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value.toWellFormed() : typeof value === 'number' ? String(value) : '';
}

/**
 * Converts a number of seconds or milliseconds, or a text that `Date.parse` reads (such as ISO 8601), to Unix ms;
 * undefined for anything else, and for a time outside of the years 1 to 9999. Numbers under 100 billion are seconds.
 */
export function timeOf(value: unknown): number | undefined {
  const ms =
    typeof value === 'number'
      ? Math.round(value < 100_000_000_000 ? value * 1000 : value)
      : typeof value === 'string'
        ? Date.parse(value)
        : Number.NaN;
  return Number.isFinite(ms) && ms > -62_135_596_800_000 && ms < 253_402_300_800_000 ? ms : undefined;
}

/** Greatest number of tags of a memory that an import keeps, as many as the server accepts. */
const MAX_TAGS = 64;
/** Greatest length of a tag, in UTF-16 code units; an import cuts longer ones. */
const TAG_CHARACTERS = 128;

/**
 * Returns names as tags: at most 64, without duplicates, each of at most 128 UTF-16 code units. If tags or ends of tags
 * are left out, or a value is not a text, the loss is counted. A text instead of a list is split at commas.
 */
export function tagsIn(context: ImportContext, value: unknown): string[] {
  const values: readonly unknown[] = Array.isArray(value) ? value : textOf(value).split(',');
  if ((!Array.isArray(value) && isOdd(value)) || values.some(isOdd)) lose(context, 'a tag that is no text');
  const whole = values.map((name) =>
    textOf(name)
      .replaceAll(/\p{Cc}/gu, ' ')
      .trim(),
  );
  const names = [...new Set(whole)].filter((name) => name !== '');
  const tags = [...new Set(names.map((name) => beginningOf(name, TAG_CHARACTERS)))].slice(0, MAX_TAGS);
  names.slice(MAX_TAGS).forEach(() => lose(context, `a tag beyond the first ${MAX_TAGS}`));
  if (names.some((name) => name.length > TAG_CHARACTERS)) lose(context, 'the end of a tag that is too long');
  return tags;
}

/** Tells whether a value is present but is neither a text nor a number. */
function isOdd(value: unknown): boolean {
  return !['string', 'number', 'undefined'].includes(typeof value) && value !== null;
}

/** Greatest size of metadata that is imported, in bytes of JSON. */
const METADATA_BYTES = 16_000;
/** Greatest number of levels of lists and objects that the server accepts in metadata and in the value of an item. */
const MAX_LEVELS = 64;

/**
 * Returns the fields of a value as metadata. If they have more than 64 levels or 16,000 bytes of JSON, or the value is
 * not an object, counts the loss and returns {}; null, undefined and '' also give {}, but are not counted. The source's
 * field `sector` is renamed to `source_sector`, since Cairn gives `sector` a meaning of its own.
 */
export function metadataOf(context: ImportContext, value: unknown): Readonly<Record<string, unknown>> {
  if (Array.isArray(value) || (typeof value !== 'object' && value !== undefined && value !== ''))
    lose(context, 'metadata that is no object');
  const renamed = Object.entries(fieldsOf(value)).map(
    ([name, one]) => [name === 'sector' ? 'source_sector' : name, one] as const,
  );
  const metadata = Object.fromEntries(renamed);
  const isDeep = isTooDeep(metadata);
  if (!isDeep && Buffer.byteLength(JSON.stringify(metadata)) <= METADATA_BYTES) return metadata;
  lose(context, isDeep ? 'metadata that is nested too deeply' : 'metadata over 16,000 bytes');
  return {};
}

/** Tells whether a value has more than `levels` levels of lists and objects; true for one that contains itself. */
export function isTooDeep(value: unknown, levels = MAX_LEVELS): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((one) => isTooDeep(one, levels - 1));
}

/**
 * Returns the text of a value on one line: each run of control characters and white space becomes one space, and what
 * exceeds `most` UTF-16 code units is cut. It is '' for a value that is not a text or a number.
 */
export function lineOf(value: unknown, most: number): string {
  const line = textOf(value)
    .replaceAll(/[\p{Cc}\s]+/gu, ' ')
    .trim();
  return beginningOf(line, most);
}

/** Returns the own fields of an object; an empty object for anything else. */
export function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}

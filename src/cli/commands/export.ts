import fs from 'node:fs';
import os from 'node:os';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { CliError } from '../cli-error.ts';
import { connect, type ConnectionOptions } from '../client.ts';
import { seal } from '../sealed-file.ts';
import { count, print } from '../terminal.ts';
import { writeMarkdown } from '../write-markdown.ts';

export interface ExportCommandOptions extends ConnectionOptions {
  readonly user?: string;
  readonly session?: string;
  readonly tag?: readonly string[];
  readonly type?: readonly string[];
  readonly from?: number | string;
  readonly to?: number | string;
  readonly vectors?: boolean;
  readonly markdown?: boolean;
  readonly passphraseFile?: string;
}

/**
 * Reads the passphrase from the named file, or else from CAIRN_PASSPHRASE; undefined if neither is given.
 * @throws CliError for an empty passphrase
 */
export function passphraseOf({ passphraseFile }: Pick<ExportCommandOptions, 'passphraseFile'>): string | undefined {
  const named =
    passphraseFile === undefined ? process.env['CAIRN_PASSPHRASE'] : fs.readFileSync(passphraseFile, 'utf8');
  const passphrase = named?.replace(/\r?\n$/, '');
  if (passphrase === '') throw new CliError('the passphrase is empty', { exitCode: 2 });
  return passphrase;
}

/**
 * Runs `cairn export FILE`: writes all data as lines of JSON, compressed if the name ends in `.gz`, and encrypted if
 * there is a passphrase. The file gets its name once it is complete; `-` is standard output. With `markdown`, FILE is a
 * new or empty folder of notes, in which those written so far stay if the export breaks off.
 * @throws CliError if the file exists, or FILE.partial, its name until it is complete; if the export breaks off;
 *   and for a passphrase with `markdown`, whose notes are plain text
 */
export async function exportData(target: string, options: ExportCommandOptions): Promise<void> {
  const passphrase = passphraseOf(options);
  if (options.markdown && passphrase !== undefined) {
    const named = options.passphraseFile === undefined ? 'CAIRN_PASSPHRASE is set' : '--passphrase-file';
    throw new CliError(`${named}: notes of --markdown cannot be encrypted; nothing was exported`, { exitCode: 2 });
  }
  const lines = connect(options).receive(`/export?${queryOf(options).toString()}`);
  const watched = watchEnd(lines);
  if (options.markdown) {
    const written = await writeMarkdown(target, watched.bytes);
    const { counts, left_out: leftOut = {} } = watched.end();
    const inLinesAlone = Object.fromEntries(NOT_IN_NOTES.map((type) => [type, counts[type] ?? 0]));
    const shown = Object.entries(counts).filter(([type]) => !(type in inLinesAlone));
    return printCounts({
      counts: { ...Object.fromEntries(shown), ...written },
      left_out: { ...inLinesAlone, ...leftOut },
    });
  }
  const isZipped = target.endsWith('.gz');
  const plain = isZipped ? zipped(watched.bytes) : watched.bytes;
  const bytes = passphrase === undefined ? plain : seal(plain, passphrase);
  if (target === '-') {
    await pipeline(Readable.from(bytes), process.stdout, { end: false });
    watched.end();
    return;
  }
  if (fs.existsSync(target)) throw new CliError(`${target} exists already`);
  const partial = `${target}.partial`;
  const fd = openNew(partial);
  const remove = () => fs.rmSync(partial, { force: true });
  const stopAt = (signal: NodeJS.Signals) => {
    remove();
    process.exit(128 + os.constants.signals[signal]);
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, stopAt);
  try {
    await pipeline(Readable.from(bytes), fs.createWriteStream(partial, { fd, flush: true }));
    const end = watched.end();
    fs.renameSync(partial, target);
    printCounts(end);
  } catch (error) {
    remove();
    throw error;
  } finally {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.off(signal, stopAt);
  }
  if (passphrase === undefined) print(`${target} is plain text: keep it as you keep the memories`);
}

/**
 * Opens a file for writing that does not exist yet.
 * @throws CliError if it exists
 */
function openNew(file: string): number {
  try {
    return fs.openSync(file, 'wx', 0o600);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    const message = `${file} exists already: if it was left by an export that was killed, remove it`;
    throw new CliError(message, { cause: error });
  }
}

function queryOf({ user, session, tag = [], type = [], from, to, vectors }: ExportCommandOptions): URLSearchParams {
  const query = new URLSearchParams();
  if (user !== undefined) query.set('user_id', user);
  if (session !== undefined) query.set('session_id', session);
  for (const name of tag) query.append('tags', name);
  for (const name of type) query.append('types', name);
  if (from !== undefined) query.set('from', String(from));
  if (to !== undefined) query.set('to', String(to));
  if (vectors) query.set('vectors', 'true');
  return query;
}

function zipped(bytes: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  const gzip = createGzip();
  // An error ends the compressed stream, too, where it is thrown to the reader.
  pipeline(Readable.from(bytes), gzip).catch(() => {});
  return gzip;
}

interface EndLine {
  readonly counts: Readonly<Record<string, number>>;
  readonly left_out?: Readonly<Record<string, number>>;
}

/**
 * Wraps a stream of bytes: `bytes` yields them unchanged, and `end` returns the last line afterwards, which shows
 * whether the export is complete.
 */
function watchEnd(source: AsyncIterable<Uint8Array>) {
  let tail = Buffer.alloc(0);
  async function* bytes(): AsyncGenerator<Uint8Array> {
    for await (const piece of source) {
      tail = Buffer.concat([tail, piece]).subarray(-4_096);
      yield piece;
    }
  }
  return {
    bytes: bytes(),
    /**
     * Returns the last line of the export, parsed. Call it after all bytes were read.
     * @throws CliError if the export was cut before its last line
     */
    end(): EndLine {
      const line = tail.toString().trimEnd().split('\n').at(-1) ?? '';
      if (!line.startsWith('{"type":"end"')) throw new CliError('the export was cut before its end: run it again');
      return JSON.parse(line) as EndLine;
    },
  };
}

function printCounts({ counts, left_out = {} }: EndLine): void {
  const there = (numbers: EndLine['counts']) => Object.entries(numbers).filter(([, number]) => number > 0);
  const shown = there(counts).map(([name, number]) => `${name}: ${count(number)}`);
  print(shown.join(', ') || 'nothing to export');
  const left = there(left_out).map(([name, number]) => `${count(number)} ${LEFT_OUT[name] ?? name}`);
  if (left.length > 0) print(`left out: ${left.join(', ')}`);
}

/** Types of export lines that are left out of an export as Markdown notes. */
const NOT_IN_NOTES = ['setting', 'eval_set', 'standing_query', 'revision', 'session_item'] as const;

/** Words for messages about the kinds of data that an export leaves out, by the name that the server uses. */
const LEFT_OUT: Readonly<Record<string, string>> = {
  setting: 'settings',
  eval_set: 'evaluation sets',
  standing_query: 'standing queries',
  revision: 'earlier versions',
  session_item: 'items of session logs',
  documents_not_read: 'documents that were not read yet, or could not be',
  webhooks: 'webhooks, whose secrets stay here',
  consolidations: 'gathered memories, whose sources are there',
};

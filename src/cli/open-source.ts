import fs from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { crc32, createGunzip } from 'node:zlib';
import type { Readable } from 'node:stream';
import { open as openArchive, type Entry, type ZipFile } from 'yauzl';
import { CliError } from './cli-error.ts';
import { CONVERSATIONS, type ImportSource, type SourceFile } from './importers/format.ts';
import { isSealed, SEAL_BYTES, unseal } from './sealed-file.ts';

/** Length of the beginning of a file by which its format is recognised, in UTF-16 code units. */
const HEAD_CHARACTERS = 64 * 1024;
const PIECE_BYTES = 64 * 1024;
/** Greatest number of files in an archive or a folder. */
const MAX_FILES = 100_000;
/**
 * Greatest size of an unpacked file of an archive, or of the content of a gzip file in it, in bytes. It stops archives
 * that were made to exhaust the disk or the memory.
 */
const MAX_UNPACKED = 4 * 1024 * 1024 * 1024;

/**
 * Yields the bytes of a file, decrypted if it is encrypted and unpacked if it is gzip, as its first bytes show.
 * @throws CliError for an encrypted file without the right passphrase, and for a damaged one; the system's error if the
 *   file cannot be read
 */
export async function* openBytes(file: string, passphrase: string | undefined): AsyncGenerator<Uint8Array> {
  const start = readStart(file, SEAL_BYTES);
  const stored: AsyncIterable<Buffer> = fs.createReadStream(file);
  if (!isSealed(start)) {
    yield* isGzip(start) ? unzipped(stored) : stored;
    return;
  }
  if (passphrase === undefined)
    throw new CliError(`${file} is encrypted: set CAIRN_PASSPHRASE, or name a file with --passphrase-file`);
  yield* unsealed(unseal(stored, passphrase));
}

/** Tells whether a file is packed by gzip or encrypted, so that its size is not that of its content. */
export function isPacked(file: string): boolean {
  const start = readStart(file, SEAL_BYTES);
  return isGzip(start) || isSealed(start);
}

const isGzip = (start: Uint8Array) => start[0] === 0x1f && start[1] === 0x8b;

/** Yields the decrypted bytes of a file, unpacked if they are gzip. */
async function* unsealed(bytes: AsyncGenerator<Buffer>): AsyncGenerator<Uint8Array> {
  const first = await bytes.next();
  if (first.done) return;
  const whole = (async function* () {
    yield first.value;
    yield* bytes;
  })();
  yield* isGzip(first.value) ? unzipped(whole) : whole;
}

async function* unzipped(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const { Readable: Streams } = await import('node:stream');
  const gunzip = createGunzip();
  const source = Streams.from(bytes).on('error', (error) => gunzip.destroy(error));
  try {
    yield* source.pipe(gunzip) as AsyncIterable<Uint8Array>;
  } catch (cause) {
    if (cause instanceof CliError) throw cause;
    throw new CliError('the gzip file was cut or is damaged', { cause });
  }
}

const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

/**
 * Removes a byte order mark, which some editors on Windows write at the start of UTF-8. The mark may span several
 * pieces.
 */
export async function* withoutByteOrderMark(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let start: Buffer | undefined = Buffer.alloc(0);
  for await (const piece of pieces) {
    if (start === undefined) {
      yield piece;
      continue;
    }
    start = Buffer.concat([start, piece]);
    if (start.length < BYTE_ORDER_MARK.length) continue;
    yield afterByteOrderMark(start);
    start = undefined;
  }
  if (start !== undefined) yield start;
}

function afterByteOrderMark(start: Buffer): Buffer {
  const { length } = BYTE_ORDER_MARK;
  return start.subarray(0, length).equals(BYTE_ORDER_MARK) ? start.subarray(length) : start;
}

function readStart(file: string, bytes: number): Buffer {
  const handle = fs.openSync(file, 'r');
  try {
    const start = Buffer.alloc(bytes);
    return start.subarray(0, fs.readSync(handle, start, 0, bytes, 0));
  } finally {
    fs.closeSync(handle);
  }
}

/**
 * Opens a file, a ZIP archive or a folder to import from. The caller must close it.
 * @param options.mostUnpacked greatest size of an unpacked file of an archive, in bytes; 4 GiB by default
 * @throws CliError for a damaged archive, and for one or a folder with over 100,000 files; the system's error if the
 *   target does not exist or cannot be read
 */
export async function openSource(
  target: string,
  { mostUnpacked = MAX_UNPACKED }: { readonly mostUnpacked?: number } = {},
): Promise<ImportSource & { close(): void }> {
  if (fs.statSync(target).isDirectory()) return folderSource(target);
  const start = readStart(target, 4);
  if (start.equals(Buffer.from('PK\u0003\u0004', 'latin1'))) return archiveSource(target, mostUnpacked);
  const name = path.basename(target);
  const file: SourceFile = {
    name,
    texts: () => decoded(isPacked(target) ? openBytes(target, undefined) : piecesOf(target)),
  };
  return opened('file', [file]);
}

/** Makes a source of files, and reads the beginning of the file by which the source's format is recognised. */
async function opened(
  kind: ImportSource['kind'],
  files: readonly SourceFile[],
  { leftOut = [], close = () => {} }: { readonly leftOut?: readonly string[]; readonly close?: () => void } = {},
): Promise<ImportSource & { close(): void }> {
  const known = files.length === 1 ? files[0] : files.find(({ name }) => CONVERSATIONS.test(name));
  return {
    kind,
    names: files.map(({ name }) => name),
    leftOut,
    head: known === undefined ? '' : await headOf(known),
    async *files(isWanted) {
      for (const file of files) if (isWanted(file.name)) yield file;
    },
    close,
  };
}

/**
 * Returns the first 64 Ki characters of a file, even if its pieces are small. It is '' for an empty file, and for one
 * that cannot be read, which the import reports later.
 */
async function headOf({ texts }: SourceFile): Promise<string> {
  let head = '';
  try {
    for await (const text of texts()) {
      head += text;
      if (head.length >= HEAD_CHARACTERS) break;
    }
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
  }
  return head.slice(0, HEAD_CHARACTERS);
}

async function folderSource(folder: string): Promise<ImportSource & { close(): void }> {
  const names: string[] = [];
  const leftOut: string[] = [];
  // A recursive `readdir` would follow links to folders, out of this one and in circles.
  const visit = (inside: string): void => {
    let entries: fs.Dirent[];
    try {
      entries = fs.readdirSync(path.join(folder, inside), { withFileTypes: true });
    } catch (error) {
      if (inside === '') throw error;
      return void leftOut.push('a folder that cannot be read');
    }
    for (const entry of entries) {
      const name = inside === '' ? entry.name : `${inside}/${entry.name}`;
      if (entry.isDirectory()) visit(name);
      else if (entry.isFile()) names.push(name);
      else leftOut.push(entry.isSymbolicLink() ? 'a symbolic link' : 'no regular file');
    }
    if (names.length > MAX_FILES) throw new CliError(`${folder} has over ${MAX_FILES} files`);
  };
  visit('');
  names.sort();
  const files = names.map((name) => ({ name, texts: () => decoded(readable(path.join(folder, name), name)) }));
  return opened('folder', files, { leftOut });
}

/**
 * Yields the bytes of a file in a folder. If the file cannot be read, it throws a CliError with the file's name, so
 * that the other files can still be imported.
 */
async function* readable(file: string, name: string): AsyncGenerator<Uint8Array> {
  try {
    yield* fs.createReadStream(file) as AsyncIterable<Uint8Array>;
  } catch (cause) {
    throw new CliError(`${name} cannot be read: ${(cause as Error).message}`, { cause });
  }
}

async function archiveSource(target: string, mostUnpacked: number): Promise<ImportSource & { close(): void }> {
  const options = { lazyEntries: true, autoClose: false };
  const archive = await promisify<string, typeof options, ZipFile>(openArchive as never)(target, options).catch(
    (cause: Error) => Promise.reject(new CliError(`${target} is a damaged ZIP: ${cause.message}`, { cause })),
  );
  const entries: Entry[] = [];
  await new Promise<void>((resolve, reject) => {
    archive.on('entry', (entry: Entry) => {
      if (entries.length >= MAX_FILES) return reject(new CliError(`${target} has over ${MAX_FILES} files`));
      if (!entry.fileName.endsWith('/')) entries.push(entry);
      archive.readEntry();
    });
    archive.once('end', resolve).once('error', (cause: Error) => {
      reject(new CliError(`${target} is a damaged ZIP: ${cause.message}`, { cause }));
    });
    archive.readEntry();
  });
  const openEntry = promisify<Entry, Readable>(archive.openReadStream.bind(archive) as never);
  const tooLarge = (name: string) => new CliError(`${name} in ${target} is over ${mostUnpacked / 2 ** 30} GiB`);
  async function* bytesOf(name: string, entry: Entry): AsyncGenerator<Uint8Array> {
    if (entry.uncompressedSize > mostUnpacked) throw tooLarge(name);
    let sum = 0;
    try {
      for await (const piece of (await openEntry(entry)) as AsyncIterable<Uint8Array>) {
        sum = crc32(piece, sum);
        yield piece;
      }
    } catch (cause) {
      throw new CliError(`${name} in ${target} is damaged: ${(cause as Error).message}`, { cause });
    }
    // The library leaves checksums to its callers.
    if (sum !== entry.crc32) throw new CliError(`${name} in ${target} is damaged: its checksum is another one`);
  }
  /** Yields the unpacked bytes of a gzip file inside the archive. */
  async function* unzippedOf(name: string, entry: Entry): AsyncGenerator<Uint8Array> {
    let left = mostUnpacked;
    for await (const piece of unzipped(bytesOf(name, entry))) {
      left -= piece.length;
      if (left < 0) throw tooLarge(name);
      yield piece;
    }
  }
  const files = entries.map((entry): SourceFile => {
    const { fileName: name } = entry;
    const bytes = name.endsWith('.gz') ? unzippedOf : bytesOf;
    return { name, texts: () => decoded(bytes(name, entry)) };
  });
  return opened('archive', files, { close: () => archive.close() });
}

/**
 * Yields the bytes of a file in pieces that all use the same buffer, so a piece is valid only until the next one is
 * read. A stream would allocate a buffer for each piece, which the garbage collector would have to free.
 */
async function* piecesOf(file: string): AsyncGenerator<Uint8Array> {
  const handle = await fs.promises.open(file);
  try {
    const piece = Buffer.alloc(PIECE_BYTES);
    for (;;) {
      const { bytesRead } = await handle.read(piece, 0, PIECE_BYTES, null);
      if (bytesRead === 0) return;
      yield piece.subarray(0, bytesRead);
    }
  } finally {
    await handle.close();
  }
}

/** Decodes UTF-8, without a byte order mark. Malformed bytes become replacement characters. */
async function* decoded(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  for await (const piece of bytes) yield decoder.decode(piece, { stream: true });
  yield decoder.decode();
}

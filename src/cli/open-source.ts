import fs from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { crc32, createGunzip } from 'node:zlib';
import type { Readable } from 'node:stream';
import { open as openArchive, type Entry, type ZipFile } from 'yauzl';
import { CliError } from './cli-error.ts';
import type { ImportSource, SourceFile } from './importers/format.ts';
import { isSealed, SEAL_BYTES, unseal } from './sealed-file.ts';

/** Characters of a file by which its format is known. */
const HEAD_BYTES = 64 * 1024;
const PIECE_BYTES = 64 * 1024;
/** Most files of an archive or a folder. */
const MAX_FILES = 100_000;
/** Most bytes that a file of an archive, or what is in its gzip, may have when it is unpacked: a bomb ends there. */
const MAX_UNPACKED = 4 * 1024 * 1024 * 1024;

/**
 * Opens the bytes of a file: decrypts it if it is encrypted, and unpacks gzip, as the first bytes say.
 * @throws CliError for an encrypted file without a passphrase
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

const isGzip = (start: Uint8Array) => start[0] === 0x1f && start[1] === 0x8b;

/** The decrypted bytes, unpacked if they are gzip. */
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
 * Opens a file, a ZIP archive or a folder to import from. The caller closes it.
 * @param options.mostUnpacked most bytes that a file of an archive may have when it is unpacked; 4 GiB by default
 */
export async function openSource(
  target: string,
  { mostUnpacked = MAX_UNPACKED }: { readonly mostUnpacked?: number } = {},
): Promise<ImportSource & { close(): void }> {
  if (fs.statSync(target).isDirectory()) return folderSource(target);
  const start = readStart(target, SEAL_BYTES);
  if (start.subarray(0, 4).equals(Buffer.from('PK\u0003\u0004', 'latin1'))) return archiveSource(target, mostUnpacked);
  const name = path.basename(target);
  const file: SourceFile = {
    name,
    modifiedAt: fs.statSync(target).mtimeMs,
    texts: () => decoded(isGzip(start) || isSealed(start) ? openBytes(target, undefined) : piecesOf(target)),
  };
  return {
    names: [name],
    head: await headOf(target),
    async *files(isWanted) {
      if (isWanted(name)) yield file;
    },
    close: () => {},
  };
}

/** Decodes the beginning of a file, unpacked. */
async function headOf(file: string): Promise<string> {
  for await (const piece of openBytes(file, undefined)) return new TextDecoder().decode(piece.subarray(0, HEAD_BYTES));
  return '';
}

function folderSource(folder: string): ImportSource & { close(): void } {
  const names = fs
    .readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)).split(path.sep).join('/'))
    .sort();
  if (names.length > MAX_FILES) throw new CliError(`${folder} has over ${MAX_FILES} files`);
  return {
    names,
    head: '',
    async *files(isWanted) {
      for (const name of names.filter(isWanted)) {
        const file = path.join(folder, name);
        yield { name, modifiedAt: fs.statSync(file).mtimeMs, texts: () => decoded(fs.createReadStream(file)) };
      }
    },
    close: () => {},
  };
}

async function archiveSource(target: string, mostUnpacked: number): Promise<ImportSource & { close(): void }> {
  const options = { lazyEntries: true, autoClose: false };
  const archive = await promisify<string, typeof options, ZipFile>(openArchive as never)(target, options).catch(
    (cause: Error) => Promise.reject(new CliError(`${target} is a damaged ZIP: ${cause.message}`, { cause })),
  );
  const entries = new Map<string, Entry>();
  await new Promise<void>((resolve, reject) => {
    archive.on('entry', (entry: Entry) => {
      if (entries.size >= MAX_FILES) return reject(new CliError(`${target} has over ${MAX_FILES} files`));
      if (!entry.fileName.endsWith('/')) entries.set(entry.fileName, entry);
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
  /** The bytes in a gzip file of the archive. */
  async function* unzippedOf(name: string, entry: Entry): AsyncGenerator<Uint8Array> {
    let left = mostUnpacked;
    for await (const piece of unzipped(bytesOf(name, entry))) {
      left -= piece.length;
      if (left < 0) throw tooLarge(name);
      yield piece;
    }
  }
  return {
    names: [...entries.keys()],
    head: '',
    async *files(isWanted) {
      for (const [name, entry] of entries)
        if (isWanted(name)) {
          const bytes = name.endsWith('.gz') ? unzippedOf : bytesOf;
          yield { name, modifiedAt: null, texts: () => decoded(bytes(name, entry)) };
        }
    },
    close: () => archive.close(),
  };
}

/** Reads a file piece by piece into the same buffer: a stream would leave a buffer for each piece to the collector. */
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

/** Decodes UTF-8; a byte order mark is left out, and what is no UTF-8 becomes replacement characters. */
async function* decoded(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  for await (const piece of bytes) yield decoder.decode(piece, { stream: true });
  yield decoder.decode();
}

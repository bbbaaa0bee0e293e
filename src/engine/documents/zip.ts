import { constants, crc32, inflateRawSync } from 'node:zlib';
import { fromBufferPromise, getFileNameLowLevel, validateFileName, type Entry, type ZipFile } from 'yauzl';
import { DocumentError } from './document-error.ts';
import { PARSE_LIMITS } from './parsed-document.ts';

/** A zip archive in memory. Its directory was checked before anything was inflated. */
export interface ZipArchive {
  /**
   * Paths of the files in the archive, each once, in the order of the directory. Folders, and paths that are absolute
   * or lead out of the archive, are left out.
   */
  readonly names: readonly string[];
  /**
   * Inflates a file of the archive; the result is not cached. It is undefined if `names` does not have the file.
   * @throws DocumentError `corrupt_document` if the bytes contradict the directory, or are packed by an unusual method
   */
  read(name: string): Promise<Uint8Array | undefined>;
}

/**
 * Opens a zip archive and checks its directory, before anything is inflated.
 * @throws DocumentError `corrupt_document` if it is not a zip archive or its data is inconsistent; `encrypted_document`
 *   if a file needs a password; `document_too_large` if it would inflate beyond `PARSE_LIMITS`; `document_too_complex`
 *   if it has more than 2,000 files
 */
export async function openZip(bytes: Uint8Array): Promise<ZipArchive> {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const directory = await readDirectory(buffer);
  refuseBombs(directory.entries);
  const dataStarts = await findData(directory);
  // Of two files with one name the later counts, as in office programs.
  const files = new Map<string, StoredFile>();
  directory.entries.forEach((entry, index) => {
    const name = nameOf(entry);
    if (name !== null) files.set(name, { entry, start: dataStarts[index] as number });
  });
  return {
    names: [...files.keys()],
    read: async (name) => {
      const file = files.get(name);
      return file && inflate(buffer, file);
    },
  };
}

interface StoredFile {
  readonly entry: Entry;
  /** Offset in the archive at which the file's packed bytes begin. */
  readonly start: number;
}

interface Directory {
  readonly archive: ZipFile;
  /** Offset of the directory in the archive. No file's packed bytes may reach into it. */
  readonly start: number;
  readonly entries: readonly Entry[];
}

const STORED = 0;
const DEFLATED = 8;

async function readDirectory(buffer: Buffer): Promise<Directory> {
  try {
    // Names are decoded by hand: yauzl would refuse a whole archive for one odd name.
    const archive = await fromBufferPromise(buffer, { decodeStrings: false });
    if (archive.entryCount > PARSE_LIMITS.zipEntries) {
      throw new DocumentError(
        'document_too_complex',
        `The archive holds more than ${PARSE_LIMITS.zipEntries} files, which is the most that is read.`,
      );
    }
    const start = Number(archive.readEntryCursor);
    const entries: Entry[] = [];
    for await (const entry of archive.eachEntry()) {
      if (entry.isEncrypted()) throw encrypted();
      entries.push(entry);
    }
    return { archive, start, entries };
  } catch (error) {
    if (error instanceof DocumentError) throw error;
    if (error instanceof Error && error.message === 'strong encryption is not supported') throw encrypted();
    throw corrupt(error);
  }
}

/**
 * Refuses zip bombs: archives that would inflate beyond the limits, by the sizes in the directory. `inflate` checks
 * each file against its stated size.
 * @throws DocumentError `document_too_large`
 */
function refuseBombs(entries: readonly Entry[]): void {
  let inflated = 0;
  let packed = 0;
  for (const entry of entries) {
    inflated += entry.uncompressedSize;
    packed += entry.compressedSize;
    if (isBomb(entry.uncompressedSize, entry.compressedSize)) throw tooLarge();
  }
  if (inflated > PARSE_LIMITS.inflatedBytes || isBomb(inflated, packed)) throw tooLarge();
}

function isBomb(inflated: number, packed: number): boolean {
  return inflated > PARSE_LIMITS.ratioFreeBytes && inflated > packed * PARSE_LIMITS.zipRatio;
}

/**
 * Returns the offsets in the archive at which the entries' packed bytes begin, in the order of `entries`. Entries with
 * common bytes are refused, since they could inflate to far more than the archive's size allows.
 * @throws DocumentError `corrupt_document` for entries that have bytes in common with each other or with the directory
 */
async function findData({ archive, start, entries }: Directory): Promise<number[]> {
  const starts: number[] = [];
  try {
    for (const entry of entries) {
      starts.push((await archive.readLocalFileHeaderPromise(entry, { minimal: true })).fileDataStart);
    }
  } catch (error) {
    throw corrupt(error);
  }
  const extents = entries
    .map((entry, index) => ({
      from: entry.relativeOffsetOfLocalHeader,
      to: (starts[index] as number) + entry.compressedSize,
    }))
    .sort((a, b) => a.from - b.from);
  let free = 0;
  for (const { from, to } of extents) {
    if (from < free) throw corrupt();
    free = to;
  }
  if (free > start) throw corrupt();
  return starts;
}

/** Returns an entry's path; null for a folder, and for a path that is absolute or leads out of the archive. */
function nameOf(entry: Entry): string | null {
  const name = getFileNameLowLevel(entry.generalPurposeBitFlag, entry.fileNameRaw, entry.extraFields, false);
  return name.endsWith('/') || validateFileName(name) !== null ? null : name;
}

function inflate(buffer: Buffer, { entry, start }: StoredFile): Uint8Array {
  const packed = buffer.subarray(start, start + entry.compressedSize);
  const bytes = unpack(packed, entry);
  if (bytes.length !== entry.uncompressedSize || crc32(bytes) !== entry.crc32) throw corrupt();
  return bytes;
}

function unpack(packed: Buffer, entry: Entry): Uint8Array {
  if (entry.compressionMethod === STORED) return packed;
  if (entry.compressionMethod !== DEFLATED) {
    throw new DocumentError(
      'corrupt_document',
      'A part of the archive is packed by a method that documents do not use. Save it again with standard compression.',
    );
  }
  if (entry.uncompressedSize === 0) return new Uint8Array();
  try {
    // Inflating stops at the stated size, whatever the packed bytes hold.
    return inflateRawSync(packed, { maxOutputLength: entry.uncompressedSize, finishFlush: constants.Z_FINISH });
  } catch (error) {
    throw corrupt(error);
  }
}

function encrypted(): DocumentError {
  return new DocumentError(
    'encrypted_document',
    'The archive is protected by a password. Save it without one and hand it in again.',
  );
}

function tooLarge(): DocumentError {
  const inflated = PARSE_LIMITS.inflatedBytes / (1024 * 1024);
  const freely = PARSE_LIMITS.ratioFreeBytes / (1024 * 1024);
  return new DocumentError(
    'document_too_large',
    `The archive unpacks to more than ${inflated} MB, ` +
      `or to more than ${freely} MB and ${PARSE_LIMITS.zipRatio} times its size.`,
  );
}

function corrupt(cause?: unknown): DocumentError {
  return new DocumentError(
    'corrupt_document',
    'The archive is damaged or incomplete. Save the document again and hand in the new file.',
    { cause },
  );
}

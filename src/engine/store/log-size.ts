import fs from 'node:fs';

/** Bytes of the index's header that are read: two copies of what the log holds, and what of it was moved into the database. */
const HEADER_BYTES = 100;
/** A frame of the log is a page behind 24 bytes. */
const FRAME_HEADER_BYTES = 24;

/**
 * How much of the write-ahead log has yet to be moved into the database, as its index says that SQLite shares between processes
 * (https://www.sqlite.org/walformat.html, section 2.1; numbers are in the machine's own order). The log's file tells nothing of it: it is
 * written from its beginning again, and never shorter. A glance at a log that is being written may be off by a commit.
 * @returns Infinity where there is no index to ask
 */
export function unmovedLogBytes(file: string): number {
  const header = new ArrayBuffer(HEADER_BYTES);
  try {
    const index = fs.openSync(`${file}-shm`, 'r');
    try {
      if (fs.readSync(index, new Uint8Array(header)) < HEADER_BYTES) return Infinity;
    } finally {
      fs.closeSync(index);
    }
  } catch {
    return Infinity;
  }
  const numbers = new Uint32Array(header);
  const [frames, moved] = [numbers[4]!, numbers[24]!];
  const pageSize = new Uint16Array(header)[7]!;
  return Math.max(0, frames - moved) * ((pageSize === 1 ? 65_536 : pageSize) + FRAME_HEADER_BYTES);
}

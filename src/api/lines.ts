import { takeTurn } from '../engine/index.ts';
import type { Readable } from 'node:stream';

/** One line of an upload, without its line feed; a carriage return stays. */
export interface Line {
  /** Line number in the upload, counted from 1; blank lines count. */
  readonly number: number;
  /** Bytes of the line; null if it is longer than the limit. */
  readonly bytes: Buffer | null;
}

/**
 * Splits a stream of bytes into lines, and yields the lines that end in one chunk together. Blank lines are skipped;
 * the last line needs no line feed. It holds at most one line and one chunk, and lets other requests run in between, as
 * much of a body may arrive at once. It throws what the stream throws, so the unfinished last line of an aborted upload
 * is never yielded.
 * @param options `maxBytes` is the greatest length of a line without its line feed; a longer line is yielded with
 *   `bytes` null
 */
export async function* linesOf(
  stream: Readable,
  { maxBytes }: { readonly maxBytes: number },
): AsyncGenerator<readonly Line[]> {
  let number = 0;
  let parts: Buffer[] = [];
  let size = 0;
  const keep = (part: Buffer) => {
    size += part.length;
    if (size <= maxBytes) parts.push(part);
    else parts = [];
  };
  const finishInto = (lines: Line[]) => {
    number++;
    const bytes = size > maxBytes ? null : parts.length === 1 ? parts[0]! : Buffer.concat(parts);
    if (bytes === null || !isBlank(bytes)) lines.push({ number, bytes });
    parts = [];
    size = 0;
  };
  // If the caller leaves the loop early, the response is still to be written, so the connection must stay open.
  for await (const chunk of stream.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    const lines: Line[] = [];
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, start)) {
      keep(chunk.subarray(start, end));
      finishInto(lines);
      start = end + 1;
    }
    if (start < chunk.length) keep(chunk.subarray(start));
    if (lines.length > 0) yield lines;
    await takeTurn();
  }
  const last: Line[] = [];
  if (size > 0) finishInto(last);
  if (last.length > 0) yield last;
}

/**
 * Divides the lines that arrived together into groups of at most `size`, and lets other requests run between two
 * groups.
 */
export async function* groupsOf(
  batches: AsyncIterable<readonly Line[]>,
  size: number,
): AsyncGenerator<readonly Line[]> {
  for await (const lines of batches) {
    for (let at = 0; at < lines.length; at += size) {
      yield lines.slice(at, at + size);
      await takeTurn();
    }
  }
}

const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;
const SPACE = 32;

function isBlank(bytes: Buffer): boolean {
  return bytes.every((byte) => byte === SPACE || byte === CARRIAGE_RETURN);
}

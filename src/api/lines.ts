import type { Readable } from 'node:stream';

/** One line of an upload, without its line feed. Blank lines are counted and left out. */
export interface Line {
  /** From 1. */
  readonly number: number;
  /** null for a line over the limit, of which nothing was kept. */
  readonly bytes: Buffer | null;
}

/**
 * Cuts a stream of bytes into lines, and yields those that ended within one chunk together. Holds at most one line and one
 * chunk. Throws what the stream throws: of an upload that breaks off, the unfinished line is never yielded.
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
  // The response is still to be written when the loop is left early, so the connection must not be closed with it.
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
  }
  const last: Line[] = [];
  if (size > 0) finishInto(last);
  if (last.length > 0) yield last;
}

const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;
const SPACE = 32;

function isBlank(bytes: Buffer): boolean {
  return bytes.every((byte) => byte === SPACE || byte === CARRIAGE_RETURN);
}

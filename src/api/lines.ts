import type { Readable } from 'node:stream';
import { EngineError, takeTurn } from '../engine/index.ts';
import { GatheredBytes } from './gathered-bytes.ts';

/**
 * Greatest number of bytes of an unfinished line that may wait for their rest as long as the connection lives: programs
 * that write lines into a pipe hand over a block at a time, whose end may be anywhere in a line.
 */
const WAITING_BYTES = 64 * 1024;
/** Longest time that a longer line may take to arrive, for each MiB that a line may have (ms). */
const MS_PER_MIB = 25_000;
const MIB = 1024 * 1024;

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
 *   `bytes` null. `hold` is told after each chunk how many bytes of an unfinished line are kept in memory; what it
 *   throws ends the lines. `now` is a clock that never goes back (ms)
 * @throws EngineError `invalid`, with `hold` alone, if over 64 KiB of a line have come, and the stream was waited for
 *   longer than 25 s for each MiB of `maxBytes` since the line began: a client that sends a byte a minute would keep
 *   the memory otherwise
 */
export async function* linesOf(
  stream: Readable,
  {
    maxBytes,
    hold,
    now = () => performance.now(),
  }: { readonly maxBytes: number; readonly hold?: (bytes: number) => void; readonly now?: () => number },
): AsyncGenerator<readonly Line[]> {
  let number = 0;
  const line = new GatheredBytes();
  let isTooLong = false;
  /** Time for which the stream was waited for since the current line began (ms). */
  let waitedMs = 0;
  const longestMs = (maxBytes / MIB) * MS_PER_MIB;
  const keep = (part: Buffer) => {
    isTooLong ||= line.size + part.length > maxBytes;
    if (isTooLong) line.take();
    else line.add(part);
  };
  const finishInto = (lines: Line[]) => {
    number++;
    waitedMs = 0;
    const whole = line.take();
    if (isTooLong || !isBlank(whole)) lines.push({ number, bytes: isTooLong ? null : whole });
    isTooLong = false;
  };
  let doneAt = now();
  // If the caller leaves the loop early, the response is still to be written, so the connection must stay open.
  for await (const chunk of stream.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    if (line.size > 0) waitedMs += now() - doneAt;
    const lines: Line[] = [];
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, start)) {
      keep(chunk.subarray(start, end));
      finishInto(lines);
      start = end + 1;
    }
    if (start < chunk.length) keep(chunk.subarray(start));
    // A line that ended in this chunk counts until the caller is done with it.
    if (lines.length > 0) yield lines;
    hold?.(line.size);
    if (hold !== undefined && waitedMs > longestMs && line.size > WAITING_BYTES) throw tooSlow(number + 1, longestMs);
    await takeTurn();
    doneAt = now();
  }
  const last: Line[] = [];
  if (isTooLong || line.size > 0) finishInto(last);
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

function tooSlow(number: number, longestMs: number): EngineError {
  const seconds = Math.round(longestMs / 1000);
  return new EngineError(
    'invalid',
    `line ${number} did not arrive within ${seconds} s: send each line in one go, the time between two lines is free`,
  );
}

const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;
const SPACE = 32;

function isBlank(bytes: Buffer): boolean {
  return bytes.every((byte) => byte === SPACE || byte === CARRIAGE_RETURN);
}

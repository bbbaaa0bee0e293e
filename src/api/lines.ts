import type { Readable } from 'node:stream';
import { EngineError, takeTurn } from '../engine/index.ts';
import { GatheredBytes } from './gathered-bytes.ts';

/**
 * Greatest number of bytes of an unfinished line that may wait for their rest as long as the connection lives: programs
 * that write lines into a pipe pass on a block at a time, whose end may be anywhere in a line.
 */
const WAITING_BYTES = 64 * 1024;
/** Longest time that a longer line may take to arrive, for each MiB that a line may have (ms). */
const MS_PER_MIB = 25_000;
const MIB = 1024 * 1024;
/**
 * Greatest number of lines that are looked for in one go, blank ones included, and that are yielded together. It is a
 * multiple of the sizes of all groups (`groupsOf`), so that it cuts none of them in two unless lines are blank.
 */
const LINES_PER_STEP = 256;
/** Greatest number of blank lines in a row in an upload. Each costs time, and nothing else counts them. */
const MAX_BLANK_LINES = 100_000;

/** One line of an upload, without its line feed; a carriage return stays. */
export interface Line {
  /** Line number in the upload, counted from 1; blank lines count. */
  readonly number: number;
  /** Bytes of the line; null if it is longer than the limit. */
  readonly bytes: Buffer | null;
}

/**
 * Splits a stream of bytes into lines, and yields lines that end in one chunk together, at most 256 of them. Blank
 * lines, which have only spaces and carriage returns, are skipped; the last line needs no line feed. It holds at most
 * one line and one chunk, and lets other requests run in between, as much of a body may arrive at once. It throws what
 * the stream throws, so the unfinished last line of an aborted upload is never yielded.
 * @param options `maxBytes` is the greatest length of a line without its line feed; a longer line is yielded with
 *   `bytes` null. `hold` is told after each chunk how many bytes of an unfinished line are kept in memory; what it
 *   throws ends the lines. `idleMs` is the longest time for which the stream is waited for at a stretch (ms), after
 *   which it is destroyed; the time that the caller takes for the lines does not count. `now` is a clock that never
 *   goes back (ms)
 * @throws EngineError, only if `hold` is given: `invalid` if over 64 KiB of a line have come, and the stream was waited
 *   for longer than 25 s for each MiB of `maxBytes` since the line began, since a client that sends a byte a minute
 *   would keep the memory otherwise; `invalid` for more than 100,000 blank lines in a row
 */
export async function* linesOf(
  stream: Readable,
  {
    maxBytes,
    hold,
    idleMs,
    now = () => performance.now(),
  }: {
    readonly maxBytes: number;
    readonly hold?: (bytes: number) => void;
    readonly idleMs?: number;
    readonly now?: () => number;
  },
): AsyncGenerator<readonly Line[]> {
  const reader = new LineReader(maxBytes, hold === undefined ? Infinity : MAX_BLANK_LINES);
  /** Time for which the stream was waited for since the current line began (ms). */
  let waitedMs = 0;
  const longestMs = (maxBytes / MIB) * MS_PER_MIB;
  let doneAt = now();
  const startIdleTimer = () => (idleMs === undefined ? undefined : setTimeout(() => stream.destroy(), idleMs));
  let idle = startIdleTimer();
  try {
    // If the caller leaves the loop early, the response is still to be written, so the connection must stay open.
    for await (const chunk of stream.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      clearTimeout(idle);
      if (reader.size > 0) waitedMs += now() - doneAt;
      const before = reader.number;
      for (const lines of reader.linesIn(chunk)) {
        // A line that ended in this chunk counts until the caller is done with it.
        if (lines.length > 0) yield lines;
        await takeTurn();
      }
      if (reader.number > before) waitedMs = 0;
      hold?.(reader.size);
      if (hold !== undefined && waitedMs > longestMs && reader.size > WAITING_BYTES)
        throw tooSlow(reader.number + 1, longestMs);
      doneAt = now();
      idle = startIdleTimer();
    }
  } finally {
    clearTimeout(idle);
  }
  const last = reader.end();
  if (last.length > 0) yield last;
}

/** Finds the lines in the chunks of a stream. It keeps the beginning of a line whose end has not come yet. */
class LineReader {
  /** Number of lines that have ended, blank ones included. */
  number = 0;
  readonly #maxBytes: number;
  readonly #maxBlank: number;
  readonly #begun = new GatheredBytes();
  #isTooLong = false;
  /** Number of blank lines since the last line that is not blank. */
  #blank = 0;

  constructor(maxBytes: number, maxBlank: number) {
    this.#maxBytes = maxBytes;
    this.#maxBlank = maxBlank;
  }

  /** Number of bytes of an unfinished line that are kept. */
  get size(): number {
    return this.#begun.size;
  }

  /**
   * Yields the lines that end in a chunk in steps of at most 256 lines, blank ones included, so that a step may yield
   * no line. A line that also began in the chunk is a part of it, and not a copy.
   * @throws EngineError `invalid` for too many blank lines in a row
   */
  *linesIn(chunk: Buffer): Generator<Line[]> {
    let lines: Line[] = [];
    let inStep = 0;
    let start = 0;
    for (let end = endOfLine(chunk, start); end !== -1; end = endOfLine(chunk, start)) {
      const isBegun = this.#isTooLong || this.#begun.size > 0;
      if (isBegun) this.#keep(chunk.subarray(start, end));
      if (isBegun) this.#finishInto(lines);
      else if (isBlank(chunk, start, end)) this.#skip();
      else this.#push(lines, end - start > this.#maxBytes ? null : chunk.subarray(start, end));
      start = end + 1;
      if (++inStep < LINES_PER_STEP) continue;
      yield lines;
      lines = [];
      inStep = 0;
    }
    if (start < chunk.length) this.#keep(start === 0 ? chunk : chunk.subarray(start));
    yield lines;
  }

  /** Returns the last line in a list if it has no line feed and is not blank; else an empty list. */
  end(): Line[] {
    const last: Line[] = [];
    if (this.#isTooLong || this.#begun.size > 0) this.#finishInto(last);
    return last;
  }

  #keep(part: Buffer): void {
    this.#isTooLong ||= this.#begun.size + part.length > this.#maxBytes;
    if (this.#isTooLong) this.#begun.take();
    else this.#begun.add(part);
  }

  #finishInto(lines: Line[]): void {
    const whole = this.#begun.take();
    if (this.#isTooLong) this.#push(lines, null);
    else if (isBlank(whole, 0, whole.length)) this.#skip();
    else this.#push(lines, whole);
    this.#isTooLong = false;
  }

  #push(lines: Line[], bytes: Buffer | null): void {
    this.number += 1;
    this.#blank = 0;
    lines.push({ number: this.number, bytes });
  }

  #skip(): void {
    this.number += 1;
    this.#blank += 1;
    if (this.#blank <= this.#maxBlank) return;
    throw new EngineError(
      'invalid',
      `line ${this.number} is one of over ${this.#maxBlank} blank lines in a row: leave them out`,
    );
  }
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
    `line ${number} did not arrive within ${seconds} s: send each line in one go, and the next one when you have it`,
  );
}

const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;
const SPACE = 32;

/** Returns the offset of the first line feed from `start` on; -1 if there is none. */
function endOfLine(chunk: Buffer, start: number): number {
  // A search costs more than a short line, so the first byte is looked at without one.
  return chunk[start] === LINE_FEED ? start : chunk.indexOf(LINE_FEED, start);
}

function isBlank(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (bytes[at] !== SPACE && bytes[at] !== CARRIAGE_RETURN) return false;
  return true;
}

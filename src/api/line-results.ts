import type { Response } from 'express';
import { EngineError, takeTurn } from '../engine/index.ts';
import { awaitDrain } from './await-drain.ts';

/** Longest time for which an upload is waited for without a byte of it, after which it is given up (ms). */
export const IDLE_MS = 60_000;
/**
 * Greatest number of results in a JSON reply, and the number of their bytes from which it takes no further ones. They
 * are held in memory until the upload has ended. An NDJSON reply has no such limit.
 */
const MAX_JSON_RESULTS = 100_000;
const MAX_JSON_BYTES = 16 * 1024 * 1024;
/** Number of characters of results that are gathered before they become one piece of a JSON reply. */
const PIECE_CHARACTERS = 64 * 1024;

/** The results of the lines of an upload, which become its reply. */
export interface LineResults {
  /**
   * Checks that the reply can take the results of further lines.
   * @param line number of the first of them in the upload
   * @throws EngineError `too_large` if it cannot; the message says what to do about these lines
   */
  requireRoom(line: number): void;
  /** Adds the result of a line, to be sent or kept with the next flush. */
  push(result: object): void;
  /**
   * Sends the results added so far, and waits until the client can take more. In a JSON reply they are kept instead,
   * and counted among the bytes that the request holds in memory.
   * @throws EngineError `unavailable` in an NDJSON reply if the client left or reads nothing; in a JSON reply if they
   *   exceed these bytes, and they are kept nevertheless
   */
  flush(): Promise<void>;
  /** Sends the remaining results, and the summary after them. */
  end(summary: object): Promise<void>;
}

/**
 * Makes a sender of results that answers in NDJSON.
 * @param readerTimeoutMs time after which the connection of a client that reads nothing is closed
 */
export function streamedResults(response: Response, status: number, readerTimeoutMs: number): LineResults {
  let pending = '';
  const push = (line: object) => void (pending += `${JSON.stringify(line)}\n`);
  return {
    requireRoom() {},
    push,
    async flush() {
      if (!response.headersSent) response.writeHead(status, { 'content-type': 'application/x-ndjson; charset=utf-8' });
      const hasRoom = response.write(pending);
      pending = '';
      if (!hasRoom) await awaitDrain(response, readerTimeoutMs);
    },
    async end(summary) {
      if (!response.headersSent) response.writeHead(status, { 'content-type': 'application/x-ndjson; charset=utf-8' });
      push(summary);
      response.end(pending);
    },
  };
}

/**
 * Makes a sender of results that answers 202 with one JSON object: the fields of the summary, and the results as a list
 * `results`. They are kept as JSON text, and sent in pieces, between which other requests run.
 * @param options `hold` is told how many bytes the results take, see `BodyPlace`; the connection of a client that reads
 *   nothing for `readerTimeoutMs` is closed
 */
export function collectedResults(
  response: Response,
  { hold, readerTimeoutMs }: { readonly hold: (bytes: number) => void; readonly readerTimeoutMs: number },
): LineResults {
  const pieces: Buffer[] = [];
  let bytes = 0;
  let count = 0;
  let pending = '{"results":[';
  const keep = () => {
    const piece = Buffer.from(pending);
    pieces.push(piece);
    bytes += piece.length;
    pending = '';
  };
  return {
    requireRoom(line) {
      if (count < MAX_JSON_RESULTS && bytes + pending.length < MAX_JSON_BYTES) return;
      throw new EngineError(
        'too_large',
        `a JSON reply takes ${MAX_JSON_RESULTS} results, and none beyond 16 MiB: line ${line} and those after it are ` +
          'not stored; send them in another request, or ask for results with Accept: application/x-ndjson',
      );
    },
    push(result) {
      pending += `${count === 0 ? '' : ','}${JSON.stringify(result)}`;
      count += 1;
    },
    async flush() {
      if (pending.length >= PIECE_CHARACTERS) keep();
      // A character of a text that waits takes up to two bytes.
      hold(bytes + 2 * pending.length);
    },
    async end(summary) {
      pending += `],${JSON.stringify(summary).slice(1)}`;
      keep();
      response.statusCode = 202;
      response.setHeader('content-type', 'application/json; charset=utf-8');
      response.setHeader('content-length', bytes);
      // After an early end, a client that reads only once it has sent everything must get rid of the rest.
      response.req.resume();
      for (const piece of pieces) {
        if (!response.write(piece)) await awaitDrain(response, readerTimeoutMs);
        await takeTurn();
      }
      response.end();
    },
  };
}

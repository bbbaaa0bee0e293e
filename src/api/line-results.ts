import type { Response } from 'express';
import { roomIn } from './room-in.ts';

/** Longest silence of an upload before it is given up, ms. */
export const IDLE_MS = 60_000;

/** The results of the lines of an upload, which are sent while the upload goes on. */
export interface LineResults {
  /** Adds a result, to be sent with the next flush. */
  push(result: object): void;
  /** Sends the results so far; resolves when the client can take more. */
  flush(): Promise<void>;
  /** Sends what is left, and the summary as the last line. */
  end(summary: object): void;
}

/**
 * Makes the results of a reply in NDJSON.
 * @param readerTimeoutMs time after which a client that reads nothing is cut off
 */
export function streamedResults(response: Response, status: number, readerTimeoutMs: number): LineResults {
  let pending = '';
  const push = (line: object) => void (pending += `${JSON.stringify(line)}\n`);
  return {
    push,
    async flush() {
      if (!response.headersSent) response.writeHead(status, { 'content-type': 'application/x-ndjson; charset=utf-8' });
      const hasRoom = response.write(pending);
      pending = '';
      if (!hasRoom) await roomIn(response, readerTimeoutMs);
    },
    end(summary) {
      if (!response.headersSent) response.writeHead(status, { 'content-type': 'application/x-ndjson; charset=utf-8' });
      push(summary);
      response.end(pending);
    },
  };
}

import type { Response } from 'express';
import { roomIn } from './room-in.ts';

/** Longest pause in an upload, after which it is given up (ms). */
export const IDLE_MS = 60_000;

/** The results of the lines of an upload. They are sent while the upload still arrives. */
export interface LineResults {
  /** Adds the result of a line, to be sent with the next flush. */
  push(result: object): void;
  /** Sends the results added so far, and waits until the client can take more. */
  flush(): Promise<void>;
  /** Sends the remaining results, and the summary as the last line. */
  end(summary: object): void;
}

/**
 * Makes a sender of results that answers in NDJSON.
 * @param readerTimeoutMs time after which the connection of a client that reads nothing is closed
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

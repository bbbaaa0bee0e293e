/**
 * The protocol between a process that reads documents and its parent process. A message is a frame: the lengths of head
 * and body as 32-bit little-endian numbers, a head (JSON) and a body (bytes). The body of a request is the file; that
 * of a reply is the text as UTF-8.
 */

import fs from 'node:fs';
import type { ParseRequest, ParseResult, Chunk } from '../../ports.ts';
import { PARSE_LIMITS } from '../parsed-document.ts';

/**
 * File descriptor for replies. It is not standard output or standard error, since what libraries print to those is
 * dropped.
 */
export const REPLY_FD = 3;

/** Number of bytes in a MB, as used here: 1024 · 1024. */
export const MB = 1024 * 1024;
/** Number of bytes of the two lengths at the start of a frame. */
const LENGTHS_BYTES = 8;
/**
 * Greatest size of the reply for one document (bytes): its text, with at most 3 bytes for each UTF-16 code unit, and
 * the data about it.
 */
export const MAX_REPLY_BYTES = 3 * PARSE_LIMITS.textCharacters + 20 * MB;

/** A document as the child process sends it: its text once, and its chunks as offsets in the text. */
export interface ReadDocument extends Omit<ParseResult, 'chunks'> {
  readonly text: string;
  readonly chunks: readonly Chunk[];
}

/** Head of a request. The bytes of the file are the request's body. */
export type RequestHead = Omit<ParseRequest, 'bytes'>;

/** A message. Its head is any JSON value, parsed but not checked. */
export interface Frame {
  readonly head: unknown;
  readonly body: Buffer;
}

/** Returns the start of a frame: its two lengths and its head as JSON. A body of `bodyBytes` bytes must follow it. */
export function encodeHead(head: unknown, bodyBytes: number): Buffer {
  const json = Buffer.from(JSON.stringify(head));
  const start = Buffer.alloc(LENGTHS_BYTES + json.length);
  start.writeUInt32LE(json.length, 0);
  start.writeUInt32LE(bodyBytes, 4);
  json.copy(start, LENGTHS_BYTES);
  return start;
}

/**
 * Reads the next frame from a file descriptor; returns undefined if that ends before or within the frame. The call
 * blocks the event loop until the frame has arrived.
 */
export function readFrame(fd: number): Frame | undefined {
  const lengths = readExactly(fd, LENGTHS_BYTES);
  if (lengths === undefined) return undefined;
  const head = readExactly(fd, lengths.readUInt32LE(0));
  const body = readExactly(fd, lengths.readUInt32LE(4));
  return head && body && { head: JSON.parse(head.toString()) as unknown, body };
}

/** Writes a frame to a file descriptor, and returns when all of it is written. The call blocks the event loop. */
export function writeFrame(fd: number, head: unknown, body: Buffer = Buffer.alloc(0)): void {
  for (const part of [encodeHead(head, body.length), body]) {
    for (let written = 0; written < part.length;) written += fs.writeSync(fd, part, written);
  }
}

function readExactly(fd: number, bytes: number): Buffer | undefined {
  const buffer = Buffer.allocUnsafeSlow(bytes);
  for (let filled = 0; filled < bytes;) {
    const read = fs.readSync(fd, buffer, filled, bytes - filled, null);
    if (read === 0) return undefined;
    filled += read;
  }
  return buffer;
}

/**
 * Creates a function that assembles frames from the parts in which a pipe delivers them. It must be called with each
 * part in order, and returns the frames that the part completes, often none. It throws a RangeError for a frame that is
 * too large, as soon as its lengths are known, and a SyntaxError for a head that is not JSON.
 * @param bytesMost greatest size of a frame, lengths included (bytes)
 */
export function createFrameDecoder(bytesMost: number): (piece: Buffer) => Frame[] {
  let pieces: Buffer[] = [];
  let held = 0;
  let needed = LENGTHS_BYTES;
  return (piece) => {
    pieces.push(piece);
    held += piece.length;
    const frames: Frame[] = [];
    while (held >= needed) {
      // Pieces are joined only when a frame's lengths or its last bytes are there, so that each byte is copied twice
      // at most.
      const bytes = pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces, held);
      const headBytes = bytes.readUInt32LE(0);
      const whole = LENGTHS_BYTES + headBytes + bytes.readUInt32LE(4);
      if (whole > bytesMost) throw new RangeError('a frame is too large');
      pieces = [bytes];
      needed = whole;
      if (held < whole) break;
      const headEnd = LENGTHS_BYTES + headBytes;
      frames.push({
        head: JSON.parse(bytes.toString('utf8', LENGTHS_BYTES, headEnd)) as unknown,
        body: bytes.subarray(headEnd, whole),
      });
      held -= whole;
      // An empty rest would keep the frame's memory.
      pieces = held === 0 ? [] : [bytes.subarray(whole)];
      needed = LENGTHS_BYTES;
    }
    return frames;
  };
}

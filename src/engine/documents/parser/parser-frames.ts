/**
 * The protocol between a process that reads documents and its parent: frames of a head (JSON) and a body (bytes),
 * each preceded by both lengths as 32-bit little-endian numbers. The body is the file on the way in and the text as
 * UTF-8 on the way out.
 */

import fs from 'node:fs';
import type { ParseRequest, ParseResult, Chunk } from '../../ports.ts';
import { PARSE_LIMITS } from '../parsed-document.ts';

/** File descriptor of the replies. It is not a standard one: what libraries print to those is dropped. */
export const REPLY_FD = 3;

/** Number of bytes in a MB. */
export const MB = 1024 * 1024;
/** Number of bytes of the two lengths with which a frame begins. */
const LENGTHS_BYTES = 8;
/** Most bytes of the reply for one document: its text, of at most 3 bytes a UTF-16 unit, and the data about it. */
export const MAX_REPLY_BYTES = 3 * PARSE_LIMITS.textCharacters + 20 * MB;

/** A document as the child sends it: the text once, chunks as offsets into it. */
export interface ReadDocument extends Omit<ParseResult, 'chunks'> {
  readonly text: string;
  readonly chunks: readonly Chunk[];
}

/** Head of a request; the file's bytes are its body. */
export type RequestHead = Omit<ParseRequest, 'bytes'>;

/** A message with its head parsed: any JSON value, which is not checked yet. */
export interface Frame {
  readonly head: unknown;
  readonly body: Buffer;
}

/** Returns the start of a frame: its lengths and its head as JSON. A body of `bodyBytes` bytes must follow it. */
export function encodeHead(head: unknown, bodyBytes: number): Buffer {
  const json = Buffer.from(JSON.stringify(head));
  const start = Buffer.alloc(LENGTHS_BYTES + json.length);
  start.writeUInt32LE(json.length, 0);
  start.writeUInt32LE(bodyBytes, 4);
  json.copy(start, LENGTHS_BYTES);
  return start;
}

/**
 * Reads the next frame of a file descriptor; undefined if that ends, before the frame or within it. The call blocks the
 * event loop until the frame is there.
 */
export function readFrame(fd: number): Frame | undefined {
  const lengths = readExactly(fd, LENGTHS_BYTES);
  if (lengths === undefined) return undefined;
  const head = readExactly(fd, lengths.readUInt32LE(0));
  const body = readExactly(fd, lengths.readUInt32LE(4));
  return head && body && { head: JSON.parse(head.toString()) as unknown, body };
}

/** Writes a frame to a file descriptor, and returns when all of it is written; the call blocks the event loop. */
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
 * Creates a function that puts frames together from the pieces in which a pipe delivers them. Give it each piece in
 * order: it returns the frames that the piece completes, often none. It throws a RangeError for a larger frame, as soon
 * as its lengths are known, and a SyntaxError for a head that is no JSON.
 * @param bytesMost bytes of the largest frame allowed, lengths included
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

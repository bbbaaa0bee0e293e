import fs from 'node:fs';
import type { ParseRequest, ParseResult, Chunk } from '../../ports.ts';
import { PARSE_LIMITS } from '../parsed-document.ts';

/*
 * What the processes that read documents and their parent say to each other: frames of a head (JSON) and a body (bytes), each
 * preceded by both lengths as 32-bit little-endian numbers. The body is the file on the way in and the text as UTF-8 on the way out.
 */

/** Replies have a descriptor of their own: what libraries print to the standard ones goes nowhere. */
export const REPLY_FD = 3;

export const MB = 1024 * 1024;
const LENGTHS_BYTES = 8;
/** Most bytes that one document may bring back: its text, and what is said about it. */
export const REPLY_BYTES_MOST = 3 * PARSE_LIMITS.textCharacters + 20 * MB;

/** A document as the child sends it: the text once, chunks as places in it. */
export interface ReadDocument extends Omit<ParseResult, 'chunks'> {
  readonly text: string;
  readonly chunks: readonly Chunk[];
}

export type RequestHead = Omit<ParseRequest, 'bytes'>;

export interface Frame {
  readonly head: unknown;
  readonly body: Buffer;
}

/** The start of a frame: its lengths and its head. The body follows. */
export function encodeHead(head: unknown, bodyBytes: number): Buffer {
  const json = Buffer.from(JSON.stringify(head));
  const start = Buffer.alloc(LENGTHS_BYTES + json.length);
  start.writeUInt32LE(json.length, 0);
  start.writeUInt32LE(bodyBytes, 4);
  json.copy(start, LENGTHS_BYTES);
  return start;
}

/** The next frame of a descriptor; undefined at its end. Waits for it, event loop and all. */
export function readFrame(fd: number): Frame | undefined {
  const lengths = readExactly(fd, LENGTHS_BYTES);
  if (lengths === undefined) return undefined;
  const head = readExactly(fd, lengths.readUInt32LE(0));
  const body = readExactly(fd, lengths.readUInt32LE(4));
  return head && body && { head: JSON.parse(head.toString()) as unknown, body };
}

/** Returns when all of it is on its way. */
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
 * Puts frames together from the pieces in which a pipe delivers them.
 * @throws RangeError for a frame larger than `bytesMost`, as soon as its lengths are known
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
      // Only when a frame's lengths or its last bytes are there, so that each byte is copied twice at most.
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

/**
 * Takes the server's replies off a client of `pg`, as whole messages in one buffer, since `pg` makes a text and an
 * object of each value. The calling thread reads the rows out of that buffer (`wire-values.ts`), which is handed over
 * to it and not copied value by value.
 */

import type pg from 'pg';
import { HEADER } from './wire-values.ts';

/** Types of messages that end a reply, or of which `pg` must know: see `ReplyReader.expect`. */
const READY = 0x5a;
const OWN: ReadonlySet<number> = new Set([...'123nIstCDT'].map((type) => type.charCodeAt(0)));

/** Size of the buffer at first, and up to which it is kept for the next reply, bytes. */
const FIRST_BYTES = 65_536;
const KEPT_BYTES = 4_194_304;

export interface ReplyReader {
  /**
   * Takes the messages of the next reply, up to its end (ReadyForQuery). Those about statements and rows go to
   * `handle`; all others, such as errors, notices and the end, go to `pg` as before.
   * @param handle is called with the type of each message, and the place of its header and of its end in `bytes()`
   */
  expect(handle: (type: number, start: number, end: number) => void): void;
  /** The buffer with all messages of the present reply so far. The next reply overwrites it. */
  bytes(): Buffer;
  /** Returns a copy of all messages of the present reply. */
  copy(): Uint8Array<ArrayBuffer>;
}

/** Makes the reader of a client that is connected. From then on the client gets its messages from here. */
export function createReplyReader(client: pg.Client): ReplyReader {
  const { stream } = (client as unknown as { readonly connection: { readonly stream: NodeJS.ReadableStream } })
    .connection;
  const listeners = stream.listeners('data') as ((chunk: Buffer) => void)[];
  let handle: ((type: number, start: number, end: number) => void) | undefined;
  let buffer = Buffer.allocUnsafeSlow(FIRST_BYTES);
  let [read, filled] = [0, 0];

  const toClient = (chunk: Buffer) => {
    for (const listener of listeners) listener(chunk);
  };
  const append = (chunk: Buffer) => {
    if (filled + chunk.length > buffer.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(2 * buffer.length, filled + chunk.length));
      buffer.copy(larger, 0, 0, filled);
      buffer = larger;
    }
    chunk.copy(buffer, filled);
    filled += chunk.length;
  };
  stream.removeAllListeners('data');
  stream.on('data', (chunk: Buffer) => {
    if (handle === undefined) return toClient(chunk);
    append(chunk);
    while (handle !== undefined && read + HEADER <= filled) {
      const [type, start, end] = [buffer[read]!, read, read + 1 + buffer.readUInt32BE(read + 1)];
      if (end > filled) return;
      read = end;
      if (OWN.has(type)) handle(type, start, end);
      else {
        if (type === READY) handle = undefined;
        // A copy, since `pg` keeps what is not a whole message, and the next reply may begin within this call.
        toClient(Buffer.from(buffer.subarray(start, type === READY ? filled : end)));
      }
    }
  });
  return {
    expect(next) {
      handle = next;
      [read, filled] = [0, 0];
      if (buffer.length > KEPT_BYTES) buffer = Buffer.allocUnsafeSlow(FIRST_BYTES);
    },
    bytes: () => buffer,
    copy: () => new Uint8Array(buffer.buffer.slice(0, filled)),
  };
}

import type { Socket } from 'node:net';

/** Greatest number of bytes that the HTTP client parses at once: at most 512 headers of a letter each. */
const PIECE_BYTES = 2_048;
/**
 * A turn of the event loop reads on until it has read this number of pieces, of all connections together, and until
 * this time (ms) since the first of them has passed: whichever is later. Then further pieces wait for the next turn.
 * Bodies are read far faster than heads, so many of their pieces are read in that time.
 */
const [MOST_PIECES, MOST_MS] = [16, 2];

/** The error of a connection over which a server sent more bytes than are taken. */
export class SentTooMuch extends Error {
  override readonly name = 'SentTooMuch';
}

/** Number of pieces that were read in this turn of the event loop, of all connections together. */
let pieces = 0;
/** Time of the first piece of this turn, by `performance.now()` (ms). */
let begunAt = 0;
/** Functions that read on from the connections that wait for a turn, the longest waiting first. */
const waiting: (() => void)[] = [];

/**
 * Makes a connection hand its bytes to the HTTP client in short pieces. Of all connections together, a turn of the
 * event loop reads 32 KiB, and more only within two milliseconds. A head of 64 KiB may have 16,000 headers, for each of
 * which the client calls JavaScript, and once there are too many it goes on to the end of what it was given, with an
 * error for each. Several servers that send such heads would hold up everything else on this thread.
 *
 * The connection fails with `SentTooMuch` once more than `maxBytes` bytes have arrived over it, heads and the frames of
 * bodies included; by default there is no bound.
 */
export function paceSocket(socket: Socket, maxBytes = Infinity): void {
  const read = socket.read.bind(socket) as (size?: number) => unknown;
  const next = () => (socket.readableLength > PIECE_BYTES ? read(PIECE_BYTES) : read());
  let [waits, isDraining] = [false, false];
  // The client asks for no more of a connection that was reset, unless it had paused: what waits is handed over now.
  socket.on('error', () => {
    if (!waits) return;
    isDraining = true;
    socket.emit('readable');
    isDraining = false;
  });
  socket.read = (size?: number): unknown => {
    if (size !== undefined) return read(size);
    // The client takes what came before a connection was reset, but nothing of one that it has ended itself.
    if (socket.destroyed && !wasReset(socket)) return null;
    if (socket.destroyed) return isDraining ? next() : read();
    if (socket.bytesRead > maxBytes) {
      socket.destroy(new SentTooMuch(`the server sent more than ${maxBytes} bytes`));
      return null;
    }
    if (waits) return null;
    if (isOver()) {
      waits = true;
      waiting.push(() => {
        waits = false;
        if (!socket.destroyed) socket.emit('readable');
      });
      return null;
    }
    const piece = next();
    if (piece !== null) countPiece();
    return piece;
  };
}

/** Tells whether a connection that has ended was ended by the system, as after a reset, and not by the client. */
function wasReset({ errored }: Socket): boolean {
  return errored !== null && 'syscall' in errored;
}

function countPiece(): void {
  if (pieces === 0) {
    setImmediate(beginTurn);
    begunAt = performance.now();
  }
  pieces += 1;
}

function isOver(): boolean {
  return pieces >= MOST_PIECES && performance.now() - begunAt >= MOST_MS;
}

/**
 * Begins the count of a new turn of the event loop. Connections that wait read on, until this turn has read enough,
 * too.
 */
function beginTurn(): void {
  pieces = 0;
  while (waiting.length > 0 && !isOver()) waiting.shift()!();
}

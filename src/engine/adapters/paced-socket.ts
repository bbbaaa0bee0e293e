import type { Socket } from 'node:net';

/** Greatest number of bytes that the HTTP client parses at once: at most 512 headers of a letter each. */
const PIECE_BYTES = 2_048;
/** Number of pieces of all connections in one turn of the event loop from which further ones wait for the next turn. */
const MOST_PIECES = 16;

/** Number of pieces that were read in this turn. */
let pieces = 0;
/** Functions that read on from the connections that wait for a turn, the longest waiting first. */
const waiting: (() => void)[] = [];

/**
 * Makes a connection hand its bytes to the HTTP client in short pieces, and those of all connections together at most
 * 32 KiB in a turn of the event loop. A head of 64 KiB may have 16,000 headers, for each of which the client calls
 * JavaScript, and once there are too many it goes on to the end of what it was given, with an error for each. Several
 * servers that send such heads would hold up everything else on this thread.
 */
export function paceSocket(socket: Socket): void {
  const read = socket.read.bind(socket) as (size?: number) => unknown;
  let waits = false;
  socket.read = (size?: number): unknown => {
    if (size !== undefined) return read(size);
    if (waits || socket.destroyed) return null;
    if (pieces >= MOST_PIECES) {
      waits = true;
      waiting.push(() => {
        waits = false;
        socket.emit('readable');
      });
      return null;
    }
    const piece = socket.readableLength > PIECE_BYTES ? read(PIECE_BYTES) : read();
    if (piece !== null) countPiece();
    return piece;
  };
}

function countPiece(): void {
  if (pieces === 0) setImmediate(beginTurn);
  pieces += 1;
}

/** Lets connections that wait read on, until this turn has had many pieces, too. */
function beginTurn(): void {
  pieces = 0;
  while (pieces < MOST_PIECES && waiting.length > 0) waiting.shift()!();
}

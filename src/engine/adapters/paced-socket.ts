import type { Socket } from 'node:net';

/** Greatest number of bytes that the HTTP client parses at once: at most 512 headers of a letter each. */
const PIECE_BYTES = 2_048;
/**
 * Number of pieces of all connections in one turn of the event loop, and time since the first of them (ms), from which
 * on further ones wait for the next turn: bodies are read far faster than heads.
 */
const [MOST_PIECES, MOST_MS] = [16, 2];

/** Number of pieces that were read in this turn, and the time of the first of them. */
let pieces = 0;
let begunAt = 0;
/** Functions that read on from the connections that wait for a turn, the longest waiting first. */
const waiting: (() => void)[] = [];

/**
 * Makes a connection hand its bytes to the HTTP client in short pieces, and those of all connections together in a turn
 * of the event loop at most 32 KiB, or what can be read in two milliseconds. A head of 64 KiB may have 16,000 headers,
 * for each of which the client calls JavaScript, and once there are too many it goes on to the end of what it was
 * given, with an error for each. Several servers that send such heads would hold up everything else on this thread.
 */
export function paceSocket(socket: Socket): void {
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

/** Tells whether the system, and not the client, has ended the connection. */
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

/** Lets connections that wait read on, until this turn has had many pieces, too. */
function beginTurn(): void {
  pieces = 0;
  while (waiting.length > 0 && !isOver()) waiting.shift()!();
}

/**
 * Has a server parse what it reads of its connections in turns with other work. Node reads up to 64 KiB of each
 * connection that is readable, and parses all of it in one turn of the event loop. That may be thousands of requests or
 * headers for each of thousands of connections, before anything could ask for a key.
 */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { networkOf } from '../engine/index.ts';
import { createTurnLine, type TurnLine } from './turn-line.ts';

/**
 * Greatest number of bytes that are parsed in one go. The worst, requests of 18 bytes without a host, take Node some
 * 20 µs each.
 */
const SLICE_BYTES = 4096;

/** Makes all connections of the server take turns, networks of clients in equal shares. */
export function parseInTurns(server: Server): void {
  const line = createTurnLine();
  server.on('connection', (socket: Socket) => {
    // Node's own listener, which it calls by itself only if there is another one, as for encrypted connections.
    const [parse] = socket.listeners('data') as ((bytes: Buffer) => void)[];
    if (parse === undefined) return;
    socket.off('data', parse);
    sliceConnection(socket, line, parse);
  });
}

/**
 * Passes what is read of a connection to `parse`, at most 4 KiB at once, and reads no further until all of it is
 * parsed. While Node or the reader of a body has paused the connection, nothing is parsed either.
 */
function sliceConnection(socket: Socket, line: TurnLine, parse: (bytes: Buffer) => void): void {
  const share = networkOf(socket.remoteAddress ?? '');
  const pause = socket.pause.bind(socket);
  const resume = socket.resume.bind(socket);
  /** What was read and not parsed yet; undefined if there is nothing. */
  let rest: Buffer | undefined;
  let isPaused = false;
  let isWaiting = false;

  const parseRest = () => {
    isWaiting = false;
    if (socket.destroyed || rest === undefined) return;
    const slice = rest.subarray(0, SLICE_BYTES);
    rest = rest.length > SLICE_BYTES ? rest.subarray(SLICE_BYTES) : undefined;
    parse(slice);
    goOn();
  };
  const goOn = () => {
    if (isPaused || isWaiting || socket.destroyed) return;
    if (rest === undefined) return void resume();
    isWaiting = true;
    void line.wait(share).then(parseRest);
  };
  socket.pause = () => {
    isPaused = true;
    return pause();
  };
  socket.resume = () => {
    isPaused = false;
    if (rest === undefined) return resume();
    goOn();
    return socket;
  };
  socket.on('data', (bytes: Buffer) => {
    if (rest === undefined && bytes.length <= SLICE_BYTES && line.isFree()) return parse(bytes);
    rest = rest === undefined ? bytes : Buffer.concat([rest, bytes]);
    pause();
    goOn();
  });
}

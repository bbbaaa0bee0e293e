/** Has the connections of a server close in turns with other work, as thousands of them may be closed together. */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { nextSharedTurn } from '../engine/index.ts';
import { isTooLate, refuseClient } from './refuse-client.ts';

/**
 * Number of connections that are closed in one turn of the event loop. To end what goes on with one of them, such as a
 * request whose body is not complete, takes some 0.1 ms.
 */
const PER_TURN = 32;

/** A connection with its handle in Node, which no public type has; null once the handle is closed. */
type Handled = Socket & { readonly _handle: { readStop(): void } | null };

/**
 * Lets 32 connections of the server close in each turn of the event loop, and the others in later turns. A connection
 * that waits for that after it was destroyed (`destroyed`) emits `close` in its turn.
 */
export function closeInTurns(server: Server): void {
  const waiting: (() => void)[] = [];
  let closedInTurn = 0;
  let isClosing = false;

  const run = (close: () => void) => {
    isClosing = true;
    try {
      close();
    } finally {
      isClosing = false;
    }
  };
  const closeWaiting = async () => {
    while (waiting.length > 0) {
      await nextSharedTurn();
      waiting.splice(0, PER_TURN).forEach(run);
    }
    closedInTurn = 0;
  };
  const inTurn = (close: () => void) => {
    if (isClosing) return close();
    if (closedInTurn === 0) setImmediate(() => void closeWaiting());
    closedInTurn += 1;
    if (closedInTurn <= PER_TURN) run(close);
    else waiting.push(close);
  };
  server.on('clientError', (error, socket) => {
    if (!isTooLate(error)) return refuseClient(error, socket as Socket);
    // What still arrives would be answered, or executed and not answered.
    socket.pause();
    socket.resume = () => socket;
    inTurn(() => refuseClient(error, socket as Socket));
  });
  server.on('connection', (socket: Socket) => {
    const destroy = socket._destroy.bind(socket);
    socket._destroy = (error, done) => {
      // Node takes bytes that come to a connection that is destroyed, but whose handle is open, for an unknown error.
      (socket as Handled)._handle?.readStop();
      inTurn(() => destroy(error, done));
    };
    // Node's own listener, which destroys the connection if the client ended it within a request.
    const end = socket.listeners('end').at(-1) as () => void;
    socket.off('end', end);
    socket.on('end', () =>
      inTurn(() => {
        if (!socket.destroyed) end();
      }),
    );
  });
}

import type { Socket } from 'node:net';

/**
 * Calls a listener as soon as a connection is destroyed, so that what it holds is given back then. Its event `close`
 * may come many turns of the event loop later (`closeInTurns`, which must have seen the connection before). The
 * listener is not called for a connection that is destroyed already.
 */
export function onDestroyed(socket: Socket, listener: () => void): void {
  const destroy = socket._destroy.bind(socket);
  socket._destroy = (error, done) => {
    listener();
    destroy(error, done);
  };
}

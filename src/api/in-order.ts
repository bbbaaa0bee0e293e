import type { RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Greatest number of requests that wait on one connection for the answer to an earlier one. Each takes up to 20 KB,
 * as its headers are in memory.
 */
const MAX_WAITING = 16;

/** The requests of one connection that are not over. */
interface Line {
  /** Answer to the newest of these requests; undefined if there is none. */
  last: ServerResponse | undefined;
  /** Number of those that wait for the answer to an earlier one. */
  waiting: number;
}

/**
 * Handles the requests of each connection one after the other. A client may send a request before the one before it was
 * answered (pipelining). Node would handle both at once, and keep the second answer in memory until the first has
 * ended, without an event `close` if the client leaves before: the answer to a slow request, such as an event stream,
 * could have any number of answers and streams behind it which nothing counts or ends. A connection on which more than
 * 16 requests wait is closed.
 * @param handle called once the answers to all earlier requests of the connection have ended; not called if the
 *   connection is closed before that
 */
export function inOrder(handle: RequestListener): RequestListener {
  const lines = new WeakMap<Socket, Line>();
  return (request, response) => {
    const { socket } = request;
    let line = lines.get(socket);
    if (line === undefined) lines.set(socket, (line = { last: undefined, waiting: 0 }));
    const { last: before } = line;
    const own = line;
    own.last = response;
    response.once('close', () => {
      if (own.last === response) own.last = undefined;
    });
    if (before === undefined) return handle(request, response);
    own.waiting += 1;
    if (own.waiting > MAX_WAITING) return void socket.destroy();
    before.once('close', () => {
      own.waiting -= 1;
      if (!socket.destroyed) handle(request, response);
    });
  };
}

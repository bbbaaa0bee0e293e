import type { RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { createNetworkCount, type NetworkCount } from './network-count.ts';
import { onDestroyed } from './on-destroyed.ts';

/**
 * Greatest numbers of requests that wait for the answer to an earlier one of their connection: on one connection, on
 * all connections of one network (an IPv4 address, or an IPv6 prefix), and on all connections. Each takes up to 20 KB,
 * as its headers are in memory, and some of the main thread's time when its connection closes.
 */
const MAX_WAITING = { ofConnection: 4, ofNetwork: 250, ofAll: 1_000 };

/** The requests of one connection whose answers have not ended. */
interface Line {
  /** Answer to the newest of these requests; undefined if there is none. */
  last: ServerResponse | undefined;
  /** Number of those that wait for the answer to an earlier one. */
  waiting: number;
  /** Notes that number among those of all connections; it may close connections, this one among them. */
  readonly noteWaiting: (requests: number) => void;
}

/**
 * Handles the requests of each connection one after the other. A client may send a request before the one before it was
 * answered (pipelining). Node would handle both at once, and keep the second answer in memory until the first has
 * ended, without an event `close` if the client leaves before: the answer to a slow request, such as an event stream,
 * could have any number of answers and streams behind it which nothing counts or ends. A connection on which more than
 * 4 requests wait is closed. If more than 250 of a network wait, or more than 1,000 of all, connections are closed as
 * `createNetworkCount` says.
 * @param handle called once the answers to all earlier requests of the connection have ended; not called if the
 *   connection is closed before that
 * @param isProxy tells whether an address is that of a trusted proxy, of which 1,000 requests may wait
 */
export function inOrder(handle: RequestListener, isProxy: (address: string) => boolean): RequestListener {
  const lines = new WeakMap<Socket, Line>();
  const counts = createNetworkCount({ ...MAX_WAITING, isProxy });
  return (request, response) => {
    const { socket } = request;
    if (socket.destroyed || !socket.writable) return;
    let line = lines.get(socket);
    if (line === undefined) lines.set(socket, (line = startLine(socket, counts)));
    const { last: before } = line;
    const own = line;
    own.last = response;
    response.once('close', () => {
      if (own.last === response) own.last = undefined;
    });
    if (before === undefined) return handle(request, response);
    own.waiting += 1;
    if (own.waiting > MAX_WAITING.ofConnection) return void socket.destroy();
    own.noteWaiting(own.waiting);
    before.once('close', () => {
      own.waiting -= 1;
      own.noteWaiting(own.waiting);
      // An answer that closes the connection has ended it for writing, and no request behind it is handled.
      if (!socket.destroyed && socket.writable) handle(request, response);
    });
  };
}

/** Makes the line of a connection, of which none wait once it has closed. */
function startLine(socket: Socket, counts: NetworkCount): Line {
  const noteWaiting = counts.enter(socket);
  onDestroyed(socket, () => noteWaiting(0));
  return { last: undefined, waiting: 0, noteWaiting };
}

import type { RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { networkOf } from '../engine/index.ts';
import { createNetworkCount } from './network-count.ts';

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
  /**
   * For each of these requests that waits for the answer to an earlier one, a function that takes it out of the counts
   * of waiting requests.
   */
  readonly waits: Set<() => void>;
}

/**
 * Handles the requests of each connection one after the other. A client may send a request before the one before it was
 * answered (pipelining). Node would handle both at once, and keep the second answer in memory until the first has
 * ended, without an event `close` if the client leaves before: the answer to a slow request, such as an event stream,
 * could have any number of answers and streams behind it which nothing counts or ends. A connection on which more than
 * 4 requests wait is closed, and so is one whose request would be the 251st of its network that waits, or the 1,001st
 * of all.
 * @param handle called once the answers to all earlier requests of the connection have ended; not called if the
 *   connection is closed before that
 */
export function inOrder(handle: RequestListener): RequestListener {
  const lines = new WeakMap<Socket, Line>();
  const enter = createWaitingCount();
  return (request, response) => {
    const { socket } = request;
    if (socket.destroyed) return;
    let line = lines.get(socket);
    if (line === undefined) lines.set(socket, (line = startLine(socket)));
    const { last: before } = line;
    const own = line;
    own.last = response;
    response.once('close', () => {
      if (own.last === response) own.last = undefined;
    });
    if (before === undefined) return handle(request, response);
    const leave = enter(own, socket);
    if (leave === undefined) return void socket.destroy();
    before.once('close', () => {
      leave();
      if (!socket.destroyed) handle(request, response);
    });
  };
}

/**
 * Makes the line of a connection. When the connection closes, its waiting requests are taken out of the counts: on Node
 * 22 an answer that was not begun does not close.
 */
function startLine(socket: Socket): Line {
  const waits = new Set<() => void>();
  socket.once('close', () => waits.forEach((leave) => leave()));
  return { last: undefined, waits };
}

/**
 * Makes a function that counts one more waiting request, of a connection and of its network. It returns a function that
 * takes the request out of the counts, of which further calls do nothing; undefined if the request would be one too
 * many, which is not counted.
 */
function createWaitingCount(): (line: Line, socket: Socket) => (() => void) | undefined {
  const counts = createNetworkCount(MAX_WAITING);
  return ({ waits }, { remoteAddress = '' }) => {
    const network = networkOf(remoteAddress);
    const leave = () => {
      if (waits.delete(leave)) counts.add(network, -1);
    };
    if (waits.size >= MAX_WAITING.ofConnection) return undefined;
    waits.add(leave);
    if (counts.add(network, 1)) return leave;
    leave();
    return undefined;
  };
}

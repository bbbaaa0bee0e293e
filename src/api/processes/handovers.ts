import type { Socket } from 'node:net';
import { networkOf } from '../../engine/index.ts';
import type { Handover } from './channel.ts';

/**
 * Greatest number of connections that are on their way to one child process. Node sends the next one only when the
 * child has confirmed the one before, and all other messages to the child, such as answers to commits, stand behind
 * those that were sent already.
 */
const MAX_ON_THEIR_WAY = 8;

/** Passes connections that this process has accepted to one child process. */
export interface Handovers {
  /**
   * Passes a connection on, or lets it wait while 8 are on their way; networks of clients take turns then. If too many
   * wait, the newest one of the network with the most is closed.
   */
  pass(socket: Socket): void;
  /**
   * Says that the child has received the connection of the message with this number. Closes this process's copy of it,
   * and passes the next waiting one on.
   */
  taken(id: number): void;
  /** Closes all connections that are on their way or wait, as the child has ended. Later ones are closed, too. */
  close(): void;
}

interface HandoverOptions {
  /** Sends a connection to the child, and calls `onSent` with an error if that fails. */
  readonly send: (message: Handover, socket: Socket, onSent: (error: Error | null) => void) => void;
  /** Greatest number of connections that wait. */
  readonly most: number;
}

/** Makes the handovers to one child process. */
export function createHandovers({ send, most }: HandoverOptions): Handovers {
  const onTheirWay = new Map<number, Socket>();
  /** Connections that wait, by network, whose turn is next first. No list in it is empty. */
  const waiting = new Map<string, Socket[]>();
  let [count, waitingCount, isClosed] = [0, 0, false];

  const sendOn = (socket: Socket) => {
    const id = ++count;
    onTheirWay.set(id, socket);
    send({ kind: 'connection', id }, socket, (error) => {
      if (error === null || !onTheirWay.delete(id)) return;
      socket.destroy();
      sendNext();
    });
  };
  const sendNext = () => {
    const [first] = waiting;
    if (first === undefined) return;
    const [network, sockets] = first;
    const socket = sockets.shift()!;
    waitingCount -= 1;
    waiting.delete(network);
    if (sockets.length > 0) waiting.set(network, sockets);
    sendOn(socket);
  };
  /** Closes the newest connection of the network of which most wait. */
  const closeOne = () => {
    const [network, sockets] = [...waiting].reduce((most, other) => (other[1].length > most[1].length ? other : most));
    sockets.pop()!.destroy();
    waitingCount -= 1;
    if (sockets.length === 0) waiting.delete(network);
  };
  return {
    pass(socket) {
      if (isClosed) return void socket.destroy();
      if (onTheirWay.size < MAX_ON_THEIR_WAY) return sendOn(socket);
      const network = networkOf(socket.remoteAddress ?? '');
      const sockets = waiting.get(network);
      if (sockets === undefined) waiting.set(network, [socket]);
      else sockets.push(socket);
      waitingCount += 1;
      if (waitingCount > most) closeOne();
    },
    taken(id) {
      const socket = onTheirWay.get(id);
      if (socket === undefined) return;
      onTheirWay.delete(id);
      socket.destroy();
      sendNext();
    },
    close() {
      isClosed = true;
      for (const socket of [...onTheirWay.values(), ...[...waiting.values()].flat()]) socket.destroy();
      onTheirWay.clear();
      waiting.clear();
      waitingCount = 0;
    },
  };
}

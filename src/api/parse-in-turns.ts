/**
 * Has a server parse what it reads of its connections in turns with other work. Node reads up to 64 KiB of each
 * connection that is readable, and parses all of it in one turn of the event loop. That may be thousands of requests or
 * headers for each of thousands of connections, before anything could ask for a key.
 */
import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import { networkOf } from '../engine/index.ts';
import { createNetworkCount } from './network-count.ts';
import { onDestroyed } from './on-destroyed.ts';
import { createTurnLine, type TurnLine } from './turn-line.ts';

/**
 * Greatest number of bytes that are parsed in one go of what is not `ORDINARY`. The worst, requests of 18
 * bytes without a host, take Node some 20 µs each.
 */
const SLICE_BYTES = 4096;
/** Greatest numbers of lines and of ends of heads in bytes, which tell how long Node takes to parse them. */
interface Weight {
  readonly lines: number;
  readonly heads: number;
}
/**
 * An ordinary request, such as one with 60 headers, a part of its body, or both: Node takes some 10 to 50 µs. One of
 * the heads may be the end of a chunked body.
 */
const ORDINARY: Weight = { lines: 64, heads: 2 };
/** A part of a body, with some chunks or parts of a form: Node takes some microseconds. */
const LIGHT: Weight = { lines: 8, heads: 0 };
/**
 * Greatest number of connections of which ordinary requests are parsed at once in one turn. 1,000 clients that ask
 * without pause send about half as many in a turn, and to wait costs a tenth of the CPU time of a short request.
 */
const AT_ONCE = 128;
/**
 * Greatest number of bytes of bodies that are parsed at once in one turn, on all connections together, and the number
 * of bytes that each part counts for at least. Node reads up to 2 MiB of one connection in a turn.
 */
const BODIES_AT_ONCE = { bytes: 2 * 1024 * 1024, leastOfPart: 4096 };
/**
 * Greatest number of CR without LF in bytes whose lines are counted. 64 KiB of random bytes have 256 of them; with many
 * more, to look for the ends of lines takes longer than to parse them.
 */
const MAX_LONE_CR = 512;
/** Time for which slices of one connection are parsed one after the other, before others have their turn (ms). */
const TURN_MS = 1;
/**
 * Greatest number of bytes that may wait to be parsed: of all connections of one network, and of all. A paused stream
 * reads as many again into its own buffer.
 */
const MAX_WAITING = { ofNetwork: 64 * 1024 * 1024, ofAll: 160 * 1024 * 1024 };

/**
 * Makes a server parse in turns what it reads of its connections, networks of clients in equal shares. In each turn, up
 * to 2 MiB of bodies and ordinary requests of 128 connections are parsed at once. If more bytes would wait than
 * `MAX_WAITING` allows, connections are closed as `createNetworkCount` says.
 * @param isProxy tells whether an address is that of a trusted proxy, which may have all bytes that wait
 */
export function parseInTurns(server: Server, isProxy: (address: string) => boolean): void {
  const line = createTurnLine();
  const [requestsLeft, bodyBytesLeft] = [createTurnBudget(AT_ONCE), createTurnBudget(BODIES_AT_ONCE.bytes)];
  const waiting = createNetworkCount({ ...MAX_WAITING, isProxy });
  /** The newest request of each connection, until all of it was read. */
  const requests = new WeakMap<Socket, IncomingMessage>();
  server.on('request', (request) => {
    const { socket } = request;
    requests.set(socket, request);
    // An idle connection keeps no headers in memory.
    request.once('close', () => {
      if (requests.get(socket) === request) requests.delete(socket);
    });
  });
  server.on('connection', (socket: Socket) => {
    // Node's own listener, which it calls by itself only if there is another one, as for encrypted connections.
    const [parse] = socket.listeners('data') as ((bytes: Buffer) => void)[];
    if (parse === undefined) return;
    socket.off('data', parse);
    const isInBody = () => requests.get(socket)?.complete === false;
    const mayBeParsed = (bytes: Buffer) => {
      const { length } = bytes;
      if (isInBody() && isWithin(bytes, LIGHT) && bodyBytesLeft.take(Math.max(length, BODIES_AT_ONCE.leastOfPart)))
        return true;
      return requestsLeft.take(1) && isWithin(bytes, ORDINARY);
    };
    sliceConnection(socket, { line, mayBeParsed, noteWaiting: waiting.enter(socket), parse });
  });
}

/** An amount that is there anew in each turn of the event loop. */
interface TurnBudget {
  /** Takes a part of what the present turn has left. Returns false, and takes nothing, if less is left. */
  take(amount: number): boolean;
}

/**
 * Makes the budget of what is parsed at once. Such bytes overtake the bytes that wait, for which a part of each turn is
 * kept.
 * @param most amount that is there in each turn
 */
function createTurnBudget(most: number): TurnBudget {
  let left = most;
  return {
    take(amount) {
      if (amount > left) return false;
      if (left === most) setImmediate(() => (left = most));
      left -= amount;
      return true;
    },
  };
}

interface Slicing {
  readonly line: TurnLine;
  /** Tells whether bytes of the connection may be parsed in the present turn, and counts them for it. */
  readonly mayBeParsed: (bytes: Buffer) => boolean;
  /** Notes how many bytes of the connection wait to be parsed; it may close connections, this one among them. */
  readonly noteWaiting: (bytes: number) => void;
  /** Node's own listener for what is read of the connection. */
  readonly parse: (bytes: Buffer) => void;
}

/**
 * Passes what is read of a connection to `parse`: what `mayBeParsed` allows at once, and other bytes in a
 * later turn. Of what is not ordinary it passes at most 4 KiB at once and for 1 ms in a turn. It reads no further until
 * all of it is parsed. While Node or the reader of a body has paused the connection, nothing is parsed either.
 */
function sliceConnection(socket: Socket, { line, mayBeParsed, noteWaiting, parse }: Slicing): void {
  const network = networkOf(socket.remoteAddress ?? '');
  const pause = socket.pause.bind(socket);
  const resume = socket.resume.bind(socket);
  /** What was read and not parsed yet; empty if there is nothing. */
  let rest: Buffer = NOTHING;
  let isPaused = false;
  let isWaiting = false;

  const parseSlices = () => {
    const until = performance.now() + TURN_MS;
    do {
      if (isPaused || socket.destroyed) return;
      const slice = isWithin(rest, ORDINARY) ? rest : rest.subarray(0, SLICE_BYTES);
      rest = rest.length > slice.length ? rest.subarray(slice.length) : NOTHING;
      noteWaiting(rest.length);
      parse(slice);
    } while (rest.length > 0 && performance.now() < until);
  };
  const parseRest = () => {
    parseSlices();
    isWaiting = false;
    // What may wait for long keeps no more memory than is counted.
    if (isPaused && rest.length > 0) rest = Buffer.from(rest);
    goOn();
  };
  const goOn = () => {
    if (isPaused || isWaiting || socket.destroyed) return;
    if (rest.length === 0) return void resume();
    isWaiting = true;
    void line.wait(network).then(parseRest);
  };
  socket.pause = () => {
    isPaused = true;
    return pause();
  };
  socket.resume = () => {
    // Node holds the connection until its client has read answers, and may not get bytes before that.
    if ((socket as Socket & { readonly _paused?: boolean })._paused === true) return socket;
    isPaused = false;
    if (rest.length === 0) return resume();
    goOn();
    return socket;
  };
  socket.on('data', (bytes: Buffer) => {
    if (rest.length === 0 && mayBeParsed(bytes)) return parse(bytes);
    rest = rest.length === 0 ? bytes : Buffer.concat([rest, bytes]);
    noteWaiting(rest.length);
    if (socket.destroyed) return;
    pause();
    goOn();
  });
  onDestroyed(socket, () => {
    rest = NOTHING;
    noteWaiting(0);
  });
}

const NOTHING = Buffer.alloc(0);
const [CR, LF] = [13, 10];

/**
 * Tells whether bytes have at most these lines and heads, and at most 512 CR without LF. Heads, and the pieces of a
 * chunked body, end with CR LF.
 */
function isWithin(bytes: Buffer, most: Weight): boolean {
  let [lines, heads, lone] = [0, 0, 0];
  let at = bytes.indexOf(CR);
  while (at !== -1) {
    if (bytes[at + 1] !== LF) {
      lone += 1;
      if (lone > MAX_LONE_CR) return false;
      at = bytes.indexOf(CR, at + 1);
      continue;
    }
    if (bytes[at + 2] === CR && bytes[at + 3] === LF) heads += 1;
    lines += 1;
    if (heads > most.heads || lines > most.lines) return false;
    at = bytes.indexOf(CR, at + 2);
  }
  return true;
}

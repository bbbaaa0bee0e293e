import type { Agent, Dispatcher } from 'undici';
import { inOwnMemory } from '../own-memory.ts';
import { readInTurn } from '../turns.ts';

/** Length below which a piece of a body is short, in bytes. */
const SHORT_BYTES = 1024;
/**
 * Number of short pieces of all replies in one turn of the event loop. Once more have arrived, a reply that still has
 * some is read on in a turn of its own.
 */
const MANY_PIECES = 256;

/**
 * Greatest number of interim replies (status 1xx, such as `103 Early Hints`) before a reply. Servers send one or two; a
 * server that sends nothing else would keep this thread busy, since the HTTP client reads on without a pause.
 */
const MAX_INTERIM = 8;

/** Number of short pieces of all replies on this thread that arrived in this turn of the event loop. */
let pieces = 0;

/** Counts a short piece, and tells whether more than `MANY_PIECES` have arrived in this turn of the event loop. */
function countPiece(): boolean {
  if (pieces === 0) setImmediate(() => (pieces = 0));
  pieces += 1;
  return pieces > MANY_PIECES;
}

/**
 * Returns a dispatcher that sends requests by an agent, and reads bodies of replies that come in many short pieces one
 * connection at a time. A server that sends each byte as a chunk of its own (chunked transfer encoding) makes the HTTP
 * client call JavaScript 11,000 times for one read of a connection. A few such servers would hold up everything else on
 * this thread. Short pieces that arrive together are passed on as one piece. A piece that is passed on is at least half
 * of the memory that it keeps: a server may send a byte of a body behind 64 KiB of what is no body (chunk extensions).
 */
export function pacedReplies(agent: Agent): Dispatcher {
  return agent.compose((dispatch) => (options, handler) => dispatch(options, new PacedReply(handler)));
}

type Controller = Dispatcher.DispatchController;
type Handler = Required<Dispatcher.DispatchHandler>;

/** Passes the events of one reply on to the handler of its request. */
class PacedReply implements Dispatcher.DispatchHandler {
  readonly #handler: Dispatcher.DispatchHandler;
  #controller: PacedController | undefined;
  /** Short pieces that arrived in this turn and were not passed on yet. */
  #held: Buffer[] = [];
  /** Number of interim replies that arrived. */
  #interim = 0;

  constructor(handler: Dispatcher.DispatchHandler) {
    this.#handler = handler;
  }

  onRequestStart(...[controller, context]: Parameters<Handler['onRequestStart']>): void {
    this.#controller = new PacedController(controller);
    this.#handler.onRequestStart?.(this.#controller, context);
  }

  onRequestUpgrade(...[controller, ...rest]: Parameters<Handler['onRequestUpgrade']>): void {
    this.#handler.onRequestUpgrade?.(this.#paced(controller), ...rest);
  }

  onResponseStart(...[controller, status, ...rest]: Parameters<Handler['onResponseStart']>): void {
    if (status < 200 && (this.#interim += 1) > MAX_INTERIM) {
      controller.abort(new Error(`the server sent more than ${MAX_INTERIM} interim replies`));
      return;
    }
    this.#handler.onResponseStart?.(this.#paced(controller), status, ...rest);
  }

  onResponseData(controller: Controller, piece: Buffer): void {
    const paced = this.#paced(controller);
    if (piece.length >= SHORT_BYTES) {
      this.#passOn();
      this.#handler.onResponseData?.(paced, inOwnMemory(piece));
      return;
    }
    if (this.#held.length === 0) setImmediate(() => this.#passOn());
    this.#held.push(piece);
    if (countPiece()) paced.waitForTurn();
  }

  onResponseEnd(...[controller, trailers]: Parameters<Handler['onResponseEnd']>): void {
    this.#passOn();
    this.#handler.onResponseEnd?.(this.#paced(controller), trailers);
  }

  onResponseError(...[controller, error]: Parameters<Handler['onResponseError']>): void {
    this.#held = [];
    // For a request that never began, undici passes null.
    this.#handler.onResponseError?.(this.#controller ?? controller, error);
  }

  onResponseStarted(): void {
    this.#handler.onResponseStarted?.();
  }

  onBodySent(chunk: Buffer): void {
    this.#handler.onBodySent?.(chunk);
  }

  onRequestSent(): void {
    this.#handler.onRequestSent?.();
  }

  /** Passes the pieces in `#held` on to the handler as one; drops them if the request was aborted. */
  #passOn(): void {
    const [held, controller] = [this.#held, this.#controller];
    this.#held = [];
    if (held.length === 0 || controller === undefined || controller.aborted) return;
    this.#handler.onResponseData?.(controller, inOwnMemory(held.length === 1 ? held[0]! : Buffer.concat(held)));
  }

  /** Returns the controller that the handler gets in place of undici's `controller`; one for the whole request. */
  #paced(controller: Controller): PacedController {
    this.#controller ??= new PacedController(controller);
    return this.#controller;
  }
}

/** Lets a connection be read while neither the handler has paused it nor it waits for its turn. */
class PacedController implements Controller {
  readonly #controller: Controller;
  #isPaused = false;
  #waits = false;

  constructor(controller: Controller) {
    this.#controller = controller;
  }

  /** Stops reading the connection until it is its turn (`readInTurn`), also if the handler resumes it before. */
  waitForTurn(): void {
    if (this.#waits) return;
    this.#waits = true;
    this.#controller.pause();
    readInTurn(() => {
      this.#waits = false;
      if (!this.#isPaused && !this.aborted) this.#controller.resume();
    });
  }

  pause(): void {
    this.#isPaused = true;
    this.#controller.pause();
  }

  resume(): void {
    this.#isPaused = false;
    if (!this.#waits) this.#controller.resume();
  }

  abort(reason: Error): void {
    this.#controller.abort(reason);
  }

  get aborted(): boolean {
    return this.#controller.aborted;
  }

  get paused(): boolean {
    return this.#controller.paused;
  }

  get reason(): Error | null {
    return this.#controller.reason;
  }

  get rawHeaders(): NonNullable<Controller['rawHeaders']> | null {
    return this.#controller.rawHeaders ?? null;
  }

  get rawTrailers(): NonNullable<Controller['rawTrailers']> | null {
    return this.#controller.rawTrailers ?? null;
  }
}

/**
 * Reads whose transaction stays open, so that the next read of the same question goes on in its snapshot, with its
 * answers and without a round trip to begin. A question reads twice: what it has to know before it asks for vectors,
 * and then everything else. If it does not have to wait in between, both follow within one turn of the event loop. What
 * the opening of a tenant reads is held for the first question, which follows at once.
 *
 * A read is held no longer than that turn, and no longer than until anything else uses its connection or this thread
 * has written. One in which a statement failed is not held. So no read lacks a write that its caller may know of.
 */

import type { BlockingConnection } from './blocking-connection.ts';

/** A read transaction that has begun and not ended. */
export interface OpenRead {
  /** Whether its session is still there and no statement has failed, so that another read may go on in it. */
  isSound(): boolean;
  /**
   * Ends the transaction without waiting for the server.
   * @param keepsAnswers whether the answers that the read got may be kept for later reads (`kept-answers.ts`)
   */
  end(keepsAnswers: boolean): void;
}

/** A read that is held open for the next read of its store and question. */
interface Held {
  readonly read: OpenRead;
  /** Object that identifies the store whose read this is. */
  readonly of: object;
  /**
   * Object that identifies the question that may go on in the read; null for the opening of the store, on which any
   * read may follow.
   */
  readonly question: object | null;
  /** Whether the read began as the opening of the store and another read has already gone on in it. */
  readonly isHandedOn: boolean;
}

interface HeldNow extends Held {
  /** Number of the session that has the transaction. */
  readonly session: number | null;
  /** Value of `writesOfThread` when the read was last used. If it has risen, the read goes on no more. */
  readonly writes: number;
  /** Whether this thread has done nothing else since the read was last used. */
  isJustDone: boolean;
}

/** Number of writes of all stores of this thread so far. */
let writesOfThread = 0;

/** Counts a write of this thread, after which no held read goes on. */
export function noteWrite(): void {
  writesOfThread += 1;
}

/** The read that each connection holds, if any. */
const held = new WeakMap<BlockingConnection, HeldNow>();

/** Holds a read until the turn of the event loop ends, and then ends it if nobody has taken it. */
export function holdRead(connection: BlockingConnection, what: Held): void {
  const one = { ...what, session: connection.session, writes: writesOfThread, isJustDone: true };
  held.set(connection, one);
  queueMicrotask(() => (one.isJustDone = false));
  setImmediate(() => {
    if (held.get(connection) === one) endHeld(connection);
  });
}

/**
 * Returns the read that is held for a store and a question, or for the opening of the store if nothing else has run
 * since; undefined if there is none, if its session is lost, or if this thread has written since. It is not held any
 * more: the caller ends it, or holds it again.
 */
export function takeHeld(connection: BlockingConnection, of: object, question: object | undefined): Held | undefined {
  const one = held.get(connection);
  if (one?.of !== of || one.session !== connection.session || one.writes !== writesOfThread) return undefined;
  const isOurs = one.question === null ? one.isJustDone : one.question === question;
  if (!isOurs) return undefined;
  held.delete(connection);
  return one;
}

/** Ends the read that a connection holds, if any. Call it before anything else uses the connection. */
export function endHeld(connection: BlockingConnection): void {
  const one = held.get(connection);
  if (one === undefined) return;
  held.delete(connection);
  one.read.end(one.session === connection.session);
}

import { reviveError, serialiseError, type SerialisedError } from '../../engine/index.ts';

/**
 * One end of the pipe between two processes: `process` in a process that was forked, its handle in the one that forked
 * it.
 */
export interface Pipe {
  on(event: 'message', listener: (message: unknown) => void): unknown;
  send?(message: object, callback: (error: Error | null) => void): unknown;
}

type Message =
  | { readonly kind: 'ask'; readonly id: number; readonly name: string; readonly input: unknown }
  | { readonly kind: 'answer'; readonly id: number; readonly value: unknown }
  | { readonly kind: 'refusal'; readonly id: number; readonly error: SerialisedError }
  | { readonly kind: 'tell'; readonly name: string; readonly input: unknown }
  | Handover;

/** Hands a connection over to the other process; the socket goes beside the message. */
export interface Handover {
  readonly kind: 'connection';
  readonly id: number;
}

/** What the other end may ask for, by name; a promise is awaited. */
export type Answers = Readonly<Record<string, (input: never) => unknown>>;

/** The calls that this end makes at the other. */
export interface Channel {
  /**
   * Asks the other end for something and resolves with its answer.
   * @throws EngineError with the code and message of the other end's error; `unavailable` once the pipe is closed
   */
  ask<Answer>(name: string, input?: unknown): Promise<Answer>;
  /** Tells the other end something that it need not answer. Lost if the pipe is closed. */
  tell(name: string, input?: unknown): void;
  /** Rejects every question that waits for an answer. Called when the other process has ended. */
  fail(error: Error): void;
}

/**
 * Makes a channel over a pipe that carries plain data, maps and byte arrays (`serialization: 'advanced'`). Both ends
 * make one, each with its own answers.
 */
export function createChannel(pipe: Pipe, answers: Answers): Channel {
  const waiting = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>();
  let lastId = 0;
  const send = (message: Message, onError: (error: Error) => void = () => {}) => {
    pipe.send?.(message, (error) => {
      if (error !== null) onError(error);
    });
  };
  const answer = async (id: number, name: string, input: unknown) => {
    try {
      send({ kind: 'answer', id, value: await answers[name]!(input as never) });
    } catch (error) {
      send({ kind: 'refusal', id, error: serialiseError(error) });
    }
  };
  const settle = (id: number) => {
    const call = waiting.get(id);
    waiting.delete(id);
    return call;
  };
  pipe.on('message', (received) => {
    const message = received as Message;
    if (message.kind === 'ask') void answer(message.id, message.name, message.input);
    else if (message.kind === 'tell') void answers[message.name]!(message.input as never);
    else if (message.kind === 'answer') settle(message.id)?.resolve(message.value);
    else if (message.kind === 'refusal') settle(message.id)?.reject(reviveError(message.error));
  });
  return {
    ask: <Answer>(name: string, input?: unknown) =>
      new Promise<Answer>((resolve, reject) => {
        const id = ++lastId;
        waiting.set(id, { resolve: resolve as (value: unknown) => void, reject });
        send({ kind: 'ask', id, name, input }, (error) => settle(id)?.reject(error));
      }),
    tell: (name, input) => send({ kind: 'tell', name, input }),
    fail(error) {
      for (const { reject } of waiting.values()) reject(error);
      waiting.clear();
    },
  };
}

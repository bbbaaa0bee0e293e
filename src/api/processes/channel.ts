import { EngineError, reviveError, serialiseError, type SerialisedError } from '../../engine/index.ts';

/** One end of the pipe between two processes: `process` in the child, the child's handle in the parent. */
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

/** Message that hands a connection over to the other process. The socket is sent along with it. */
export interface Handover {
  readonly kind: 'connection';
  readonly id: number;
}

/** Functions that the process at the other end of the pipe may call, by name. They may return a promise. */
export type Answers = Readonly<Record<string, (input: never) => unknown>>;

/** One end of a channel between two processes, which calls functions of the other process by their names. */
export interface Channel {
  /**
   * Calls the function `name` in the process at the other end, and resolves with its result.
   * @throws EngineError with the code and message of the error that the function throws there; `unavailable` if the
   *   call could not be sent; the error that was passed to `fail`, also for every later call
   */
  ask<Answer>(name: string, input?: unknown): Promise<Answer>;
  /**
   * Calls the function `name` at the other end without waiting for a result. The message is lost if the pipe is closed.
   */
  tell(name: string, input?: unknown): void;
  /** Rejects every present and later `ask` with this error. Call it when the other process has ended. */
  fail(error: Error): void;
}

/**
 * Makes one end of a channel over a pipe that carries plain data, maps and byte arrays (`serialization: 'advanced'`).
 * @param answers the functions that the other end may call
 */
export function createChannel(pipe: Pipe, answers: Answers): Channel {
  const waiting = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>();
  let lastId = 0;
  /** The error that was passed to `fail`; undefined before. */
  let failure: Error | undefined;
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
        // Node takes messages for a process that has ended, and loses them.
        if (failure !== undefined) throw failure;
        const id = ++lastId;
        waiting.set(id, { resolve: resolve as (value: unknown) => void, reject });
        const onError = (error: Error) => settle(id)?.reject(unsent(error));
        try {
          send({ kind: 'ask', id, name, input }, onError);
        } catch (error) {
          onError(error as Error);
        }
      }),
    tell: (name, input) => send({ kind: 'tell', name, input }),
    fail(error) {
      failure = error;
      for (const { reject } of waiting.values()) reject(error);
      waiting.clear();
    },
  };
}

function unsent(cause: Error): EngineError {
  return new EngineError('unavailable', 'the other process of the service cannot be reached', { cause });
}

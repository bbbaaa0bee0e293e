/** Asks a local model for vectors on a thread of its own, which starts with the first call. */

import { Worker } from 'node:worker_threads';
import { EngineError } from '../errors.ts';
import type { LocalModel } from './local-model.ts';

/** Data with which the thread of a model starts. */
export interface ModelThreadData {
  readonly local: LocalModel;
  /** Name of the package that runs the model. */
  readonly runtime: string;
  /** Fingerprint of the files from which the model's name was made. */
  readonly named: string;
}

/** A call: the texts to embed; null gives the call up. */
export interface ModelCall {
  readonly id: number;
  readonly texts: readonly string[] | null;
}

/** The answer to a call: vectors that are not normalised, in the order of the texts, or what failed. */
type ModelAnswer = { readonly id: number } & (
  { readonly vectors: readonly (readonly number[])[] } | { readonly problem: string }
);

/** A model on a thread of its own. */
export interface ModelLink {
  /**
   * Computes the vectors of texts, which are not normalised, in order.
   * @throws EngineError `unavailable` if the model cannot be loaded or fails, if its thread ended, or on abort
   */
  compute(texts: readonly string[], signal?: AbortSignal): Promise<readonly (readonly number[])[]>;
  /** Ends the thread, which has the model in memory, and rejects the calls that wait. */
  close(): void;
}

/** Creates the link to a model. A thread that ended is started again by the next call. */
export function createModelLink(data: ModelThreadData): ModelLink {
  const waiting = new Map<number, PromiseWithResolvers<readonly (readonly number[])[]>>();
  let thread: Worker | undefined;
  let lastId = 0;

  function start(): Worker {
    const started = new Worker(new URL(`./local-model-thread${import.meta.filename.slice(-3)}`, import.meta.url), {
      workerData: data,
      name: 'cairn-model',
    });
    started.on('message', (answer: ModelAnswer) => {
      if ('vectors' in answer) waiting.get(answer.id)?.resolve(answer.vectors);
      else waiting.get(answer.id)?.reject(failed(answer.problem));
    });
    started.on('error', () => {
      // It ends then. The message may quote a text, so it is not passed on.
    });
    started.on('exit', () => {
      thread = undefined;
      for (const { reject } of waiting.values()) reject(failed('ended'));
    });
    return started;
  }

  return {
    close() {
      void thread?.terminate();
    },
    async compute(texts, signal) {
      if (signal?.aborted) throw givenUp();
      const called = (thread ??= start());
      const id = (lastId += 1);
      const answer = Promise.withResolvers<readonly (readonly number[])[]>();
      waiting.set(id, answer);
      const giveUp = () => {
        called.postMessage({ id, texts: null } satisfies ModelCall);
        answer.reject(givenUp());
      };
      signal?.addEventListener('abort', giveUp, { once: true });
      // Only a call keeps the process alive.
      called.ref();
      called.postMessage({ id, texts } satisfies ModelCall);
      try {
        return await answer.promise;
      } finally {
        signal?.removeEventListener('abort', giveUp);
        waiting.delete(id);
        if (waiting.size === 0) called.unref();
      }
    },
  };
}

const givenUp = () => failed('was given up by its caller');

function failed(what: string): EngineError {
  return new EngineError('unavailable', `the local model in LOCAL_MODEL_PATH ${what}`);
}

/**
 * Changes of the control database that requests ask for. In PostgreSQL a thread of their own makes them, since each
 * statement waits for a reply: while the database is silent, locked or waits for its standby, that takes seconds.
 */

import { setTimeout as pause } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type { Config } from '../config.ts';
import { EngineError, reviveError, type SerialisedError } from '../errors.ts';
import type { ControlDatabase } from './control-database.ts';

/** The methods of the control database that requests call to change something, by name. */
export const CONTROL_CHANGES = {
  createTenant: ({ createTenant }: ControlDatabase) => createTenant,
  createKey: ({ createKey }: ControlDatabase) => createKey,
  revokeKey: ({ revokeKey }: ControlDatabase) => revokeKey,
  changeLimits: ({ limits }: ControlDatabase) => limits.change,
  addServer: ({ federation }: ControlDatabase) => federation.add,
  removeServer: ({ federation }: ControlDatabase) => federation.remove,
  removeServersWrittenBy: ({ federation }: ControlDatabase) => federation.removeWrittenBy,
  appendAudit: ({ audit }: ControlDatabase) => audit.append,
};

type ControlChange = keyof typeof CONTROL_CHANGES;
type Method<N extends ControlChange> = ReturnType<(typeof CONTROL_CHANGES)[N]>;

export interface ControlChanges {
  /**
   * Calls a method of the control database, and resolves with its result once this thread knows of the change. In
   * PostgreSQL that takes up to 250 ms longer than the change.
   * @throws EngineError errors of the method; `unavailable` if the thread ended, perhaps after the change
   */
  change<N extends ControlChange>(name: N, ...input: Parameters<Method<N>>): Promise<ReturnType<Method<N>>>;
  close(): Promise<void>;
}

/** A change that the thread is asked to make. */
export interface AskedChange {
  readonly id: number;
  readonly name: ControlChange;
  readonly input: readonly unknown[];
}

/** The answer of the thread to the change with this id. */
export type MadeChange = { readonly id: number } & (
  { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly error: SerialisedError }
);

/**
 * Time after the last change at which the thread is ended (ms), and its connections with it. It is longer than a pause
 * in which the thread does not try to reach a database (30 s).
 */
const IDLE_MS = 60_000;

/**
 * Returns how changes are made: by a thread of their own in PostgreSQL, unless all is done on this thread (`inline`);
 * in a file, whose commits are short, on this thread.
 */
export function openControlChanges(
  config: Config,
  control: ControlDatabase,
  kind: 'thread' | 'inline',
): ControlChanges {
  return kind === 'thread' && config.OM_DATABASE_URL !== undefined
    ? changesOnThread(config, control)
    : changesHere(control);
}

function changesHere(control: ControlDatabase): ControlChanges {
  return {
    change: async (name, ...input) => (CONTROL_CHANGES[name](control) as (...given: unknown[]) => never)(...input),
    close: async () => {},
  };
}

/** Makes the changes on a thread that is started for the first one, and ended a minute after the last one. */
function changesOnThread(config: Config, control: Pick<ControlDatabase, 'seeChanges'>): ControlChanges {
  let thread: Worker | undefined;
  let idle: NodeJS.Timeout | undefined;
  let lastId = 0;
  const waiting = new Map<number, PromiseWithResolvers<unknown>>();
  const start = () => {
    const started = new Worker(new URL(`./control-thread${import.meta.filename.slice(-3)}`, import.meta.url), {
      workerData: config,
      name: 'cairn-control',
    });
    let ended: unknown;
    started.on('error', (cause) => void (ended = cause));
    started.on('exit', () => {
      if (thread !== started) return;
      thread = undefined;
      for (const { reject } of waiting.values())
        reject(new EngineError('unavailable', 'the thread ended', { cause: ended, mayBeWritten: true }));
      waiting.clear();
    });
    started.on('message', ({ id, ...made }: MadeChange) => {
      if (made.ok) waiting.get(id)?.resolve(made.value);
      else waiting.get(id)?.reject(reviveError(made.error));
      waiting.delete(id);
      if (waiting.size === 0) idle = setTimeout(() => void end(), IDLE_MS).unref();
    });
    return started;
  };
  const end = async () => {
    clearTimeout(idle);
    const ending = thread;
    thread = undefined;
    ending?.postMessage('close');
    if (ending !== undefined) await new Promise((resolve) => ending.once('exit', resolve));
  };
  return {
    async change(name, ...input) {
      clearTimeout(idle);
      thread ??= start();
      const made = Promise.withResolvers<unknown>();
      waiting.set(++lastId, made);
      thread.postMessage({ id: lastId, name, input } satisfies AskedChange);
      const value = await made.promise;
      await control.seeChanges();
      return value as never;
    },
    async close() {
      while (waiting.size > 0) await pause(10);
      await end();
    },
  };
}

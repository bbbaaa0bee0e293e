/**
 * Changes of the control database that requests ask for, notes of key uses, and ends of broken-off moves. In
 * PostgreSQL a thread of their own makes them, since each statement waits for a reply: while the database is silent,
 * locked or waits for its standby, that takes seconds.
 */

import { Worker } from 'node:worker_threads';
import type { Config } from '../config.ts';
import { EngineError, reviveError, type SerialisedError } from '../errors.ts';
import type { ControlDatabase } from './control-database.ts';
import type { LimitChanges, LimitScope } from './limits.ts';
import type { Caller } from '../types.ts';
import { requireStillAdmitted } from './still-admitted.ts';

/**
 * The methods of the control database that requests call to change something, by name. What a request answers is
 * returned with the change, since a later read could fail although the change was made.
 */
const CONTROL_CHANGES = {
  createTenant: ({ createTenant }: ControlDatabase) => createTenant,
  createKey: ({ createKey }: ControlDatabase) => createKey,
  revokeKey: (control: ControlDatabase) => (keyId: string, by: string) => {
    control.revokeKey(keyId, by);
    return control.findKey(keyId)!;
  },
  changeLimits:
    ({ limits }: ControlDatabase) =>
    (scope: LimitScope, changes: LimitChanges, by: string) => {
      limits.change(scope, changes, by);
      return { inForce: limits.inForce(scope), own: limits.own(scope) };
    },
  putSetting: ({ putSetting }: ControlDatabase) => putSetting,
  makeSetting: ({ makeSetting }: ControlDatabase) => makeSetting,
  addServer: ({ federation }: ControlDatabase) => federation.add,
  removeServer: ({ federation }: ControlDatabase) => federation.remove,
  removeServersWrittenBy: ({ federation }: ControlDatabase) => federation.removeWrittenBy,
  appendAudit: ({ audit }: ControlDatabase) => audit.append,
  openSession: ({ sessions }: ControlDatabase) => sessions.open,
  closeSession: ({ sessions }: ControlDatabase) => sessions.close,
  storeKeyUses: ({ storeKeyUses }: ControlDatabase) => storeKeyUses,
  settleMove: ({ settleMove }: ControlDatabase) => settleMove,
};

export type ControlChange = keyof typeof CONTROL_CHANGES;
type Method<N extends ControlChange> = ReturnType<(typeof CONTROL_CHANGES)[N]>;
export type ChangeInput<N extends ControlChange> = Parameters<Method<N>>;
export type ChangeResult<N extends ControlChange> = ReturnType<Method<N>>;

/**
 * Names of the changes of which other threads need not learn, as they read the changed rows each time that they need
 * them. These changes raise no generation.
 */
const READ_EACH_TIME: ReadonlySet<ControlChange> = new Set([
  'addServer',
  'removeServer',
  'removeServersWrittenBy',
  'appendAudit',
  'openSession',
  'closeSession',
  'storeKeyUses',
]);

export interface ControlChanges {
  /**
   * Calls a method of the control database for a caller, and resolves with its result once this thread knows of the
   * change. If a thread makes the change, as in PostgreSQL, that takes up to 250 ms longer. While the database does not
   * answer, or another process holds it locked, each change fails after 5 to 17 s, and those behind it wait as long.
   * After 30 s only revocations of keys and records of backups begin.
   * @param caller the caller of the request; null for what the service does by itself
   * @throws EngineError errors of the method; `unauthenticated` if the caller is no longer admitted when its turn
   *   comes, for example as the change before it revoked its key; `unavailable` if the thread ended, with
   *   `mayBeWritten` if it had begun the change, and if the change had not begun after 30 s or before `close`
   */
  change<N extends ControlChange>(caller: Caller | null, name: N, ...input: ChangeInput<N>): Promise<ChangeResult<N>>;
  /** Rejects the changes that have not begun, and waits for the one that has. */
  close(): Promise<void>;
}

/** A change that the thread is asked to make. It is asked for one at a time. */
export interface AskedChange {
  readonly caller: Caller | null;
  readonly name: ControlChange;
  readonly input: readonly unknown[];
}

/** The answer of the thread to the change that it was asked for. */
export type MadeChange =
  { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly error: SerialisedError };

/**
 * Time after the last change at which the thread is ended (ms), and its connections with it. It is longer than a pause
 * in which the thread does not try to reach a database (30 s), and than the time between two writes of key uses (60 s),
 * so that these do not start a thread each time.
 */
const IDLE_MS = 90_000;

/**
 * Time after which a change that has not begun is no longer made (ms): its caller has been waiting for so long because
 * the database does not answer the changes before it.
 */
const WAIT_MS = 30_000;

/**
 * Whether a change begins however long it has waited: the revocation of a key, which may have leaked, and the record of
 * a backup, which was asked for before.
 */
function isMadeInAnyCase({ name, input }: AskedChange): boolean {
  return name === 'revokeKey' || (name === 'appendAudit' && input[0] === 'backup.request');
}

/**
 * Returns how changes are made: by a thread of their own in PostgreSQL, unless all is done on this thread (`inline`);
 * in a file, whose commits are short, on this thread.
 * @param waitMs time after which the thread no longer makes a change that has not begun (ms)
 */
export function openControlChanges(
  config: Config,
  control: ControlDatabase,
  kind: 'thread' | 'inline',
  waitMs = WAIT_MS,
): ControlChanges {
  return kind === 'thread' && config.OM_DATABASE_URL !== undefined
    ? changesOnThread(config, control, waitMs)
    : changesHere(config, control);
}

/**
 * Makes a change and returns its result. Where all changes are made one after the other by this function, no key that
 * one of them revokes makes another one.
 * @throws EngineError `unauthenticated` if the caller is no longer admitted; errors of the method
 */
export function makeChange(control: ControlDatabase, config: Config, { caller, name, input }: AskedChange): unknown {
  if (caller !== null) requireStillAdmitted(caller, { control, config });
  return (CONTROL_CHANGES[name](control) as (...given: readonly unknown[]) => unknown)(...input);
}

function changesHere(config: Config, control: ControlDatabase): ControlChanges {
  return {
    change: async (caller, name, ...input) => makeChange(control, config, { caller, name, input }) as never,
    close: async () => {},
  };
}

interface Waiting {
  readonly asked: AskedChange;
  readonly made: PromiseWithResolvers<unknown>;
  /** Time at which it was asked for, by the monotonic clock (ms). */
  readonly since: number;
}

/**
 * Makes the changes on a thread, which is started when a change comes and none runs, and ended 90 s after the last one.
 * From then on, that thread also writes the uses of keys, and ends moves whose processes are gone.
 */
function changesOnThread(
  config: Config,
  control: Pick<ControlDatabase, 'seeChanges' | 'sessions' | 'storeKeyUsesBy' | 'settleMovesBy'>,
  waitMs: number,
): ControlChanges {
  let thread: Worker | undefined;
  let idle: NodeJS.Timeout | undefined;
  let isClosed = false;
  /** The changes that are not made yet, in their order. The thread makes the first one. */
  const waiting: Waiting[] = [];
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
      for (const [place, { made }] of waiting.splice(0).entries())
        made.reject(new EngineError('unavailable', 'the thread ended', { cause: ended, mayBeWritten: place === 0 }));
    });
    started.on('message', (answer: MadeChange) => {
      const { made } = waiting.shift()!;
      if (answer.ok) made.resolve(answer.value);
      else made.reject(reviveError(answer.error));
      refuseLate(waiting, performance.now() - waitMs);
      if (waiting.length > 0) askForFirst();
      else idle = setTimeout(() => void end(), IDLE_MS).unref();
    });
    return started;
  };
  const askForFirst = () => thread!.postMessage(waiting[0]!.asked);
  const end = async () => {
    clearTimeout(idle);
    const ending = thread;
    thread = undefined;
    ending?.postMessage('close');
    if (ending !== undefined) await new Promise((resolve) => ending.once('exit', resolve));
  };
  const changes: ControlChanges = {
    async change(caller, name, ...input) {
      if (isClosed) throw isClosing();
      clearTimeout(idle);
      const made = Promise.withResolvers<unknown>();
      thread ??= start();
      waiting.push({ asked: { caller, name, input }, made, since: performance.now() });
      if (waiting.length === 1) askForFirst();
      const value = await made.promise;
      if (!READ_EACH_TIME.has(name)) await control.seeChanges();
      if (name === 'openSession') control.sessions.noteChange((value as ChangeResult<'openSession'>).secret);
      if (name === 'closeSession') control.sessions.noteChange(input[0] as string);
      return value as never;
    },
    async close() {
      isClosed = true;
      for (const { made } of waiting.splice(1)) made.reject(isClosing());
      await waiting[0]?.made.promise.catch(() => {});
      await end();
    },
  };
  control.storeKeyUsesBy((uses) => changes.change(null, 'storeKeyUses', uses));
  control.settleMovesBy((tenantId) => changes.change(null, 'settleMove', tenantId));
  return changes;
}

/** Rejects the changes that were asked for at `latest` or before, and removes them from the list. */
function refuseLate(waiting: Waiting[], latest: number): void {
  const isLate = ({ asked, since }: Waiting) => since <= latest && !isMadeInAnyCase(asked);
  for (const { made } of waiting.filter(isLate))
    made.reject(new EngineError('unavailable', 'the control database is slow to answer', { retryAfterMs: 5_000 }));
  waiting.splice(0, waiting.length, ...waiting.filter((change) => !isLate(change)));
}

const isClosing = () => new EngineError('unavailable', 'the service stops');

import { setTimeout as pause } from 'node:timers/promises';
import type { Config } from '../config.ts';
import { assert, isEngineError } from '../errors.ts';
import { ofKey, standbyKey, type StandbyReport, type StandbyUse } from '../readers/standby-reads.ts';
import { postgresError } from '../store/postgres/blocking-connection.ts';
import { type ServerIdentity, StandbyIsRefused } from '../store/postgres/server-identity.ts';
import { openStandbyLink, type StandbyLink } from '../store/postgres/standby-link.ts';
import { StandbyIsBehind } from '../store/standby-is-behind.ts';
import type { TenantPool } from '../tenant-file/tenant-pool.ts';
import type { SharedReading } from './shared-reading.ts';

/** Pause between two looks at whether the standby has received what a read needs (ms). */
const LOOK_EVERY_MS = 10;

/** A read of a tenant, and how it uses the standby. */
interface StandbyRead<R> extends StandbyUse {
  /** Path of the tenant's file. */
  readonly path: string;
  readonly signal: AbortSignal;
  /**
   * Runs the read on the tenant that the pool opens under a key. It is called with the standby's key first, then
   * perhaps with that of the primary, and again with the same key if `SharedReading.run` repeats it.
   */
  readonly read: (key: string) => Promise<R>;
  /**
   * Called with what became of the read on the standby. If the primary answers then, called a second time with the same
   * outcome and the position of that answer. Not called if the read was aborted, or if its error on the standby is the
   * answer.
   */
  readonly onReport: (report: StandbyReport) => void;
}

type Wait = Pick<StandbyRead<unknown>, 'floor' | 'waitMs' | 'signal'>;

/** The standby, as one reader thread uses it. */
export interface StandbyReading {
  /**
   * Runs a read on the standby, or, if the standby does not answer it, on the primary; on each of them as
   * `SharedReading.run` does.
   * @throws what the read throws on the server that answers
   */
  run<R>(read: StandbyRead<R>): Promise<R>;
  close(): void;
}

export interface StandbyReadingOptions {
  readonly config: Config;
  /** Identity of the server of OM_DATABASE_URL; null without OM_DATABASE_READ_URL. */
  readonly primary: ServerIdentity | null;
  readonly pool: TenantPool;
  readonly sharing: SharedReading;
}

/**
 * Creates the object through which a reader thread uses the standby. It connects at the first read. The caller closes
 * it.
 */
export function createStandbyReading(options: StandbyReadingOptions): StandbyReading {
  const { pool, sharing } = options;
  let link: StandbyLink | undefined;

  /**
   * Waits until the standby has received the tenant up to the position `floor`, for `waitMs` at most, and returns the
   * number of the connection's session that has it.
   * @throws StandbyIsBehind if it has not within the time; the errors of `StandbyLink.check`; the abort reason of
   *   `signal`
   */
  async function reach(key: string, { floor, waitMs, signal }: Wait): Promise<number> {
    const end = performance.now() + waitMs;
    for (;;) {
      try {
        const { session } = checked();
        if (session !== null && positionOf(key, floor) >= floor) return session;
        throw new StandbyIsBehind('a write that the answer must hold');
      } catch (error) {
        if (!(error instanceof StandbyIsBehind) || performance.now() >= end) throw error;
      }
      await pause(LOOK_EVERY_MS, undefined, { signal }).catch(() => {});
      signal.throwIfAborted();
    }
  }

  function checked(): StandbyLink {
    link ??= openLink(options);
    link.check();
    return link;
  }

  /** Returns the position of a tenant on the standby, which is read only if the last known one is below `floor`. */
  function positionOf(key: string, floor: number): number {
    const { store } = pool.get(key);
    if (store.position < floor) store.read(() => store.othersVersion());
    return store.position;
  }

  async function onStandby<R>({
    read,
    ...wanted
  }: Omit<StandbyRead<R>, 'onReport'>): Promise<{ value: R; position: number }> {
    const key = standbyKey(wanted.path);
    const session = await reach(key, wanted);
    const value = await sharing.run(key, () => read(key));
    // Another server may have answered a part of it, which nobody has checked.
    if (link?.session !== session) throw new SessionWasReplaced();
    return { value, position: pool.get(key).store.position };
  }

  return {
    async run({ onReport, ...wanted }) {
      const { path, signal, read } = wanted;
      let report: Omit<StandbyReport, 'position'> | undefined;
      try {
        const { value, position } = await onStandby(wanted);
        onReport({ outcome: 'standby', reason: '', position });
        return value;
      } catch (error) {
        report = reportOf(error);
        if (report === undefined || signal.aborted) throw error;
        onReport({ ...report, position: 0 });
      }
      const value = await sharing.run(path, () => read(path));
      onReport({ ...report, position: pool.get(path).store.position });
      return value;
    },
    close: () => link?.close(),
  };
}

function openLink({ config, primary, pool }: StandbyReadingOptions): StandbyLink {
  const { OM_DATABASE_URL, OM_DATABASE_READ_URL, OM_DATABASE_READ_LAG_MS } = config;
  assert(OM_DATABASE_URL !== undefined && OM_DATABASE_READ_URL !== undefined && primary !== null, 'a standby');
  return openStandbyLink({
    standby: OM_DATABASE_READ_URL,
    primary: OM_DATABASE_URL,
    identity: primary,
    maxLagMs: OM_DATABASE_READ_LAG_MS,
    onNewSession() {
      for (const key of pool.openPaths()) if (ofKey(key).isStandby) pool.evict(key);
    },
  });
}

/** SQLSTATE with which a standby breaks off a read, because the read kept it from applying the log of the primary. */
const IN_THE_WAY = '40001';

/** Thrown if the connection to the standby was replaced during a read. */
class SessionWasReplaced extends Error {}

/**
 * Returns the report about an error on the standby after which the primary is asked; undefined for an error that is the
 * answer of the read.
 */
function reportOf(error: unknown): Omit<StandbyReport, 'position'> | undefined {
  if (error instanceof StandbyIsBehind) return { outcome: 'behind', reason: error.message };
  if (error instanceof StandbyIsRefused) return { outcome: 'down', reason: error.message };
  if (error instanceof SessionWasReplaced) return { outcome: 'failed', reason: 'its session ended' };
  const cause = postgresError(error);
  // A conflict with the log of the primary may end the session, too.
  if (cause?.code === IN_THE_WAY) return { outcome: 'failed', reason: cause.code };
  if (cause !== undefined) return { outcome: cause.isLost ? 'down' : 'failed', reason: cause.code };
  // What the standby does not have may have been stored a moment ago.
  const isRepeated = isEngineError(error, 'not_found') || isEngineError(error, 'unavailable');
  return isRepeated ? { outcome: 'failed', reason: error.code } : undefined;
}

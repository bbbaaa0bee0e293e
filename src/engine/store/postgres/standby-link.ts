/** One thread's connection to a standby, with the check that it leads to a standby of the primary or to the primary. */

import type { BlockingConnection } from './blocking-connection.ts';
import { createReplayBound } from './replay-bound.ts';
import { readIdentity, requireCopy, requireRelated, type ServerIdentity } from './server-identity.ts';
import { hold, STANDBY_TIMEOUTS } from './tenant-database.ts';

/** Time after which a checked connection is checked again (ms), since a standby may be promoted at any time. */
const CHECK_EVERY_MS = 1_000;
/** Longest time that it may take to read where an open connection leads, ms. */
const LOOK_MS = 3_000;

export interface StandbyLink {
  /**
   * Connects if there is no session, and checks where the session leads to, unless the same session was checked within
   * the last second.
   * @throws EngineError `unavailable` if the standby does not answer, or if it takes writes and the primary does not
   *   answer; StandbyIsRefused if it is not to be read; StandbyIsBehind if it lacks the newest schema, or as
   *   `ReplayBound.require`
   */
  check(): void;
  /**
   * Number of the present session of the connection, which `check` approves; null if there is none or it is known to be
   * lost.
   */
  readonly session: number | null;
  /** Closes the connection, unless stores are open on it. */
  close(): void;
}

export interface StandbyLinkOptions {
  /** Address of the standby. */
  readonly standby: string;
  /** Address of the server that is written to. */
  readonly primary: string;
  /** Identity of the server that is written to, as it was read at the start. */
  readonly identity: ServerIdentity;
  /**
   * Called when the session of the link was replaced, and when the link is closed: stores must be opened anew, as
   * another server may answer.
   */
  readonly onNewSession: () => void;
  /** How old the state of the standby may be (ms, OM_DATABASE_READ_LAG_MS); undefined for any age. */
  readonly maxLagMs: number | undefined;
}

/** Makes a link to a standby. It connects at the first check. */
export function openStandbyLink(options: StandbyLinkOptions): StandbyLink {
  const { standby, primary, identity, onNewSession, maxLagMs: maxMs } = options;
  const bound = maxMs === undefined ? null : createReplayBound({ primary, maxMs });
  let held: ReturnType<typeof hold> | undefined;
  let checked: { readonly session: number; readonly at: number; readonly isStandby: boolean } | undefined;

  /** Ends the connection, so that the next one reads version and catalog of its server anew. */
  function drop(): void {
    checked = undefined;
    bound?.forget();
    onNewSession();
    held?.release();
    held = undefined;
  }

  function connection(): BlockingConnection {
    held ??= hold('standby', { database: standby });
    return held.connection();
  }

  function checkServer(): void {
    if (checked !== undefined && connection().session !== checked.session) drop();
    if (checked !== undefined && performance.now() - checked.at < CHECK_EVERY_MS) return;
    const found = look(connection());
    // A server that takes writes may be the primary, which after a failover is another one than at the start.
    if (found.isStandby) requireCopy(found, identity);
    else requireRelated(found, identityOf(primary));
    const { session } = connection();
    if (session !== checked?.session) bound?.forget();
    if (session !== null) checked = { session, at: performance.now(), isStandby: found.isStandby };
  }

  return {
    check() {
      checkServer();
      if (checked?.isStandby === true) bound?.require(connection());
    },
    get session() {
      return held?.shared.connection.session ?? null;
    },
    close() {
      drop();
      bound?.close();
    },
  };
}

/** Reads to which server a connection leads, within 3 s: a standby that hangs is mostly found out here. */
function look(connection: BlockingConnection): ServerIdentity {
  connection.setTimeouts({ ...STANDBY_TIMEOUTS, statementMs: LOOK_MS });
  try {
    return readIdentity(connection);
  } finally {
    connection.setTimeouts(STANDBY_TIMEOUTS);
  }
}

/** Reads to which server the address of the primary leads now, on this thread's connection of readers. */
function identityOf(primary: string): ServerIdentity {
  const { connection, release } = hold('reader', { database: primary });
  try {
    return readIdentity(connection());
  } finally {
    release();
  }
}

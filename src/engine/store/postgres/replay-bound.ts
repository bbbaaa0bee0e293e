/** Bounds how old the state of a standby may be of which a read is answered. */

import { StandbyIsBehind } from '../standby-is-behind.ts';
import type { BlockingConnection } from './blocking-connection.ts';
import { hold } from './tenant-database.ts';

/** SQL that reads the position up to which the primary's log is on its disk (bytes); what was acknowledged is below. */
const READ_FLUSHED = `SELECT pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')`;
/** SQL that reads the position up to which a standby has replayed the log (bytes). */
const READ_REPLAYED = `SELECT pg_wal_lsn_diff(coalesce(pg_last_wal_replay_lsn(), '0/0'), '0/0')`;
/** Number of parts of the bound; at most one position of the primary is kept for each. */
const MAX_MARKS = 16;

/** The check that the state of a standby is not older than a bound. */
export interface ReplayBound {
  /**
   * Requires that the standby has replayed all that was acknowledged longer ago than the bound. It asks both servers,
   * unless it is known already that the standby has replayed what was acknowledged half of the bound ago.
   * @throws StandbyIsBehind if this is not known: the standby has not, the primary does not say how far its log goes,
   *   or the standby lacks anything at a first look; EngineError as `BlockingConnection.query` if the standby fails
   */
  require(standby: BlockingConnection): void;
  /**
   * Forgets the results of earlier looks, so that the next `require` asks both servers: the address may lead to another
   * standby, which is further behind.
   */
  forget(): void;
  close(): void;
}

export interface ReplayBoundOptions {
  /** Address of the server that is written to. */
  readonly primary: string;
  /** How old the state of the standby may be, ms. */
  readonly maxMs: number;
}

/**
 * Makes the bound. All times are of this process: the position of the primary is read first and that of the standby
 * later, so no clocks are compared. `pg_last_xact_replay_timestamp` was not taken: its age also grows while nothing
 * happens on the primary.
 */
export function createReplayBound({ primary, maxMs }: ReplayBoundOptions): ReplayBound {
  let held: ReturnType<typeof hold> | undefined;
  /**
   * Positions of the primary's log, each with the time before it was read (`at`). They hold for any of its standbys.
   */
  let marks: { readonly at: number; readonly position: number }[] = [];
  /** Latest time for which it is known that the standby has replayed all that the primary's log had then. */
  let completeAt = -Infinity;

  function flushed(): number {
    try {
      held ??= hold('reader', { database: primary });
      return positionOf(held.connection(), READ_FLUSHED, 'flushed');
    } catch {
      throw new StandbyIsBehind('what the primary would say: it does not answer');
    }
  }

  return {
    require(standby) {
      const now = performance.now();
      if (now - completeAt <= maxMs / 2) return;
      const position = flushed();
      marks = marks.filter(({ at }) => now - at <= maxMs);
      if (now - (marks.at(-1)?.at ?? -Infinity) >= maxMs / MAX_MARKS) marks.push({ at: now, position });
      const replayed = positionOf(standby, READ_REPLAYED, 'replayed');
      const reached = replayed >= position ? now : marks.findLast((mark) => mark.position <= replayed)?.at;
      completeAt = Math.max(completeAt, reached ?? -Infinity);
      if (now - completeAt > maxMs) throw new StandbyIsBehind(`what was written ${maxMs} ms ago`);
    },
    forget: () => void (completeAt = -Infinity),
    close() {
      held?.release();
      held = undefined;
    },
  };
}

function positionOf(connection: BlockingConnection, text: string, name: string): number {
  return connection.query(text, [], name).rows[0]![0] as number;
}

/** Tracks whether statements have changed rows, including queued statements whose result is not known yet. */

import type { BlockingConnection, Queued } from './blocking-connection.ts';
import type { QueryResult } from './statements.ts';

export interface ChangeWatch {
  /**
   * Runs or queues a statement, and tracks its result. A statement that throws counts as a change, since its
   * transaction has failed.
   */
  note<T extends QueryResult | Queued>(statement: () => T): T;
  /** Records that the last statement certainly changes rows, although it is still queued. */
  noteSure(): void;
  /**
   * Returns a counter. It differs from the last call's value if a statement changed rows in between. If only the
   * results of queued statements can tell, it sends them.
   */
  read(): number;
  /**
   * Counts the statements whose result is still unknown as changes. Call it at the end of a transaction and after a
   * savepoint was undone, since queued statements may have been dropped then.
   */
  assumeChanges(): void;
}

/** Greatest number of statements with an unknown result that are kept; a further one first sends them. */
const MAX_UNKNOWN = 512;

export function watchChanges(connection: BlockingConnection): ChangeWatch {
  let number = 0;
  /** Whether rows are known to have changed since the last `read`. */
  let isChanged = false;
  /** Queued statements since the last `read` that may have changed rows; empty once a change is known. */
  let unknown: Queued[] = [];
  const change = () => {
    isChanged = true;
    unknown = [];
  };
  const find = () => {
    try {
      connection.flush();
    } catch (error) {
      change();
      throw error;
    }
    try {
      if (unknown.some((queued) => queued.result().changes > 0)) isChanged = true;
    } catch {
      // One of them had failed, and whoever asked for its result was told.
      isChanged = true;
    }
    unknown = [];
  };
  return {
    note(statement) {
      let made: ReturnType<typeof statement>;
      try {
        made = statement();
      } catch (error) {
        change();
        throw error;
      }
      if ('result' in made) {
        if (unknown.length >= MAX_UNKNOWN) find();
        if (!isChanged) unknown.push(made);
      } else if (made.changes > 0) change();
      return made;
    },
    noteSure: change,
    read() {
      if (unknown.length > 0) find();
      if (isChanged) number += 1;
      isChanged = false;
      return number;
    },
    assumeChanges() {
      // Nobody asks any more whether these statements changed rows, and a needless read is cheap.
      if (unknown.length > 0) change();
    },
  };
}

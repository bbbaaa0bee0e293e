/** Watches whether statements change rows, also those whose result is not known yet. */

import type { BlockingConnection, Queued } from './blocking-connection.ts';
import type { QueryResult } from './connection-messages.ts';

export interface ChangeWatch {
  /** Runs a statement, or lets it wait. One that fails counts as a change: the transaction has failed with it. */
  note<T extends QueryResult | Queued>(statement: () => T): T;
  /** Says that the last statement changes rows, though it still waits. */
  noteSure(): void;
  /**
   * Returns a number that is another one than before if a statement changed rows since the last call. It sends what
   * waits where only that can tell.
   */
  read(): number;
  /** Ends a transaction or a savepoint, with which statements that waited may have been dropped. */
  settle(): void;
}

/** Most statements that are kept until it is known whether they changed rows. */
const MAX_UNKNOWN = 512;

export function watchChanges(connection: BlockingConnection): ChangeWatch {
  let number = 0;
  /** Whether rows were changed since the last `read`, as far as that is known. */
  let isChanged = false;
  /** Statements since then that may have changed rows; none are kept once one is known to have. */
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
    settle() {
      // Whether the last of them changed rows is of no use to anybody any more, and a read is cheap.
      if (unknown.length > 0) change();
    },
  };
}

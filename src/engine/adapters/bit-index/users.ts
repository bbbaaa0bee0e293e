/**
 * The table of users' rows in the bit index, by `userNo`: 8 bytes for each number up to the highest. User numbers are
 * small, since each file numbers its own users.
 */

import { assert } from '../../errors.ts';

/** Number of 32-bit words for each user: the last row plus 1, and the number of removed rows. */
const USER_WORDS = 2;
/** Number of users for which the table has memory at first. */
const FIRST_USERS = 1_024;
/** Greatest number of users; addresses are reserved for them. */
const MAX_USERS = 2 ** 27;

/** The table of users. One thread at a time changes it, while others read it. */
export interface Users {
  /** Returns the last row that was written for a user, removed or not; -1 if there is none. */
  lastRow(userNo: number): number;
  /** Sets a user's last row. It must be called after the row was written. */
  setLastRow(userNo: number, row: number): void;
  /** Returns the number of a user's rows that were removed; 0 for an unknown user. */
  removedRows(userNo: number): number;
  countRemoval(userNo: number): void;
  /** Removes all users from the table. */
  clear(): void;
}

/** Creates the memory of an empty table. */
export function createUserMemory(): SharedArrayBuffer {
  return new SharedArrayBuffer(4 * USER_WORDS * FIRST_USERS, { maxByteLength: 4 * USER_WORDS * MAX_USERS });
}

/**
 * Opens a table for one thread. It grows as users are added; a number beyond `MAX_USERS` throws EngineError `internal`.
 */
export function openUsers(memory: SharedArrayBuffer): Users {
  let words = new Int32Array(memory, 0, memory.byteLength / 4);
  const show = () => {
    const length = memory.byteLength / 4;
    if (words.length < length) words = new Int32Array(memory, 0, length);
  };
  const read = (at: number) => {
    if (at >= words.length) show();
    return at < words.length ? Atomics.load(words, at) : 0;
  };
  const write = (at: number, value: number) => {
    if (at >= words.length) {
      assert(at < USER_WORDS * MAX_USERS, `a user's number above ${MAX_USERS}`);
      while (memory.byteLength <= 4 * at) memory.grow(2 * memory.byteLength);
      show();
    }
    Atomics.store(words, at, value);
  };
  return {
    lastRow: (userNo) => read(USER_WORDS * userNo) - 1,
    setLastRow: (userNo, row) => write(USER_WORDS * userNo, row + 1),
    removedRows: (userNo) => read(USER_WORDS * userNo + 1),
    countRemoval: (userNo) => write(USER_WORDS * userNo + 1, read(USER_WORDS * userNo + 1) + 1),
    clear() {
      show();
      words.fill(0);
    },
  };
}

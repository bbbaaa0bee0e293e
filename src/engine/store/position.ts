/** A connection to the data of a tenant that knows how new the state is that it has seen. */
export interface Positioned {
  /**
   * Position of the newest state that a transaction of this connection has seen or made: the tenant's counter of
   * writes, which every commit in PostgreSQL raises and which a standby receives with that commit. 0 before the first
   * transaction, and always 0 for a SQLite file.
   */
  readonly position: number;
}

/** The parts of a store that a SQLite file does not have. */
export const IN_FILE = { ahead: null, words: null, position: 0 } as const;

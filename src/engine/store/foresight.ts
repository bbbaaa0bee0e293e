/** Prefetches query answers inside a transaction in PostgreSQL, so that several queries share one round trip. */
export interface Foresight {
  /**
   * Prefetches the answers of a query for each of these parameter lists, all in the next round trip. Later calls of the
   * query in this transaction get these answers, unless a statement in between may have changed them. Outside of a
   * transaction it does nothing.
   */
  ask(sql: string, parameters: readonly (readonly unknown[])[]): void;
  /**
   * Stores an answer that the caller already knows, so that the query need not be sent in this transaction.
   * @param rows rows of the answer, as `Statement.all` returns them
   */
  answer(sql: string, parameters: readonly unknown[], rows: readonly object[]): void;
  /**
   * Runs each reading (a function that only reads) as far as its first SQL query whose answer is not prefetched yet.
   * These queries are sent along with the next query of the transaction, so that the readings find the answers when
   * they run again. What a reading returns here is dropped. It must not spend work (`spendWork`).
   */
  readSpeculatively(...readings: readonly (() => unknown)[]): void;
  /** Waits for the answers to what was prefetched so far. */
  send(): void;
  /** Number of round trips of the present transaction so far. */
  readonly trips: number;
  /**
   * Returns a `Store.read` for the reads of one question. Those that follow one another within a turn of the event loop
   * share a snapshot, and the later ones take no round trip to begin.
   */
  readInOneTurn(): <T>(work: () => T) => T;
  /** Runs the read of the store's opening, in whose snapshot the first question goes on if it follows at once. */
  readAtOpening<T>(work: () => T): T;
}

/**
 * Number of round trips after which a write in PostgreSQL takes no further request, item, line or memory: another write
 * takes them. All tenants' writes wait for a write of one of them, in a busy network some 0.1 s for 150 round trips.
 */
const MAX_TRIPS = 150;

/**
 * Tells whether the present write of a store has taken 150 round trips; false for a SQLite file, which has none.
 * @param owed number of round trips that the write has yet to take in any case; they count as taken
 */
export const hasManyTrips = ({ ahead }: { readonly ahead: Foresight | null }, owed = 0): boolean =>
  ahead !== null && ahead.trips + owed >= MAX_TRIPS;

/**
 * Answers that a store keeps from one snapshot to the next: those to predicted queries (`query-predictor.ts`), which
 * each transaction of a kind makes with the same values. Every write raises the tenant's counter of writes, so they are
 * right in each snapshot with the same counter. The counter is read with the beginning of every snapshot; only if it is
 * another one, the queries are sent.
 */

import type { Queued } from './blocking-connection.ts';
import type { QueryResult } from './statements.ts';
import type { SentQuery } from './query-predictor.ts';
import type { BegunRead } from './unit-of-work.ts';

/** Number of kept answers beyond which the end of a read first drops all of them. */
const MAX_KEPT = 256;
/** Greatest number of characters of an answer that is kept; a number counts as eight. */
const MAX_CHARACTERS = 8_192;

export interface KeptAnswers<Query extends SentQuery> {
  /**
   * Begins a read, to which `ask` and `end` then belong.
   * @param writes the tenant's counter of writes in its snapshot
   * @param session number of the session; answers that another session read are dropped, as that may have read another
   *   server
   */
  begin(writes: BegunRead, session: number | null): void;
  /**
   * Asks a query of the tenant's rows, inside a read. It is queued only if no answer is kept, or if the counter of
   * writes is not the one of the kept answer.
   * @param queue queues a query, to be sent with the next round trip
   * @returns the answer; a kept one is known as soon as the counter of writes is
   */
  ask(query: Query, queue: (query: Query) => Queued): Queued;
  /**
   * Ends a read, and keeps the short answers that it got.
   * @param version the counter of writes in its snapshot; undefined if the read did not come to know it
   */
  end(version: number | undefined): void;
}

/** A query that was asked, and what it waits for: the counter of writes alone, or its own answer. */
interface Asked<Query> {
  readonly query: Query;
  readonly name: string;
  sent: Queued | undefined;
}

export function createKeptAnswers<Query extends SentQuery>(): KeptAnswers<Query> {
  let kept = new Map<string, QueryResult>();
  /** Counter of writes, and session, in which the answers were read. */
  let [version, session]: [number, number | null] = [-1, null];
  let present: { readonly writes: BegunRead; readonly session: number | null } | undefined;
  let asked: Asked<Query>[] = [];

  /** Whether the answers hold in the present snapshot. It takes a round trip if the counter is not known yet. */
  const isSame = () => present!.session === session && present!.writes.number() === version;
  const ask = (one: Asked<Query>, queue: (query: Query) => Queued): Queued => {
    const send = () => {
      // All together: whoever needs one of them needs the others.
      for (const other of asked) other.sent ??= queue(other.query);
      return one.sent!;
    };
    return {
      result: () => (one.sent === undefined && isSame() ? kept.get(one.name)! : send().result()),
      get isWaiting() {
        if (one.sent !== undefined) return one.sent.isWaiting;
        return !present!.writes.isKnown() || !(isSame() || !send().isWaiting);
      },
    };
  };
  return {
    begin(writes, of) {
      present = { writes, session: of };
      asked = [];
    },
    ask(query, queue) {
      const name = `${query.text}\n${JSON.stringify(query.asked.values)}`;
      const isKept = present!.session === session && kept.has(name);
      const one: Asked<Query> = { query, name, sent: isKept ? undefined : queue(query) };
      asked.push(one);
      return isKept ? ask(one, queue) : one.sent!;
    },
    end(writes) {
      const read = present;
      present = undefined;
      if (read === undefined || writes === undefined) return;
      if (writes !== version || read.session !== session || kept.size > MAX_KEPT) kept = new Map();
      [version, session] = [writes, read.session];
      for (const { name, sent } of asked) {
        if (sent?.isWaiting !== false) continue;
        try {
          const answer = sent.result();
          if (isShort(answer)) kept.set(name, answer);
        } catch {
          // The query had failed, which the read has dealt with.
        }
      }
    },
  };
}

/**
 * Tells whether an answer is short enough to be kept: what each query of a tenant asks alike has a few numbers and
 * names. Bytes are not kept, as they are a part of the buffer of their whole reply.
 */
function isShort({ rows }: QueryResult): boolean {
  let characters = 0;
  for (const row of rows)
    for (const value of row) {
      if (value instanceof Uint8Array) return false;
      characters += typeof value === 'string' ? value.length : 8;
      if (characters > MAX_CHARACTERS) return false;
    }
  return true;
}

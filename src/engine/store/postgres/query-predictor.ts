/**
 * Predicts which queries a transaction will make, to save round trips. Transactions are grouped by their first query. A
 * query is predicted if the last two transactions of the group made it with the same values, such as the query for the
 * tenant's models. The predicted queries are sent in the round trip of the first query. Their answers are always
 * current, since they are read in the present transaction; a wrong prediction only costs one unnecessary query.
 */

import { LRUCache } from 'lru-cache';
import type { SqlValue } from './connection-messages.ts';

/** Greatest number of groups of transactions that are remembered; a group is named by its first query. */
const MAX_KINDS = 64;
/** Greatest number of queries of one transaction that are remembered. */
const MAX_QUERIES = 64;

/** A query with the values of its parameters. */
export interface SentQuery {
  readonly text: string;
  readonly values: readonly SqlValue[];
}

export interface QueryPredictor<Query extends SentQuery> {
  begin(): void;
  /** Returns the predicted queries if `query` is the first query of a transaction; an empty list for a later one. */
  follow(query: SentQuery): readonly Query[];
  /**
   * Records a query that the transaction made. Do not record queries with long answers, since a wrong prediction would
   * read them needlessly.
   */
  note(query: Query): void;
  end(): void;
}

interface Kind<Query> {
  /** Queries of the last transaction of this group, by text and values. */
  last: ReadonlyMap<string, Query>;
  /** The queries in `last` that the transaction before it had made, too: the predicted ones. */
  repeated: readonly Query[];
}

export function createQueryPredictor<Query extends SentQuery>(): QueryPredictor<Query> {
  const kinds = new LRUCache<string, Kind<Query>>({ max: MAX_KINDS });
  let asked = new Map<string, Query>();
  let kind: Kind<Query> | undefined;
  return {
    begin() {
      asked = new Map();
      kind = undefined;
    },
    note(query) {
      if (asked.size < MAX_QUERIES) asked.set(nameOf(query), query);
    },
    follow(query) {
      if (kind !== undefined) return [];
      kind = kinds.get(query.text);
      if (kind === undefined) kinds.set(query.text, (kind = { last: new Map(), repeated: [] }));
      return kind.repeated;
    },
    end() {
      if (kind === undefined) return;
      const { last } = kind;
      kind.repeated = [...asked].flatMap(([name, query]) => (last.has(name) ? [query] : []));
      kind.last = asked;
      kind = undefined;
    },
  };
}

function nameOf({ text, values }: SentQuery): string {
  return `${text}\n${JSON.stringify(values)}`;
}

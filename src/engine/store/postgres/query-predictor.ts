/**
 * Predicts which queries a transaction will make, to save round trips. Transactions are grouped by their first query. A
 * query is predicted if the last two transactions of the group made it with the same values, such as the query for the
 * tenant's models. The predicted queries are sent in the round trip of the first query. Their answers are always
 * current, since they are read in the present transaction; a wrong prediction only costs one unnecessary query.
 */

import { LRUCache } from 'lru-cache';
import type { SqlValue } from './statements.ts';

/** Greatest number of groups of transactions that are remembered; a group is named by its first query. */
const MAX_KINDS = 64;
/** Greatest number of queries of one transaction that are remembered. */
const MAX_QUERIES = 64;

/** A query with the values of its parameters, the number of the tenant left out. */
export interface SentQuery {
  readonly text: string;
  readonly asked: { readonly values: readonly SqlValue[] };
}

export interface QueryPredictor<Query extends SentQuery> {
  begin(): void;
  /** Returns the predicted queries if `query` is the first query of a transaction; an empty list for a later one. */
  follow(query: Pick<SentQuery, 'text'>): readonly Query[];
  /**
   * Records a query that the transaction made. Do not record queries with long answers, since a wrong prediction would
   * read them needlessly.
   */
  note(query: Query): void;
  end(): void;
}

interface Kind<Query> {
  /** Queries that the last transaction of this group made, by text and values. */
  readonly last: ReadonlyMap<string, Query>;
  /** The queries in `last` that the transaction before it had made, too: the predicted ones. */
  readonly repeated: readonly Query[];
}

/**
 * What the first transactions of the stores of a connection ask. A store that was just opened has made no transaction
 * yet, so its first one of a group is predicted from the first ones of the last two stores that made one.
 */
export interface FirstQueries<Query extends SentQuery> {
  /** Returns what the first transaction of a group is known to ask; undefined if no store has made one. */
  find(firstQuery: string): Kind<Query> | undefined;
  /** Records the queries that a store's first transaction of a group made. */
  note(firstQuery: string, asked: ReadonlyMap<string, Query>): void;
}

export function createFirstQueries<Query extends SentQuery>(): FirstQueries<Query> {
  const kinds = new LRUCache<string, Kind<Query>>({ max: MAX_KINDS });
  return {
    find: (firstQuery) => kinds.get(firstQuery),
    note(firstQuery, asked) {
      const last = kinds.get(firstQuery)?.last ?? new Map<string, Query>();
      kinds.set(firstQuery, { last: asked, repeated: inBoth(asked, last) });
    },
  };
}

/**
 * Makes the predictor of one store.
 * @param first what the first transactions of other stores asked; nothing by default
 * @param own turns a query of another store into the same query of this store
 */
export function createQueryPredictor<Query extends SentQuery>(
  first: FirstQueries<Query> = createFirstQueries(),
  own: (query: Query) => Query = (query) => query,
): QueryPredictor<Query> {
  const kinds = new LRUCache<string, Kind<Query>>({ max: MAX_KINDS });
  let asked = new Map<string, Query>();
  /** Text of the first query of the present transaction; undefined before it. */
  let firstQuery: string | undefined;
  return {
    begin() {
      asked = new Map();
      firstQuery = undefined;
    },
    note(query) {
      if (asked.size < MAX_QUERIES) asked.set(nameOf(query), query);
    },
    follow(query) {
      if (firstQuery !== undefined) return [];
      firstQuery = query.text;
      return kinds.get(firstQuery)?.repeated ?? first.find(firstQuery)?.repeated.map(own) ?? [];
    },
    end() {
      if (firstQuery === undefined) return;
      const kind = kinds.get(firstQuery);
      const last = kind?.last ?? first.find(firstQuery)?.last ?? new Map<string, Query>();
      kinds.set(firstQuery, { last: asked, repeated: inBoth(asked, last) });
      if (kind === undefined) first.note(firstQuery, asked);
      firstQuery = undefined;
    },
  };
}

function inBoth<Query>(asked: ReadonlyMap<string, Query>, last: ReadonlyMap<string, Query>): readonly Query[] {
  return [...asked].flatMap(([name, query]) => (last.has(name) ? [query] : []));
}

function nameOf({ text, asked }: SentQuery): string {
  return `${text}\n${JSON.stringify(asked.values)}`;
}

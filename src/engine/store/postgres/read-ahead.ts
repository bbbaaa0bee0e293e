/**
 * Cache of query answers within one transaction, to save round trips. A query that was made before is answered from
 * here. A query that will certainly be made can be prefetched together with others. A statement that may change an
 * answer removes it from the cache: see `statement-effects.ts`.
 */

import type { Queued } from './blocking-connection.ts';
import type { Catalog } from './catalog.ts';
import type { QueryResult, SqlValue } from './statements.ts';
import { queryForm, writeForm, type QueryForm, type WriteForm } from './statement-effects.ts';

/** Greatest number of cached answers; further answers are not cached. */
const MAX_ANSWERS = 4_096;
/**
 * Greatest number of rows of an answer that is cached after its query; a prefetched answer is cached whatever its size.
 */
const MAX_ROWS = 64;

/** A statement with the values of its parameters and their names, in the same order. */
export interface Asked {
  readonly sql: string;
  readonly names: readonly string[];
  readonly values: readonly SqlValue[];
}

export interface Answers {
  /**
   * Clears the cache for a new transaction.
   * @param canWrite whether the transaction may change rows
   */
  begin(canWrite: boolean): void;
  /**
   * Returns the cached answer of a query; undefined if the query must be sent to the server. A query that is queued is
   * sent.
   */
  find(asked: Asked): QueryResult | undefined;
  /** Whether the answer of this query is cached and has arrived, so that `find` takes no round trip. */
  isThere(asked: Asked): boolean;
  /** Whether the answer of this query is not cached yet and `keep` would cache it. */
  isWanted(asked: Asked): boolean;
  /**
   * Caches an answer, or a queued query whose answer is to come. It does nothing if the cache is full, an answer that
   * is there has more than 64 rows, or a transaction that writes could not tell which writes change the answer.
   */
  keep(asked: Asked, answer: QueryResult | Queued): void;
  /** Removes the answers that a writing statement may change. Call it before the statement is sent or queued. */
  write(asked: Asked): void;
  clear(): void;
}

/** The cached answers of one query text, for different values. */
interface Family {
  readonly form: QueryForm;
  readonly answers: Map<string, { readonly asked: Asked; readonly answer: QueryResult | Queued }>;
  /**
   * Index of the answers: for a parameter's name and value the keys of the answers. It holds only those parameters by
   * which answers have been removed before.
   */
  readonly byValue: Map<string, Map<string, string[]>>;
}

/**
 * Which answers of a family a write removes: all, or those whose parameter `theirs` has the same value as the write's
 * own parameter `own`, for each of these pairs.
 */
type Effect = 'all' | readonly { readonly own: string; readonly theirs: string }[];

export function createAnswers(catalog: Catalog): Answers {
  const { queries, writes, effects } = knownForms(catalog);
  const families = new Map<string, Family>();
  let count = 0;
  let canWrite = false;

  const queryOf = (sql: string) => formOf(queries, sql, () => queryForm(sql, catalog));
  const clear = () => {
    families.clear();
    count = 0;
  };
  const effectsOn = (write: WriteForm, query: QueryForm): readonly Effect[] => {
    let known = effects.get(write);
    if (known === undefined) effects.set(write, (known = new Map<QueryForm, readonly Effect[]>()));
    let found = known.get(query);
    if (found === undefined) known.set(query, (found = effectsOf(write, query, catalog)));
    return found;
  };
  const drop = (family: Family, key: string) => {
    if (family.answers.delete(key)) count -= 1;
  };
  const answerTo = ({ sql, values }: Asked) => families.get(sql)?.answers.get(keyOf(values))?.answer;
  return {
    begin(writing) {
      canWrite = writing;
      clear();
    },
    find(asked) {
      const found = answerTo(asked);
      return found === undefined || !('result' in found) ? found : found.result();
    },
    isThere(asked) {
      const found = answerTo(asked);
      return found !== undefined && !('result' in found && found.isWaiting);
    },
    isWanted: (asked) =>
      count < MAX_ANSWERS && (!canWrite || queryOf(asked.sql) !== null) && answerTo(asked) === undefined,
    keep(asked, answer) {
      const form = canWrite ? queryOf(asked.sql) : NO_READS;
      if (form === null || count >= MAX_ANSWERS || ('rows' in answer && answer.rows.length > MAX_ROWS)) return;
      let family = families.get(asked.sql);
      if (family === undefined) families.set(asked.sql, (family = { form, answers: new Map(), byValue: new Map() }));
      const key = keyOf(asked.values);
      if (!family.answers.has(key)) count += 1;
      family.answers.set(key, { asked, answer });
      for (const [name, keys] of family.byValue) noteKey(keys, valueOf(asked, name), key);
    },
    write(asked) {
      if (count === 0) return;
      const form = formOf(writes, asked.sql, () => writeForm(asked.sql, catalog));
      if (form === null) return clear();
      for (const family of families.values()) {
        for (const effect of effectsOn(form, family.form)) {
          if (effect === 'all') [...family.answers.keys()].forEach((key) => drop(family, key));
          else keysOf(family, effect, asked).forEach((key) => drop(family, key));
        }
      }
    },
    clear,
  };
}

/** Cache of what was found out about statements from their texts, and about their effects on each other. */
interface KnownForms {
  readonly queries: Map<string, QueryForm | null>;
  readonly writes: Map<string, WriteForm | null>;
  readonly effects: WeakMap<WriteForm, Map<QueryForm, readonly Effect[]>>;
}

/**
 * For each catalog, what this thread has found out about statements from their texts; it is the same for all tenants.
 */
const knownByCatalog = new WeakMap<Catalog, KnownForms>();

function knownForms(catalog: Catalog): KnownForms {
  let known = knownByCatalog.get(catalog);
  if (known === undefined)
    knownByCatalog.set(catalog, (known = { queries: new Map(), writes: new Map(), effects: new WeakMap() }));
  return known;
}

/**
 * Returns the form of a statement, which is found out by `read` and then remembered; null for a statement that is not
 * understood.
 */
function formOf<Form>(known: Map<string, Form | null>, sql: string, read: () => Form | undefined): Form | null {
  let form = known.get(sql);
  if (form === undefined) {
    if (known.size >= MAX_ANSWERS) known.clear();
    known.set(sql, (form = read() ?? null));
  }
  return form;
}

const NO_READS: QueryForm = { reads: [], words: new Set() };

function effectsOf(write: WriteForm, { reads, words }: QueryForm, catalog: Catalog): Effect[] {
  return reads.flatMap(({ table, equal }): Effect[] => {
    if (table !== write.table) return [];
    if (write.isInsert) {
      // The row of a new memory comes first, and is judged by its own columns.
      if (table === 'memory_dynamics') return [];
      const numbered = catalog.get(table)?.numbered;
      // A new row gets a number that no row had.
      if (numbered !== undefined && equal.has(numbered) && !write.equal.has(numbered)) return [];
    } else if (words !== null && [...write.sets].every((column) => !words.has(column))) return [];
    const columns = [...equal.keys()].filter((name) => write.equal.has(name));
    return [
      columns.length === 0
        ? 'all'
        : columns.map((column) => ({ own: write.equal.get(column)!, theirs: equal.get(column)! })),
    ];
  });
}

/**
 * Lists the keys of the answers that an effect removes: those whose parameters equal the parameters of the write in all
 * pairs.
 */
function keysOf(family: Family, [first, ...more]: Exclude<Effect, 'all'>, asked: Asked): readonly string[] {
  return keysWith(family, first!.theirs, valueOf(asked, first!.own)).filter((key) => {
    const theirs = family.answers.get(key)?.asked;
    return theirs !== undefined && more.every((one) => valueOf(theirs, one.theirs) === valueOf(asked, one.own));
  });
}

/**
 * Lists the keys of the answers of a family whose parameter `name` has this value; some of them may have been removed.
 */
function keysWith(family: Family, name: string, value: string): readonly string[] {
  let keys = family.byValue.get(name);
  if (keys === undefined) {
    family.byValue.set(name, (keys = new Map<string, string[]>()));
    for (const [key, { asked }] of family.answers) noteKey(keys, valueOf(asked, name), key);
  }
  return keys.get(value) ?? [];
}

function noteKey(keys: Map<string, string[]>, value: string, key: string): void {
  const known = keys.get(value);
  if (known === undefined) keys.set(value, [key]);
  else known.push(key);
}

function valueOf({ names, values }: Asked, name: string): string {
  return keyOf([values[names.indexOf(name)]!]);
}

function keyOf(values: readonly SqlValue[]): string {
  return values
    .map((value) =>
      value instanceof Uint8Array
        ? `x${Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('hex')}`
        : // With its length, so that no text can look like two values.
          `${typeof value === 'string' ? `s${value.length}:` : 'n'}${value}`,
    )
    .join();
}

/**
 * Determines from the SQL text alone which cached query answers a write may change. It understands the simple
 * statements of frequent code paths: a SELECT whose WHERE compares columns with parameters, an INSERT of one row, and
 * an UPDATE of the rows with given values. A write that it does not understand counts as a change of every answer.
 */

import type { Catalog } from './catalog.ts';
import { closingPlace, nextPlace, nextText, textBefore, tokensOf, type Token } from './tokens.ts';

/** Parameter names by column: the parameter that a column is compared with, or set to. */
type ByColumn = ReadonlyMap<string, string>;

/** One reference to a table in a SELECT. */
interface Read {
  readonly table: string;
  /** Columns that have the value of a parameter in every row that is read from this table. */
  readonly equal: ByColumn;
}

/** What is known about a SELECT from its text. */
export interface QueryForm {
  readonly reads: readonly Read[];
  /**
   * All words in the SELECT, which include the names of the columns that it reads; null if it reads all columns (`*`).
   */
  readonly words: ReadonlySet<string> | null;
}

/** What is known about a writing statement from its text. */
export interface WriteForm {
  readonly table: string;
  readonly isInsert: boolean;
  /** Columns that have the value of a parameter in every changed row, both before and after the change. */
  readonly equal: ByColumn;
  /** Columns that the statement sets: for a DELETE all columns, for an INSERT none. */
  readonly sets: ReadonlySet<string>;
}

/** Tables that triggers write to when other tables change. Answers of queries on them are not cached. */
const OF_TRIGGERS: ReadonlySet<string> = new Set(['events', 'standing_due', 'recall_total', 'vector_parts']);
/** Tables on whose updates triggers change other tables. */
const WITH_TRIGGERS: ReadonlySet<string> = new Set(['memories', 'documents', 'document_generations']);
/**
 * Tables whose rows can be deleted without any effect on other tables: no foreign key refers to them, and no trigger
 * runs.
 */
export const LEAVES: ReadonlySet<string> = new Set(['edges']);
/** Keywords that end a WHERE clause. */
const ENDS_WHERE: ReadonlySet<string> = new Set(['GROUP', 'ORDER', 'LIMIT', 'HAVING', 'RETURNING', 'UNION', 'WINDOW']);

/** Analyses a SELECT; undefined for another statement, or one that is not understood. */
export function queryForm(sql: string, catalog: Catalog): QueryForm | undefined {
  if (!sql.startsWith('SELECT') || /\b(?:UNION|EXCEPT|INTERSECT|WITH)\b/.test(sql)) return undefined;
  const tokens = tokensOf(sql);
  const parameters = parameterNames(tokens);
  const tables = tokens.flatMap((token, place) => {
    const isTable =
      token.kind === 'word' && catalog.has(token.text) && ['FROM', 'JOIN'].includes(textBefore(tokens, place));
    return isTable ? [{ token, place, alias: aliasOf(tokens, place) }] : [];
  });
  // Tables after a comma in FROM are not recognised, so a statement that has some is not understood.
  const mentioned = tokens.filter(({ kind, text }) => kind === 'word' && catalog.get(text)?.ofTenants === true);
  if (mentioned.some(({ text }) => !tables.some(({ token }) => token.text === text))) return undefined;
  if (tables.some(({ token }) => OF_TRIGGERS.has(token.text))) return undefined;
  const reads = tables.map(({ token, place, alias }): Read => {
    const where = tokens.findIndex(({ text, depth }, at) => at > place && text === 'WHERE' && depth === token.depth);
    const isOwn = where !== -1 && !tokens.slice(place, where).some(({ depth }) => depth < token.depth);
    const siblings = tables.filter((other) => other.token.depth === token.depth);
    const owns = (column: string) =>
      siblings.filter((other) => catalog.get(other.token.text)!.columns.has(column)).length === 1 &&
      catalog.get(token.text)!.columns.has(column);
    const isColumn = (name: string, column: string) => name === alias || (name === '' && owns(column));
    return { table: token.text, equal: isOwn ? equalities(tokens, where, parameters, isColumn) : new Map() };
  });
  const takesAll = tokens.some(({ text }, place) => text === '*' && textBefore(tokens, place) !== '(');
  return { reads, words: takesAll ? null : wordsOf(tokens) };
}

/**
 * Analyses a writing statement; undefined for one that is not understood, such as a DELETE that may delete rows of
 * other tables through foreign keys or triggers.
 */
export function writeForm(sql: string, catalog: Catalog): WriteForm | undefined {
  const tokens = tokensOf(sql);
  const parameters = parameterNames(tokens);
  if (/^INSERT (?:OR IGNORE )?INTO /.test(sql)) return insertForm(tokens, parameters);
  const [, ofUpdate, alias] = /^UPDATE (\w+)(?: AS ([a-z]\w*))?\s+SET\b/.exec(sql) ?? [];
  const [, ofDelete] = /^DELETE FROM (\w+) WHERE /.exec(sql) ?? [];
  const table = ofUpdate ?? ofDelete ?? '';
  const columns = catalog.get(table)?.columns;
  const isUnderstood = ofDelete === undefined ? !WITH_TRIGGERS.has(table) : LEAVES.has(table);
  if (columns === undefined || !isUnderstood) return undefined;
  const hasOthers = tokens.some(({ text, depth }, place) => /^(?:FROM|USING)$/.test(text) && depth === 0 && place > 2);
  const where = hasOthers ? -1 : tokens.findIndex(({ text, depth }) => text === 'WHERE' && depth === 0);
  const isColumn = (name: string, column: string) => columns.has(column) && (name === '' || name === (alias ?? table));
  const equal = where === -1 ? new Map<string, string>() : equalities(tokens, where, parameters, isColumn);
  if (ofDelete !== undefined) return { table, isInsert: false, equal, sets: new Set(columns.keys()) };
  const sets = new Set(columnsSet(tokens));
  for (const column of sets) equal.delete(column);
  return { table, isInsert: false, equal, sets };
}

/** Lists the columns that an UPDATE sets. */
export function columnsSet(tokens: readonly Token[]): string[] {
  return tokens.flatMap(({ text, depth }, place) => {
    const isTarget = /^(?:SET|,)$/.test(textBefore(tokens, place)) && nextText(tokens, place) === '=';
    return depth === 0 && isTarget ? [text] : [];
  });
}

function insertForm(tokens: readonly Token[], parameters: ReadonlyMap<number, string>): WriteForm {
  const into = tokens.findIndex(({ text }) => text === 'INTO');
  const table = nextPlace(tokens, into);
  const list = nextPlace(tokens, table);
  const columns = partsOf(tokens, list).map((part) => tokens[part[0]!]!.text);
  const form: WriteForm = { table: tokens[table]!.text, isInsert: true, equal: new Map(), sets: new Set() };
  const open = nextPlace(tokens, nextPlace(tokens, closingPlace(tokens, list)));
  const close = closingPlace(tokens, open);
  const isOneRow = textBefore(tokens, open) === 'VALUES' && nextText(tokens, close) !== ',';
  const values = isOneRow ? partsOf(tokens, open) : [];
  if (values.length !== columns.length) return form;
  // A row that is there already and is updated equals the new one in the columns of the conflict alone.
  const conflict = tokens.findIndex(({ text }) => text === 'CONFLICT');
  const isUpdating = tokens.some(({ text }, place) => text === 'UPDATE' && place > close);
  const same = isUpdating
    ? partsOf(tokens, nextPlace(tokens, conflict)).map((part) => tokens[part[0]!]!.text)
    : columns;
  const equal = new Map<string, string>();
  for (const [place, column] of columns.entries()) {
    const [at, ...more] = values[place]!;
    const name = more.length === 0 ? parameters.get(at!) : undefined;
    if (name !== undefined && same.includes(column)) equal.set(column, name);
  }
  return { ...form, equal };
}

/**
 * Splits the contents of a pair of parentheses at its commas. Returns for each part the indexes of its tokens, without
 * spaces.
 * @param open index of the opening parenthesis
 */
function partsOf(tokens: readonly Token[], open: number): number[][] {
  const parts: number[][] = [[]];
  for (let at = open + 1; at < closingPlace(tokens, open); at += 1) {
    const { kind, text, depth } = tokens[at]!;
    if (kind === 'sign' && text === ',' && depth === tokens[open]!.depth + 1) parts.push([]);
    else if (kind !== 'space') parts.at(-1)!.push(at);
  }
  return parts;
}

/**
 * Returns the names of the parameters by the index of their token. A `?` is named by its number among the `?`, from
 * '0'.
 */
function parameterNames(tokens: readonly Token[]): Map<number, string> {
  const names = new Map<number, string>();
  let nameless = 0;
  for (const [place, { kind, text }] of tokens.entries()) {
    if (kind === 'parameter') names.set(place, text === '?' ? String(nameless++) : text.slice(1));
  }
  return names;
}

function wordsOf(tokens: readonly Token[]): Set<string> {
  return new Set(tokens.filter(({ kind }) => kind === 'word').map(({ text }) => text));
}

/**
 * Returns the alias of the table whose name is the token at the index `place`; the table's own name if it has no alias.
 */
function aliasOf(tokens: readonly Token[], place: number): string {
  const next = nextPlace(tokens, place);
  const alias = tokens[tokens[next]?.text === 'AS' ? nextPlace(tokens, next) : next];
  return alias?.kind === 'word' && /^[a-z]/.test(alias.text) ? alias.text : tokens[place]!.text;
}

/**
 * Finds the conditions `column = ?` that every selected row must meet: parts of a WHERE that are joined by AND. Returns
 * the parameter names by column; empty if the WHERE has an OR.
 */
function equalities(
  tokens: readonly Token[],
  where: number,
  parameters: ReadonlyMap<number, string>,
  isColumn: (table: string, column: string) => boolean,
): Map<string, string> {
  const { depth } = tokens[where]!;
  const equal = new Map<string, string>();
  let condition: number[] = [];
  const finish = () => {
    const texts = condition.map((at) => tokens[at]!.text);
    const [table, column, rest] = texts[1] === '.' ? [texts[0]!, texts[2]!, 3] : ['', texts[0]!, 1];
    const name = parameters.get(condition[rest + 1] ?? -1);
    if (condition.length === rest + 2 && texts[rest] === '=' && name !== undefined && isColumn(table, column)) {
      equal.set(column, name);
    }
    condition = [];
  };
  for (let at = where + 1; at < tokens.length; at += 1) {
    const token = tokens[at]!;
    const isHere = token.depth === depth;
    if (token.depth < depth || (isHere && ENDS_WHERE.has(token.text))) break;
    if (isHere && token.text === 'OR') return new Map();
    if (isHere && token.text === 'AND') finish();
    else if (token.kind !== 'space') condition.push(at);
  }
  finish();
  return equal;
}

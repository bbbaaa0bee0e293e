/**
 * Translates statements from SQLite's dialect to PostgreSQL's. Statements are written once, for SQLite. This file adds
 * what only PostgreSQL needs: numbered parameters with types, and the few forms of SQL that differ. Functions are not
 * translated here: the schema defines `instr`, `unhex`, `json_extract` and others for PostgreSQL
 * (`migrations/0001-functions.sql`).
 */

import type { Catalog } from './catalog.ts';
import { closingPlace, nextPlace, nextText, textBefore, tokensOf, type Token } from './tokens.ts';

/** The parameters in the text of a statement. */
export interface ParameterPlaces {
  /**
   * Names of the parameters, each once, in the order of first use. A `?` has the number of `?` before it as its name,
   * from '0'.
   */
  readonly names: readonly string[];
  /** Names of the parameters that hold a JSON list, which the statement opens with `json_each`. */
  readonly lists: ReadonlySet<string>;
  /**
   * Type of the values of a list parameter, by the parameter's name. It is needed for an empty list, which does not
   * show its type. A name that is not here stands for integers.
   */
  readonly emptyForms: ReadonlyMap<string, 'texts' | 'values'>;
}

/**
 * Form of a parameter's value: null, an integer, a fraction, a text, bytes, or a JSON list of integers, of fractions,
 * of texts or of other values.
 */
export type ParameterForm = 'null' | 'integer' | 'fraction' | 'text' | 'bytes' | `list of ${ListForm}`;
export type ListForm = 'integers' | 'fractions' | 'texts' | 'values';

const CASTS: Readonly<Record<Exclude<ParameterForm, 'null' | `list of ${ListForm}`>, string>> = {
  integer: 'bigint',
  fraction: 'float8',
  text: 'text',
  bytes: 'bytea',
};

/**
 * Names of PostgreSQL functions that expand a JSON list, by the type of its values. Each returns rows of `key`, from 0,
 * and `value`.
 */
const LIST_FUNCTIONS: Readonly<Record<ListForm, string>> = {
  integers: 'json_integers',
  fractions: 'json_fractions',
  texts: 'json_texts',
  values: 'json_values',
};

/** Finds the parameters of a statement in SQLite's dialect: their names, and which of them hold JSON lists. */
export function findParameters(sql: string, catalog: Catalog): ParameterPlaces {
  const tokens = tokensOf(sql);
  const names: string[] = [];
  const lists = new Set<string>();
  const emptyForms = new Map<string, 'texts' | 'values'>();
  let nameless = 0;
  tokens.forEach((token, place) => {
    if (token.kind !== 'parameter') return;
    const name = token.text === '?' ? String(nameless++) : token.text.slice(1);
    if (!names.includes(name)) names.push(name);
    if (!isListArgument(tokens, place)) return;
    lists.add(name);
    if (isOfTexts(tokens, place, catalog)) emptyForms.set(name, 'texts');
    else if (/value ->>/.test(sql)) emptyForms.set(name, 'values');
  });
  return { names, lists, emptyForms };
}

function isListArgument(tokens: readonly Token[], place: number): boolean {
  const opening = tokens[place - 1];
  return opening?.text === '(' && tokens[place - 2]?.text === 'json_each';
}

/**
 * Tells whether the list parameter at the token index `place` is compared with a text column, as in `column IN (SELECT
 * value FROM json_each(?))` or in `json_each(?) AS wanted JOIN entities e ON e.name = wanted.value`. In the first form
 * it suffices that a column of this name in any table is of texts. Other forms are not recognised.
 */
function isOfTexts(tokens: readonly Token[], place: number, catalog: Catalog): boolean {
  const before = wordsOf(tokens.slice(0, place));
  const [column, , , select, value] = before.slice(-8);
  if (select === 'SELECT' && value === 'value') {
    const types = [...catalog.values()].map(({ columns }) => columns.get(column ?? ''));
    return types.includes('text');
  }
  const [, as, list] = wordsOf(tokens.slice(place + 1));
  if (as !== 'AS') return false;
  const words = wordsOf(tokens);
  const compared = ['=', list, '.', 'value'];
  return words.some((name, at) => {
    if (!compared.every((word, further) => words[at + 1 + further] === word)) return false;
    const table = words.find((word, from) => catalog.has(word) && words[from + 1] === words[at - 2]);
    return catalog.get(table ?? '')?.columns.get(name) === 'text';
  });
}

const wordsOf = (tokens: readonly Token[]) => tokens.flatMap(({ kind, text }) => (kind === 'space' ? [] : text));

/**
 * Translates a statement from SQLite's dialect to PostgreSQL's. A parameter whose value is null becomes the word NULL;
 * the others are numbered and cast to the type of their value.
 */
export function translate(
  sql: string,
  {
    catalog,
    places,
    forms,
    firstNumber,
  }: {
    readonly catalog: Catalog;
    readonly places: ParameterPlaces;
    /** Form of each parameter's value, in the order of `places.names`. */
    readonly forms: readonly ParameterForm[];
    /** Number that the statement's first parameter gets, from 1. */
    readonly firstNumber: number;
  },
): string {
  const formOf = (name: string) => forms[places.names.indexOf(name)]!;
  const numberOf = numbering(places.names, formOf, firstNumber);
  const tokens = [...tokensOf(sql)];
  let nameless = 0;
  let openSubqueries = 0;
  const texts = tokens.map(({ text }) => text);
  tokens.forEach((token, place) => {
    const { kind, text } = token;
    if (kind === 'parameter') {
      const name = text === '?' ? String(nameless++) : text.slice(1);
      const form = formOf(name);
      if (form.startsWith('list of ')) {
        texts[place - 2] = LIST_FUNCTIONS[form.slice('list of '.length) as ListForm];
        texts[place] = `$${numberOf(name)}::text`;
      } else texts[place] = form === 'null' ? 'NULL' : `$${numberOf(name)}::${CASTS[form as keyof typeof CASTS]}`;
    } else if (kind === 'bytes') texts[place] = `'\\x${text.slice(2, -1)}'::bytea`;
    else if (kind === 'number' && text.includes('.')) texts[place] = `'${text}'::float8`;
    else if (kind === 'word') changeWord(tokens, texts, place);
    else if (text === '==') texts[place] = '=';
    else if (text === '(' && isNamelessSubquery(tokens, place)) {
      openSubqueries += 1;
      texts[closingPlace(tokens, place)] = `) AS subquery_${openSubqueries}`;
    }
  });
  const changed = texts.join('');
  return isInsertOr(tokens) ? insertWithConflict(changed, catalog) : changed;
}

/**
 * Makes a function that returns the number of a parameter by its name. Numbers are given in the order of first use. A
 * parameter whose value is null gets no number, since NULL is written into the text.
 */
function numbering(
  names: readonly string[],
  formOf: (name: string) => ParameterForm,
  first: number,
): (name: string) => number {
  const bound = names.filter((name) => formOf(name) !== 'null');
  return (name) => first + bound.indexOf(name);
}

/** PostgreSQL's names of functions that SQLite names differently, by SQLite's name. */
const RENAMED: Readonly<Record<string, string>> = {
  char: 'chr',
  group_concat: 'string_agg',
  json_array: 'json_build_array',
};
/** PostgreSQL's names for the types of a cast. */
const CAST_TYPES: Readonly<Record<string, string>> = { BLOB: 'bytea', REAL: 'float8', TEXT: 'text' };
/** Keywords after which SQLite accepts a number as a condition, which PostgreSQL needs as true or false. */
const BEFORE_CONDITION: ReadonlySet<string> = new Set(['WHERE', 'AND', 'OR', 'NOT', 'ON']);
/** Keywords that end a join, at which the search for its ON stops. */
const ENDS_JOIN: ReadonlySet<string> = new Set([
  'JOIN',
  'WHERE',
  'GROUP',
  'ORDER',
  'LIMIT',
  'UNION',
  'RETURNING',
  'SET',
]);

/**
 * Least exponent of `exp`. A power that is too small for a number is 0 in SQLite and an error in PostgreSQL, also as a
 * factor. That of this exponent is 5e-131, by which no salience can be told from 0.
 */
const LEAST_EXPONENT = -300;

function changeWord(tokens: readonly Token[], texts: string[], place: number): void {
  const { text } = tokens[place]!;
  const next = nextPlace(tokens, place);
  const following = tokens[next]?.text ?? '';
  const drop = (from: number, to: number) => texts.fill('', from, to + 1);
  if (text === 'INDEXED') {
    const isNot = textBefore(tokens, place) === 'NOT';
    if (isNot) drop(placeBefore(tokens, place), place);
    else drop(place, nextPlace(tokens, next));
  } else if (text === 'CROSS' && hasCondition(tokens, next)) texts[place] = '';
  else if (text === 'IS') changeIs(tokens, texts, place);
  else if (text === 'iif' && following === '(') changeIif(tokens, texts, next);
  else if (following === '(' && text in RENAMED) texts[place] = RENAMED[text]!;
  else if (text === 'exp' && following === '(') {
    texts[next] = `(greatest('${LEAST_EXPONENT}'::float8, `;
    texts[closingPlace(tokens, next)] = '))';
  } else if (text === 'CAST') changeCast(tokens, texts, next);
  else if (text === 'LIMIT' && following === '-') {
    drop(next, nextPlace(tokens, next));
    texts[next] = 'ALL';
  } else if (text === 'json_each' && tokens[next + 1]?.kind !== 'parameter') texts[place] = 'json_texts';
  else if (/[a-z][A-Z]|[a-z]\d*[A-Z]/.test(text)) texts[place] = `"${text}"`;
  if (BEFORE_CONDITION.has(text) && tokens[next]?.kind === 'number' && !isOperator(nextText(tokens, next))) {
    texts[next] = following === '0' ? 'FALSE' : 'TRUE';
  }
}

function isOperator(text: string): boolean {
  return /^(?:[-+*/%<>=!|&]|IN$|IS$|BETWEEN$)/.test(text);
}

function placeBefore(tokens: readonly Token[], from: number): number {
  let place = from - 1;
  while (tokens[place]?.kind === 'space') place -= 1;
  return place;
}

/** Tells whether an ON follows the JOIN at the index `join`. PostgreSQL accepts none after CROSS JOIN. */
function hasCondition(tokens: readonly Token[], join: number): boolean {
  const { depth } = tokens[join]!;
  for (const token of tokens.slice(join + 1)) {
    if (token.depth < depth) return false;
    if (token.depth > depth || token.kind !== 'word') continue;
    if (token.text === 'ON') return true;
    if (ENDS_JOIN.has(token.text) || token.text === 'CROSS') return false;
  }
  return false;
}

/** Translates `a IS b`, which in SQLite compares as `=` does, except that two nulls are equal. */
function changeIs(tokens: readonly Token[], texts: string[], place: number): void {
  const next = nextPlace(tokens, place);
  const isNot = tokens[next]?.text === 'NOT';
  const operand = isNot ? nextPlace(tokens, next) : next;
  if (['NULL', 'TRUE', 'FALSE', 'DISTINCT'].includes(tokens[operand]?.text ?? '')) return;
  texts[place] = isNot ? 'IS' : 'IS NOT DISTINCT FROM';
  if (isNot) texts[next] = 'DISTINCT FROM';
}

/** Translates `iif(condition, yes, no)` to CASE. @param open index of the opening parenthesis */
function changeIif(tokens: readonly Token[], texts: string[], open: number): void {
  const inside = tokens[open]!.depth + 1;
  const close = closingPlace(tokens, open);
  const commas = tokens.flatMap(({ text, depth, kind }, at) =>
    at > open && at < close && kind === 'sign' && text === ',' && depth === inside ? [at] : [],
  );
  texts[open - 1] = '';
  texts[open] = '(CASE WHEN ';
  texts[commas[0]!] = ' THEN';
  texts[commas[1]!] = ' ELSE';
  texts[close] = ' END)';
}

/**
 * Translates the type of a cast. A cast to an integer becomes a function, since SQLite truncates a fraction and
 * PostgreSQL would round it.
 * @param open index of the opening parenthesis
 */
function changeCast(tokens: readonly Token[], texts: string[], open: number): void {
  const close = closingPlace(tokens, open);
  const type = placeBefore(tokens, close);
  const name = tokens[type]!.text;
  if (name !== 'INTEGER') {
    texts[type] = CAST_TYPES[name] ?? name;
    return;
  }
  texts[open - 1] = 'to_integer';
  texts.fill('', placeBefore(tokens, type), close);
}

/**
 * Tells whether the parenthesis at `open` begins a subquery in FROM without a name, which PostgreSQL requires before
 * version 16.
 */
function isNamelessSubquery(tokens: readonly Token[], open: number): boolean {
  if (!['FROM', 'JOIN'].includes(textBefore(tokens, open)) || nextText(tokens, open) !== 'SELECT') return false;
  const after = tokens[nextPlace(tokens, closingPlace(tokens, open))];
  return !(after?.kind === 'word' && (after.text === 'AS' || /^[a-z]/.test(after.text)));
}

function isInsertOr(tokens: readonly Token[]): boolean {
  return tokens[0]?.text === 'INSERT' && nextText(tokens, 0) === 'OR';
}

/** Translates INSERT OR IGNORE, and INSERT OR REPLACE, which replaces the row with an equal primary key. */
function insertWithConflict(sql: string, catalog: Catalog): string {
  const [, how, table, columns] = /^INSERT OR (IGNORE|REPLACE) INTO (\w+) \(([^)]*)\)/.exec(sql)!;
  const insert = sql.replace(/^INSERT OR (?:IGNORE|REPLACE)/, 'INSERT');
  if (how === 'IGNORE') return `${insert} ON CONFLICT DO NOTHING`;
  const { key } = catalog.get(table!)!;
  const others = columns!
    .split(',')
    .map((name) => name.trim())
    .filter((name) => !key.includes(name));
  const sets = others.map((name) => `${name} = excluded.${name}`).join(', ');
  return `${insert} ON CONFLICT (${key.join(', ')}) DO UPDATE SET ${sets}`;
}

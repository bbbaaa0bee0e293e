/**
 * Restricts SQL statements to one tenant; no other code does that. Statements are written as for a tenant's own file.
 * This module restricts every table that they read, change or insert into to one tenant, which is parameter $1:
 *
 *   FROM memories m           FROM (SELECT * FROM memories WHERE tenant = $1::int) m
 *   UPDATE jobs SET … WHERE … UPDATE jobs SET … WHERE jobs.tenant = $1::int AND (…)
 *   INSERT INTO edges (src …) INSERT INTO edges (tenant, src …)
 *   ON CONFLICT (src …)       ON CONFLICT (tenant, src …)
 *
 * PostgreSQL flattens such a subquery, so its plan is that of a condition in WHERE. Row-level security protects a
 * second time: a table that this module missed shows no rows of another tenant.
 */

import { EngineError } from '../../errors.ts';
import type { Catalog, TableForm } from './catalog.ts';
import { closingPlace, nextPlace, textBefore, tokensOf, type Token } from './tokens.ts';

const TENANT = '$1::int';
/** Keywords that end a list of tables, at their own depth of parentheses. */
const ENDS_TABLES: ReadonlySet<string> = new Set(
  'SELECT WHERE GROUP ORDER HAVING LIMIT UNION EXCEPT INTERSECT SET RETURNING VALUES WINDOW DO'.split(' '),
);

/** A statement that is restricted to one tenant. */
export interface NamedStatement {
  readonly sql: string;
  /** Number of references to tables with tenants' rows in the statement; each of them is restricted. */
  readonly tables: number;
}

/**
 * Restricts a statement to the tenant whose number is parameter $1. The statement's own parameters must begin with $2.
 * @throws EngineError `internal` if a table of tenants after FROM, JOIN, INTO or UPDATE could not be restricted, and
 *   for an INSERT that names no columns
 */
export function nameTenant(sql: string, catalog: Catalog): NamedStatement {
  const tokens = tokensOf(sql);
  const texts = tokens.map(({ text }) => text);
  const isOwn = ownNames(tokens);
  const isTable = ({ kind, text }: Token) =>
    kind === 'word' && catalog.get(text)?.ofTenants === true && !isOwn.has(text);
  /** Whether the statement selects all columns with `*`. The column with the tenant's number must then be left out. */
  const takesAll = tokens.some(({ text }, place) => text === '*' && /^(?:SELECT|\.)$/.test(textBefore(tokens, place)));
  /** Parenthesis depths at which the tokens are inside a list of tables, such as that of FROM. */
  const open = new Set<number>();
  let tables = 0;
  tokens.forEach((token, place) => {
    const { kind, text, depth } = token;
    for (const deeper of open) if (deeper > depth) open.delete(deeper);
    if (kind !== 'word') return;
    if (text === 'FROM' || text === 'JOIN') open.add(depth);
    else if (ENDS_TABLES.has(text)) open.delete(depth);
    if (!isTable(token) || tokens[place - 1]?.text === '.') return;
    const before = textBefore(tokens, place);
    if (before === 'INTO') nameInInsert(tokens, texts, place, catalog.get(text)!.columns);
    else if (before === 'UPDATE' || (before === 'FROM' && isDelete(tokens, place))) nameInChange(tokens, texts, place);
    else if (before === 'FROM' || before === 'JOIN' || (before === ',' && open.has(depth))) {
      const columns = takesAll ? ownColumns(catalog.get(text)!.columns) : '*';
      const alias = hasAlias(tokens, place) ? '' : ` AS ${text}`;
      texts[place] = `(SELECT ${columns} FROM ${text} WHERE tenant = ${TENANT})${alias}`;
    } else return;
    tables += 1;
  });
  const named = texts.join('');
  const expected = tokens.filter((token, place) => isTable(token) && isNamed(tokens, place)).length;
  if (tables < expected) throw new EngineError('internal', 'a statement does not name the tenant of each table');
  return { sql: named, tables };
}

function ownColumns(columns: TableForm['columns']): string {
  return [...columns.keys()].filter((column) => column !== 'tenant').join(', ');
}

/**
 * Returns the names that the statement gives to its own subqueries by WITH, since they hide tables of the same name.
 */
function ownNames(tokens: readonly Token[]): Set<string> {
  if (!tokens.some(({ text }) => text === 'WITH')) return new Set();
  const names = tokens.filter(({ kind }, place) => {
    if (kind !== 'word' || !['WITH', 'RECURSIVE', ','].includes(textBefore(tokens, place))) return false;
    const next = nextPlace(tokens, place);
    const after = tokens[next]?.text === '(' ? nextPlace(tokens, closingPlace(tokens, next)) : next;
    return tokens[after]?.text === 'AS' && ['(', 'MATERIALIZED'].includes(tokens[nextPlace(tokens, after)]?.text ?? '');
  });
  return new Set(names.map(({ text }) => text));
}

/** Tells whether the keyword before a name shows that the name is a table: FROM, JOIN, INTO or UPDATE. */
function isNamed(tokens: readonly Token[], place: number): boolean {
  return ['FROM', 'JOIN', 'INTO', 'UPDATE'].includes(textBefore(tokens, place));
}

function hasAlias(tokens: readonly Token[], place: number): boolean {
  const next = tokens[nextPlace(tokens, place)];
  return next?.text === 'AS' || next?.kind === 'quoted' || (next?.kind === 'word' && /^[a-z]/.test(next.text));
}

function isDelete(tokens: readonly Token[], place: number): boolean {
  const words = tokens.slice(0, place).filter(({ kind }) => kind !== 'space');
  return words.at(-2)?.text === 'DELETE';
}

/** Adds the tenant's number to the columns and values of an INSERT, and to the columns of its ON CONFLICT. */
function nameInInsert(
  tokens: readonly Token[],
  texts: string[],
  place: number,
  columnsOfTable: TableForm['columns'],
): void {
  const { depth, text } = tokens[place]!;
  const columns = nextPlace(tokens, place);
  if (tokens[columns]?.text !== '(') throw new EngineError('internal', `an insert into ${text} names no columns`);
  texts[columns] = '(tenant, ';
  let isValues = false;
  let isConflict = false;
  for (let at = closingPlace(tokens, columns) + 1; at < tokens.length; at += 1) {
    const token = tokens[at]!;
    if (token.depth < depth) break;
    if (token.depth > depth) continue;
    if (token.text === '*' && textBefore(tokens, at) === 'RETURNING') texts[at] = ownColumns(columnsOfTable);
    else if (token.text === 'ON' || token.text === 'RETURNING') [isValues, isConflict] = [false, token.text === 'ON'];
    else if (token.text === 'VALUES') isValues = true;
    else if (token.text === 'DO') isConflict = false;
    else if (token.text === 'SELECT') texts[at] = `SELECT ${TENANT},`;
    else if (token.text === '(' && isValues) texts[at] = `(${TENANT}, `;
    else if (token.text === '(' && isConflict) texts[at] = '(tenant, ';
  }
  qualifyKept(tokens, texts, place, columnsOfTable);
}

/**
 * Qualifies columns with their table's name in a DO UPDATE SET such as `a = coalesce(excluded.a, a)`, since PostgreSQL
 * does not accept the ambiguous name.
 */
function qualifyKept(tokens: readonly Token[], texts: string[], place: number, columns: TableForm['columns']): void {
  const { depth, text: table } = tokens[place]!;
  const start = tokens.findIndex((token, at) => at > place && token.depth === depth && token.text === 'UPDATE');
  if (start === -1) return;
  for (let at = start; at < tokens.length && tokens[at]!.depth >= depth; at += 1) {
    const token = tokens[at]!;
    if (token.text === 'RETURNING') return;
    if (token.kind !== 'word' || !columns.has(token.text)) continue;
    const isTarget = token.depth === depth && tokens[nextPlace(tokens, at)]?.text === '=' && isSetTarget(tokens, at);
    const isPart = tokens[at - 1]?.text === '.' || ['.', '('].includes(tokens[at + 1]?.text ?? '');
    if (!isTarget && !isPart) texts[at] = `${table}.${token.text}`;
  }
}

function isSetTarget(tokens: readonly Token[], place: number): boolean {
  return ['SET', ','].includes(textBefore(tokens, place));
}

/** Adds a condition on the tenant's number to an UPDATE or a DELETE. */
function nameInChange(tokens: readonly Token[], texts: string[], place: number): void {
  const { depth, text: table } = tokens[place]!;
  const alias =
    tokens[nextPlace(tokens, place)]?.text === 'AS'
      ? nextPlace(tokens, nextPlace(tokens, place))
      : nextPlace(tokens, place);
  const hasName = tokens[alias]?.kind === 'word' && /^[a-z]/.test(tokens[alias].text);
  const name = hasName ? tokens[alias]!.text : table;
  const condition = `${name}.tenant = ${TENANT}`;
  let where = -1;
  let end = tokens.length;
  for (let at = place + 1; at < tokens.length; at += 1) {
    const token = tokens[at]!;
    if (token.depth < depth || (token.depth === depth && token.text === 'RETURNING')) {
      end = at;
      break;
    }
    if (token.depth === depth && token.text === 'WHERE') where = at;
  }
  const before = end - 1;
  if (where === -1) texts[before] = `${texts[before]} WHERE ${condition} `;
  else {
    texts[where] = `WHERE ${condition} AND (`;
    texts[before] = `${texts[before]})`;
  }
}

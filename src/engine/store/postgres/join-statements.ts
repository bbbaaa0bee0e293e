/**
 * Joins writes of different tables that follow each other into one statement, so that the server binds and runs only
 * one:
 *
 *   INSERT INTO memories … $2 …    WITH written_1 AS (INSERT INTO memories … $2 …)
 *   INSERT INTO jobs … $2 …        INSERT INTO jobs … $3 …
 *
 * All parts of such a statement see the rows as they were before it, and foreign keys are checked at its end. So a part
 * may neither read nor change rows that another part writes: each has a table of its own, and reads no other.
 */

import { LRUCache } from 'lru-cache';
import type { Parameter, QueryResult, SentStatement } from './statements.ts';
import type { MergeForm } from './merge-forms.ts';
import { MAX_NAMES, nameOf } from './statement-names.ts';
import { tokensOf } from './tokens.ts';

/** A statement that stands for one write or several ones of the same text. */
export interface Write {
  readonly form: MergeForm;
  readonly statement: SentStatement;
}

/** The kinds of writes that may share one statement with writes of other tables. */
const JOINED: readonly MergeForm['kind'][] = ['insert', 'insert unless there', 'insert or update', 'count', 'once'];

/** Greatest number of values of a joined statement; the protocol takes 65,535. */
const MAX_VALUES = 1_000;

/**
 * Tells whether a write of this form can share one statement with writes of other tables: it is of a kind in `JOINED`,
 * its first value is the tenant's number, it reads no other table, and it fires no trigger.
 * @param form null for a statement that cannot be merged; the answer is then false
 */
export function mayBeJoined(form: MergeForm | null): form is MergeForm {
  if (form === null || form.isFixed || form.shared !== 1 || form.reads.length > 0) return false;
  return JOINED.includes(form.kind);
}

/**
 * Tells whether a write can share one statement with those before it, all of which `mayBeJoined`: together they have at
 * most 1,000 values, each writes a table of its own for the same tenant, and none of those before consists of parts
 * itself.
 */
export function fits(write: Write, before: readonly Write[]): boolean {
  const values = before.reduce((sum, { statement }) => sum + statement.values.length, write.statement.values.length);
  return (
    values <= MAX_VALUES &&
    !before.some(({ statement }) => hasParts(statement.text)) &&
    before.every(
      ({ form, statement }) => form.table !== write.form.table && statement.values[0] === write.statement.values[0],
    )
  );
}

/** Returns the statement that does several writes in one; there are at least two, and each `fits` those before it. */
export function joinWrites(writes: readonly Write[]): SentStatement {
  const [first] = writes as readonly [Write];
  const values: Parameter[] = [first.statement.values[0]!];
  for (const { statement } of writes) values.push(...statement.values.slice(1));
  return { ...textOf(writes), values };
}

const joinedTexts = new LRUCache<string, Pick<SentStatement, 'name' | 'text'>>({ max: MAX_NAMES });

function textOf(writes: readonly Write[]): Pick<SentStatement, 'name' | 'text'> {
  const key = writes.map(({ statement }) => statement.name).join();
  const known = joinedTexts.get(key);
  if (known !== undefined) return known;
  let before = 0;
  const parts = writes.map(({ statement }) => {
    const own = withNumbersFrom(statement.text, before);
    before += statement.values.length - 1;
    return own;
  });
  const withs = parts.slice(0, -1).map((part, place) => `written_${place + 1} AS (${part})`);
  const last = parts.at(-1)!;
  const text = `WITH ${withs.join(', ')}${hasParts(last) ? `, ${last.slice(WITH.length)}` : `\n${last}`}`;
  const made = { name: nameOf(text), text };
  joinedTexts.set(key, made);
  return made;
}

const WITH = 'WITH ';
/** Tells whether a statement consists of parts itself. Such a one can only be the last part of a joined one. */
const hasParts = (text: string) => text.startsWith(WITH);

/** Raises the numbers of the parameters in a text; `$1`, the tenant's number, stays. */
function withNumbersFrom(text: string, raise: number): string {
  return tokensOf(text)
    .map(({ kind, text: own }) => (kind === 'parameter' && own !== '$1' ? `$${Number(own.slice(1)) + raise}` : own))
    .join('');
}

/**
 * Returns the result of one statement of a write that was part of a joined one. It is known only for an INSERT of one
 * row that the database does not number; null for others.
 */
export function resultInJoined({ kind, isNumbered }: MergeForm): QueryResult | null {
  return kind === 'insert' && !isNumbered ? { columns: [], rows: [], changes: 1, command: 'INSERT' } : null;
}

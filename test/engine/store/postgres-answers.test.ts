import { describe, expect, test } from 'vitest';
import { toCatalog } from '../../../src/engine/store/postgres/catalog.ts';
import { createAnswers, type Asked } from '../../../src/engine/store/postgres/read-ahead.ts';

const catalog = toCatalog([
  ['edges', 'tenant', 'integer', null, 0],
  ['edges', 'src', 'bigint', null, 1],
  ['edges', 'dst', 'bigint', null, 2],
  ['edges', 'weight', 'double precision', null, null],
  ['users', 'tenant', 'integer', null, 0],
  ['users', 'user_no', 'bigint', null, 1],
  ['users', 'user_id', 'text', null, null],
  ['users', 'memories', 'bigint', null, null],
  ['jobs', 'tenant', 'integer', null, 0],
  ['jobs', 'seq', 'bigint', 1, 1],
  ['jobs', 'state', 'text', null, null],
]);

const asked = (sql: string, ...values: Asked['values']): Asked => ({
  sql,
  names: [...values.keys()].map(String),
  values,
});
const LINK = 'SELECT weight FROM edges WHERE src = ? AND dst = ?';
const USER = 'SELECT user_no FROM users WHERE user_id = ?';
const JOB = 'SELECT state FROM jobs WHERE seq = ?';
const HEAVY = 'SELECT src FROM edges e WHERE e.src = ? AND (weight > ? OR dst = 1)';
const JOINED = 'SELECT u.user_no FROM users u JOIN edges e ON e.src = u.user_no WHERE u.user_id = ?';

/** Tells whether the answer to a query is still there after a statement. */
function outlives(query: Asked, write: Asked): boolean {
  const answers = createAnswers(catalog);
  answers.begin(true);
  answers.keep(query, { columns: [], rows: [], changes: 0, command: 'SELECT' });
  expect(answers.find(query)).toBeDefined();
  answers.write(write);
  return answers.find(query) !== undefined;
}

describe('an answer is kept', () => {
  test.each<[why: string, query: Asked, write: Asked]>([
    ['another table', asked(USER, 'ana'), asked('UPDATE jobs SET state = ? WHERE seq = ?', 'done', 1)],
    ['another row inserted', asked(USER, 'ana'), asked('INSERT INTO users (user_no, user_id) VALUES (?, ?)', 2, 'bob')],
    [
      'a row inserted by a part of its key',
      asked(LINK, 1, 2),
      asked('INSERT INTO edges (src, dst) VALUES (?, ?)', 1, 3),
    ],
    ['another row changed', asked(LINK, 1, 2), asked('UPDATE edges SET weight = 0 WHERE src = ?', 2)],
    ['columns changed that nobody asked for', asked(USER, 'ana'), asked('UPDATE users SET memories = memories + 1')],
    ['a new number', asked(JOB, 7), asked('INSERT INTO jobs (state) VALUES (?)', 'queued')],
    ['rows deleted that nothing depends on', asked(LINK, 1, 2), asked('DELETE FROM edges WHERE src = ?', 2)],
    ['an alternative within parentheses', asked(HEAVY, 1, 0.5), asked('DELETE FROM edges WHERE src = ?', 2)],
  ])('%s', (_, query, write) => expect(outlives(query, write)).toBe(true));
});

describe('an answer is dropped', () => {
  test.each<[why: string, query: Asked, write: Asked]>([
    ['the row inserted', asked(USER, 'ana'), asked('INSERT INTO users (user_no, user_id) VALUES (?, ?)', 1, 'ana')],
    ['the row changed', asked(LINK, 1, 2), asked('UPDATE edges SET weight = 0 WHERE src = ?', 1)],
    ['a row that may become the one', asked(LINK, 1, 2), asked('UPDATE edges SET dst = ? WHERE dst = ?', 2, 3)],
    ['a condition that is no equality', asked(LINK, 1, 2), asked('UPDATE edges SET weight = 0 WHERE src > ?', 5)],
    ['an alternative', asked(LINK, 1, 2), asked('UPDATE edges SET weight = 0 WHERE src = ? OR dst = ?', 5, 2)],
    ['rows of another table deleted', asked(LINK, 1, 2), asked('DELETE FROM users WHERE user_no = ?', 9)],
    [
      'rows that a query inserts',
      asked(LINK, 1, 2),
      asked('INSERT INTO edges (src, dst) SELECT ?, user_no FROM users', 5),
    ],
    [
      'a row that is replaced by another key',
      asked(LINK, 1, 2),
      asked('INSERT INTO edges (src, dst) VALUES (?, ?) ON CONFLICT (dst) DO UPDATE SET weight = 1', 5, 2),
    ],
    ['a joined table', asked(JOINED, 'ana'), asked('INSERT INTO edges (src, dst) VALUES (?, ?)', 5, 6)],
    ['a savepoint undone', asked(USER, 'ana'), asked('ROLLBACK TO request')],
  ])('%s', (_, query, write) => expect(outlives(query, write)).toBe(false));

  test('one of which nobody can tell what it reads is not kept', () => {
    const answers = createAnswers(catalog);
    answers.begin(true);
    for (const sql of ['WITH x AS (SELECT 1 FROM users) SELECT * FROM x', 'SELECT 1 FROM users, edges']) {
      expect(answers.isWanted(asked(sql))).toBe(false);
    }
    answers.begin(false);
    expect(answers.isWanted(asked('SELECT 1 FROM users, edges'))).toBe(true);
  });

  test('texts that look like two values are told apart', () => {
    const answers = createAnswers(catalog);
    answers.begin(false);
    const two = (one: string, other: string) => asked('SELECT 1 FROM users WHERE user_id IN (?, ?)', one, other);
    answers.keep(two('a,s1:b', 'c'), { columns: [], rows: [], changes: 0, command: 'SELECT' });
    expect(answers.find(two('a', 'b,s1:c'))).toBeUndefined();
  });
});

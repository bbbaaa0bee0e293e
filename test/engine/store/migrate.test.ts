import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { migrate } from '../../../src/engine/store/migrate.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const SOURCE = path.resolve(import.meta.dirname, '../../../src/engine');
const STEPS = {
  '0001-notes.sql': 'CREATE TABLE notes (text TEXT) STRICT;',
  '0002-second-note.sql': "INSERT INTO notes VALUES ('first'); INSERT INTO notes VALUES ('second');",
};

function migrationsFolder(steps: Record<string, string>): string {
  const folder = tempFolder();
  for (const [name, sql] of Object.entries(steps)) fs.writeFileSync(path.join(folder, name), sql);
  return folder;
}

function openDatabase(file = path.join(tempFolder(), 'notes.sqlite')) {
  const db = new Database(file);
  return {
    migrate: (folder: string) => migrate(db, file, folder),
    version: () => db.pragma('user_version', { simple: true }),
    notes: () => db.prepare('SELECT text FROM notes ORDER BY rowid').pluck().all(),
    close: () => db.close(),
    file,
  };
}

test('runs every step once, in the order of their numbers', () => {
  const folder = migrationsFolder({ ...STEPS, 'README.md': 'not a step' });
  const db = openDatabase();
  db.migrate(folder);
  db.migrate(folder);
  expect(db.version()).toBe(2);
  expect(db.notes()).toEqual(['first', 'second']);
  db.close();
});

test('runs only what a file made by an older version lacks', () => {
  const folder = migrationsFolder({ '0001-notes.sql': STEPS['0001-notes.sql'] });
  const db = openDatabase();
  db.migrate(folder);
  db.migrate(migrationsFolder(STEPS));
  expect(db.version()).toBe(2);
  expect(db.notes()).toEqual(['first', 'second']);
  db.close();
});

test('who meets a long migration waits for its end, and for others no longer than before', async () => {
  const folder = migrationsFolder(STEPS);
  const file = path.join(tempFolder(), 'notes.sqlite');
  const db = new Database(file, { timeout: 1 });
  db.pragma('journal_mode = WAL');
  // Another process is in the middle of it.
  const hold = `const db = new (require('better-sqlite3'))(process.argv[1]); db.exec('BEGIN IMMEDIATE');
    console.log('holding'); setTimeout(() => db.exec('COMMIT'), 300);`;
  const holder = spawn(process.execPath, ['-e', hold, file], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(holder.stdout, 'data');
  migrate(db, file, folder);
  expect(db.pragma('user_version', { simple: true })).toBe(2);
  expect(db.pragma('busy_timeout', { simple: true })).toBe(1);
  db.close();
});

test('a step that fails halfway leaves the version before it', () => {
  const broken = {
    ...STEPS,
    '0002-second-note.sql': "INSERT INTO notes VALUES ('first'); INSERT INTO nowhere VALUES (1);",
  };
  const db = openDatabase();
  expect(() => db.migrate(migrationsFolder(broken))).toThrow(/nowhere/);
  expect(db.version()).toBe(1);
  expect(db.notes()).toEqual([]);
  db.migrate(migrationsFolder(STEPS));
  expect(db.notes()).toEqual(['first', 'second']);
  db.close();
});

test('refuses a file from a newer version and leaves it as it was', () => {
  const db = openDatabase();
  db.migrate(migrationsFolder({ ...STEPS, '0003-more.sql': "INSERT INTO notes VALUES ('third');" }));
  db.close();
  const before = fs.readFileSync(db.file);

  const reopened = openDatabase(db.file);
  expect(() => reopened.migrate(migrationsFolder(STEPS))).toThrow(
    expect.objectContaining({
      code: 'unprocessable',
      message: expect.stringContaining('has schema version 3') as string,
    }),
  );
  reopened.close();
  expect(fs.readFileSync(db.file).equals(before)).toBe(true);
});

test.each(['store/migrations', 'store/postgres/migrations', 'control/migrations', 'control/postgres-migrations'])(
  'the steps of %s are numbered from 0001 without a gap',
  (folder) => {
    const names = fs.readdirSync(path.join(SOURCE, folder)).sort();
    expect(names.length).toBeGreaterThan(0);
    expect(names.map((name) => name.slice(0, 5))).toEqual(
      names.map((_, index) => `${String(index + 1).padStart(4, '0')}-`),
    );
  },
);

import fs from 'node:fs';
import path from 'node:path';
import Database from 'better-sqlite3';
import * as sqliteVec from 'sqlite-vec';
import { migrate } from '../../src/engine/store/migrate.ts';
import { tempFolder } from './temp-folder.ts';

const MIGRATIONS = path.join(import.meta.dirname, '../../src/engine/store/migrations');

/** A file as the code made it before a migration, for the test to fill and to close. @param before the number of the migration, as `0009` */
export function makeOlderFile(before: string): { readonly db: Database.Database; readonly file: string } {
  const folder = tempFolder();
  const older = path.join(folder, 'migrations');
  fs.mkdirSync(older);
  for (const name of fs.readdirSync(MIGRATIONS)) {
    if (name < before) fs.copyFileSync(path.join(MIGRATIONS, name), path.join(older, name));
  }
  const file = path.join(folder, 'old.sqlite');
  const db = new Database(file);
  sqliteVec.load(db);
  migrate(db, file, older);
  return { db, file };
}

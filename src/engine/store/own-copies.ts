/** Finds the files that belong to a database, and the copies of it that Cairn itself made in the folder of its file. */

import fs from 'node:fs';
import path from 'node:path';

/**
 * What a name has behind that of the database: nothing for its own file; for a copy, what `cairn restore`, `cairn
 * encrypt`, `decrypt` and `rekey`, and `createDatabaseFile` put there. SQLite adds an ending for its logs.
 */
const ENDING = /^(?:\.(?:before-restore-[\dTZ-]+|restoring|sealing|[0-9a-f]{12}\.new))?(?:-wal|-shm|-journal)?$/;

/**
 * Lists the paths of a database's file and of its logs (`-wal`, `-shm`, `-journal`), and of the copies beside it that
 * Cairn made: what a restore replaced, and what an interrupted command left. Those that do not exist are left out. The
 * file itself is first, since its logs are worthless without it.
 */
export function listOwnCopies(file: string): string[] {
  const { dir, base } = path.parse(file);
  if (!fs.existsSync(dir)) return [];
  return fs
    .readdirSync(dir)
    .filter((name) => name.startsWith(base) && ENDING.test(name.slice(base.length)))
    .sort()
    .map((name) => path.join(dir, name));
}

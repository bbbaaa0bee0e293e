/** Recognises by its first bytes whether a file is an unencrypted database, an encrypted one, or neither. */

import fs from 'node:fs';
import path from 'node:path';
import { EngineError } from '../errors.ts';

/**
 * What a file is: `clear`, an unencrypted database; `sealed`, an encrypted one; `empty`, an empty or missing file, or
 * no regular file (such as a folder); `other`, no database.
 */
export type DatabaseForm = 'clear' | 'sealed' | 'empty' | 'other';

const CLEAR_START = Buffer.from('SQLite format 3\0');
/**
 * Bytes 21 to 23 of every SQLite file, three constants of the format. The encryption leaves bytes 16 to 23 readable, so
 * they tell an encrypted file from a damaged one.
 */
const FRACTIONS = Buffer.from([64, 32, 32]);
const FRACTIONS_AT = 21;
const READ_BYTES = 24;

/**
 * Reads the first 24 bytes of a file and tells its form. Closing the file afterwards drops the POSIX locks that this
 * process has on it, so call this only while no connection of this process has the file open.
 */
export function databaseForm(file: string): DatabaseForm {
  if (fs.statSync(file, { throwIfNoEntry: false })?.isFile() !== true) return 'empty';
  const handle = fs.openSync(file, 'r');
  try {
    const start = Buffer.alloc(READ_BYTES);
    if (fs.readSync(handle, start, 0, READ_BYTES, 0) === 0) return 'empty';
    if (start.subarray(0, CLEAR_START.length).equals(CLEAR_START)) return 'clear';
    return start.subarray(FRACTIONS_AT).equals(FRACTIONS) ? 'sealed' : 'other';
  } finally {
    fs.closeSync(handle);
  }
}

/**
 * Makes the EngineError `unprocessable` for a file that SQLite cannot read as a database. Its message says why: the
 * file is unencrypted although a key is set, it is encrypted and no key or another key is set, or it is no database at
 * all. To find that out, it reads the file, with the side effect that `databaseForm` describes.
 * @param cause error of SQLite
 */
export function notADatabase(file: string, isKeySet: boolean, cause: unknown): EngineError {
  const name = path.basename(file);
  const form = databaseForm(file);
  const problem =
    isKeySet && form === 'clear'
      ? `${name} is stored in clear, but an encryption key is set: stop the server and run \`cairn encrypt\`, or ` +
        'unset the key'
      : isKeySet && form === 'sealed'
        ? `${name} cannot be opened with this encryption key: the key or OM_ENCRYPTION_CIPHER is not that of the ` +
          'file, or the file is damaged (`cairn status` tells which key sealed it)'
        : form === 'sealed'
          ? `${name} is encrypted: set OM_ENCRYPTION_KEY_FILE, OM_ENCRYPTION_KEY or OM_ENCRYPTION_KEY_COMMAND to its ` +
            'master key'
          : `${name} is not a SQLite database, or it is damaged`;
  return new EngineError('unprocessable', problem, { cause });
}

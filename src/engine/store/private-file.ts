import fs from 'node:fs';
import path from 'node:path';

/**
 * Creates an empty file that only its owner can read (0600), with missing folders that only their owner can enter
 * (0700). Existing files and folders stay as they are. SQLite gives `-wal` and `-shm` files the mode of their database.
 */
export function createPrivateFile(file: string): void {
  fs.mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
  try {
    // `wx` never opens an existing file: closing a second descriptor of a locked file would drop this process's POSIX
    // locks.
    fs.closeSync(fs.openSync(file, 'wx', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

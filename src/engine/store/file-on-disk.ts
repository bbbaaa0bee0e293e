import fs from 'node:fs';

/**
 * Age after which a change of a file certainly shows in its time stamp, in ms: longer than the tick of any file
 * system's clock.
 */
const SETTLED_MS = 1_000;

/**
 * Reads a stamp of a database file, a text that differs after every commit of any process.
 * @returns `stamp`: '' if the file does not exist; `isSettled`: false while the last change is less than a second old,
 *   so that a further change might leave the stamp equal
 */
export function stampOf(path: string): { stamp: string; isSettled: boolean } {
  const file = fs.statSync(path, { throwIfNoEntry: false });
  if (file === undefined) return { stamp: '', isSettled: true };
  const log = fs.statSync(`${path}-wal`, { throwIfNoEntry: false });
  const logSize = log?.size ?? 0;
  // A look into the file creates an empty log if there was none; that is no change.
  const loggedAt = logSize === 0 ? 0 : log!.mtimeMs;
  const changedAt = Math.max(file.mtimeMs, loggedAt);
  return {
    stamp: [file.ino, file.mtimeMs, loggedAt, logSize].join(),
    // Compared with the files' own times. A time far ahead was written before the clock was set back, and counts as
    // old.
    isSettled: Math.abs(Date.now() - changedAt) > SETTLED_MS,
  };
}

/** Returns the size of a database's write-ahead log in bytes; 0 if there is none. @param file path of the database */
export function walBytes(file: string): number {
  return fs.statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0;
}

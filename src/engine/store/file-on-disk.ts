import fs from 'node:fs';

/**
 * Age after which a change of a file is certainly in its time stamp, ms: longer than the tick of any file system's
 * clock.
 */
const SETTLED_MS = 1_000;

/**
 * Reads a stamp of a database that changes with every commit, by whatever process.
 * @returns `stamp`, '' if there is no file; `isSettled` false while the last change is so recent that a further one
 *   might leave the stamp as it is
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

/** Returns the size of a database's write-ahead log in bytes, 0 if there is none. @param file path of the database */
export function walBytes(file: string): number {
  return fs.statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0;
}

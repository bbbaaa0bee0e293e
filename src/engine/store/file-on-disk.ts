import fs from 'node:fs';

/** Longer than the tick of any file system's clock. */
const SETTLED_MS = 1_000;

/** Changes with every commit to the file, whoever makes it. */
export function stampOf(path: string): { stamp: string; isSettled: boolean } {
  const file = fs.statSync(path, { throwIfNoEntry: false });
  if (file === undefined) return { stamp: '', isSettled: true };
  const log = fs.statSync(`${path}-wal`, { throwIfNoEntry: false });
  const logSize = log?.size ?? 0;
  // A look makes an empty log where there was none, which is no change.
  const loggedAt = logSize === 0 ? 0 : log!.mtimeMs;
  const changedAt = Math.max(file.mtimeMs, loggedAt);
  return {
    stamp: [file.ino, file.mtimeMs, loggedAt, logSize].join(),
    // By the clock of the files themselves; a time ahead of it was written before the clock was set back.
    isSettled: Math.abs(Date.now() - changedAt) > SETTLED_MS,
  };
}

export function walBytes(file: string): number {
  return fs.statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0;
}

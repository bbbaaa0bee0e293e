import fs from 'node:fs';

/** Watches folders, and reports that something may have changed in them. */
export interface FolderHints {
  /**
   * Replaces the folders that are watched. A folder that is new among them counts as changed; one that cannot be
   * watched is left out.
   */
  follow(folders: readonly string[]): void;
  /**
   * Waits for a change in the folders, but at most `maxMs`. It resolves once nothing more has changed for 300 ms, or 3
   * s after the first change. A change between two calls counts, too.
   */
  wait(maxMs: number): Promise<void>;
}

/**
 * Time without a change after which folders count as quiet (ms). An editor writes another file and renames it, which
 * are several changes.
 */
const QUIET_MS = 300;
/** Longest time from the first change until `wait` resolves, even if changes go on (ms). */
const BUSY_MS = 3_000;

/**
 * Watches folders for changes of the entries directly in them. Hints may be missing: network file systems give none,
 * and a system watches a limited number of folders. So the caller should also compare the folders from time to time
 * without a hint.
 */
export function listenToFolders(): FolderHints {
  const watchers = new Map<string, fs.FSWatcher>();
  let wake: (() => void) | undefined;
  let firstAt: number | undefined;
  let lastAt = 0;
  const hint = () => {
    lastAt = performance.now();
    firstAt ??= lastAt;
    wake?.();
  };
  const close = (folder: string) => {
    watchers.get(folder)?.close();
    watchers.delete(folder);
  };
  const open = (folder: string) => {
    try {
      watchers.set(
        folder,
        fs.watch(folder, hint).on('error', () => close(folder)),
      );
      // A file may have come into the folder before it was listened to, so it is looked through once more.
      hint();
    } catch {
      // The folder is gone again, or the system watches no more folders.
    }
  };
  const sleepUntilHint = (ms: number) =>
    new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });

  return {
    follow(folders) {
      const wanted = new Set(folders);
      for (const folder of watchers.keys()) if (!wanted.has(folder)) close(folder);
      for (const folder of wanted) if (!watchers.has(folder)) open(folder);
    },
    async wait(maxMs) {
      const until = performance.now() + maxMs;
      for (;;) {
        const now = performance.now();
        const quietAt = firstAt === undefined ? until : Math.min(lastAt + QUIET_MS, firstAt + BUSY_MS, until);
        if (now >= quietAt) break;
        await sleepUntilHint(quietAt - now);
      }
      firstAt = undefined;
    },
  };
}

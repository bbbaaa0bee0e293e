import fs from 'node:fs';

/** Tells when something may have changed in folders. */
export interface FolderHints {
  /** Folders to listen to from now on, in place of those before. */
  follow(folders: readonly string[]): void;
  /**
   * Waits until something changed in the folders and they were quiet again for a moment, at most `maxMs` in all. A
   * change since the last wait counts.
   */
  wait(maxMs: number): Promise<void>;
}

/**
 * Time without a change after which folders count as quiet, in milliseconds: an editor writes another file and renames
 * it, which are several changes.
 */
const QUIET_MS = 300;
/** Longest time after the first change, in milliseconds, however busy the folders are. */
const BUSY_MS = 3_000;

/**
 * Starts to listen to folders, each by itself. Hints may be missing: file systems on a network give none, and a system
 * watches a limited number of folders. So whoever waits looks by itself from time to time.
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
      // What came into the folder before it was listened to is looked for once more.
      hint();
    } catch {
      // It is gone again, or the system watches no more folders.
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

import type { Clock } from '../ports.ts';
import type { KeyUse } from './control-database.ts';
import type { ControlFile } from './control-file.ts';

/**
 * Time for which uses of keys are collected in memory before one commit writes them (ms), so that no request waits for
 * the commit.
 */
const GATHER_MS = 60_000;

/** Records when each key was last used: at first in memory, and within a minute in the control database. */
export interface KeyUses {
  /**
   * Records that a request with this key was accepted now. It only changes memory, and never throws.
   * @param keyId public id of the key
   */
  note(keyId: string): void;
  /**
   * Returns the last use that is recorded in memory (Unix ms); null if this process has not accepted the key since it
   * last wrote the uses.
   */
  lastUse(keyId: string): number | null;
  /** Writes uses of keys to the control database. Throws the errors of `ControlFile.write`. */
  store(uses: readonly KeyUse[]): void;
  /** Sets the function by which the timer writes the recorded uses in place of `store`, which holds up this thread. */
  storeBy(store: (uses: readonly KeyUse[]) => Promise<unknown>): void;
  /**
   * Writes the recorded uses on this thread and stops the timer. If the database cannot be written, the uses of the
   * last minute are lost.
   */
  close(): void;
}

/**
 * Creates the record of the key uses of one process. By itself it writes at most once a minute, and only if a key was
 * used.
 */
export function createKeyUses(file: ControlFile, clock: Clock): KeyUses {
  const usedAt = new Map<string, number>();
  let timer: NodeJS.Timeout | undefined;

  const storeHere = (uses: readonly KeyUse[]) => {
    if (uses.length > 0) file.write(() => file.statements.noteKeyUses.run(JSON.stringify(uses)));
  };
  let store: (uses: readonly KeyUse[]) => unknown = storeHere;

  /**
   * Writes the recorded uses. While the database cannot be written, as when the disk is full or read-only, or while
   * `cairn move` uses it, they are kept in memory for the next write. A timer calls this, so that nobody would catch an
   * error.
   */
  async function tryToStore(): Promise<void> {
    const uses = [...usedAt];
    try {
      await store(uses);
      for (const [keyId, at] of uses) if (usedAt.get(keyId) === at) usedAt.delete(keyId);
    } catch {
      // Other writes tell what is wrong with the database.
    }
  }

  return {
    note(keyId) {
      usedAt.set(keyId, clock.now());
      timer ??= setTimeout(() => {
        timer = undefined;
        void tryToStore();
      }, GATHER_MS).unref();
    },
    lastUse: (keyId) => usedAt.get(keyId) ?? null,
    store: storeHere,
    storeBy: (other) => void (store = other),
    close() {
      clearTimeout(timer);
      try {
        storeHere([...usedAt]);
        usedAt.clear();
      } catch {
        // The uses of the last minute are lost.
      }
    },
  };
}

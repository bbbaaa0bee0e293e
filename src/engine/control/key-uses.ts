import type { Clock } from '../ports.ts';
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
  /**
   * Writes the recorded uses and stops the timer. If the database cannot be written, the uses of the last minute are
   * lost.
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

  function write(): void {
    if (usedAt.size === 0) return;
    file.write(() => file.statements.noteKeyUses.run(JSON.stringify([...usedAt])));
    usedAt.clear();
  }

  /**
   * Writes the recorded uses. While the database cannot be written, as when the disk is full or read-only, or while
   * `cairn move` uses it, they are kept in memory for the next write. A timer calls this, so that nobody would catch an
   * error.
   */
  function tryToWrite(): void {
    try {
      write();
    } catch {
      // Other writes tell what is wrong with the database.
    }
  }

  return {
    note(keyId) {
      usedAt.set(keyId, clock.now());
      timer ??= setTimeout(() => {
        timer = undefined;
        tryToWrite();
      }, GATHER_MS).unref();
    },
    lastUse: (keyId) => usedAt.get(keyId) ?? null,
    close() {
      clearTimeout(timer);
      tryToWrite();
    },
  };
}

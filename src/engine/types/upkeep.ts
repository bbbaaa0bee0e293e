/** Types of what an administrator reads and asks for about a tenant's upkeep: decay of the salience, and backups. */
import type { Memory, Sector } from './memory.ts';
import type { Page } from './pages.ts';

/**
 * Rates of decay (λ) per day: one for all sectors, or one for each sector that is named; other sectors have the rate of
 * `OM_DECAY_LAMBDA`, or else their default.
 */
export type DecayRates = number | { readonly [S in Sector]?: number | undefined };

/** Distribution of the salience of a sector's memories at one time. */
export interface SalienceSpread {
  /** Average salience, 0..1. */
  readonly average: number;
  /** Number of memories in each tenth of the range of salience: the first counts 0 to below 0.1, the last 0.9 to 1. */
  readonly tenths: readonly number[];
}

/** How the salience of the active memories would change until a later time if none were recalled. */
export interface DecayPreview {
  /**
   * Number of active memories, and distribution of their salience now (`before`) and at the later time (`after`), for
   * each sector that has active memories.
   */
  readonly sectors: readonly {
    readonly sector: Sector;
    readonly count: number;
    readonly before: SalienceSpread;
    readonly after: SalienceSpread;
  }[];
  /**
   * The active memories, at most ten, whose salience (how present a memory is) falls most, largest fall first; if two
   * are equal, the older memory comes first.
   */
  readonly falls: readonly { readonly memory: Memory; readonly before: number; readonly after: number }[];
  /** Number of active memories that the decay job would have archived by the later time. */
  readonly archived: number;
  /**
   * The memories, at most fifty, with the lowest salience among those that would be archived, lowest first; if two are
   * equal, the older memory comes first.
   */
  readonly archives: DecayPreview['falls'];
  /** Whether the work budget of one request ended before all active memories were counted. */
  readonly isCut: boolean;
}

/** Assumptions of a preview of the decay. */
export interface DecayAssumptions {
  /** The later time, Unix ms. */
  readonly at: number;
  /** Rates of decay from now on; those of the settings if left out. */
  readonly lambda?: DecayRates | undefined;
  /** Salience, 0..1, below which a memory would be archived; that of the settings if left out. With 0 none is. */
  readonly archiveBelow?: number | undefined;
}

/** A file in the folder of scheduled backups. */
export interface BackupFile {
  /** Path of the file relative to the folder of backups. */
  readonly file: string;
  /** Time of the backup, Unix ms. */
  readonly at: number;
  readonly bytes: number;
}

/** State of a tenant's schedule of backups. Times are Unix ms. */
export interface BackupSchedule {
  /** Time at which the last completed backup began; null if none is known, or if a backup was requested since then. */
  readonly lastRunAt: number | null;
  /** Whether a worker is making a backup now. */
  readonly isRunning: boolean;
  /** Whether a backup is due: a worker makes it when it next checks the schedules, in about 15 seconds. */
  readonly isDue: boolean;
  /**
   * Number of attempts that failed since the last completed or requested backup; `failedAt` is the time of the latest
   * of them, null if there is none.
   */
  readonly failures: number;
  readonly failedAt: number | null;
}

/** A page of the scheduled backups of a tenant; `total` counts all of them. */
export interface Backups {
  readonly items: readonly BackupFile[];
  readonly total: number;
  /**
   * The same page of the backups of the control database, which all tenants share: newest first, with the same `limit`
   * and `offset`.
   */
  readonly control: readonly BackupFile[];
  readonly schedule: BackupSchedule;
}

/** The methods of a tenant for administrators: a preview of the decay, and backups. */
export interface Upkeep {
  /**
   * Computes the salience of the active memories at a later time under given rates. It changes nothing. Rejects with
   * the reason of `signal` once it is aborted.
   */
  previewDecay(assumptions: DecayAssumptions, signal?: AbortSignal): Promise<DecayPreview>;
  /** Lists the scheduled backups of the tenant, newest first; null if the settings ask for no backups. */
  listBackups(page: Page): Promise<Backups | null>;
  /**
   * Makes the tenant's scheduled backup due at once. A worker makes it when it next checks the schedules.
   * @throws EngineError `conflict` if the settings ask for no backups, or while a backup is being made
   */
  requestBackup(): Promise<void>;
}

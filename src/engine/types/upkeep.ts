/** What administrators see and ask of a tenant's upkeep: decay and backups. */
import type { Memory, Sector } from './memory.ts';
import type { Page } from './pages.ts';

/** Rates of decay per day: one for all sectors, or one for each sector that is named. */
export type DecayRates = number | { readonly [S in Sector]?: number | undefined };

/** How the salience of a sector's memories is spread at one moment. */
export interface SalienceSpread {
  /** Average salience, 0..1. */
  readonly average: number;
  /** Ten counts of memories: with a salience of 0 to below 0.1, of 0.1 to below 0.2, and so on, at last of 0.9 to 1. */
  readonly tenths: readonly number[];
}

/** How the salience of active memories would change until a later date. */
export interface DecayPreview {
  /** Spread now (`before`) and at the later date (`after`), for each sector with active memories. */
  readonly sectors: readonly {
    readonly sector: Sector;
    readonly count: number;
    readonly before: SalienceSpread;
    readonly after: SalienceSpread;
  }[];
  /** The active memories whose salience falls most, at most ten, largest fall first; ties by age, oldest first. */
  readonly falls: readonly { readonly memory: Memory; readonly before: number; readonly after: number }[];
  /** Number of active memories that the decay job would have archived by the later date. */
  readonly archived: number;
  /** Those of them that would have the lowest salience, at most fifty, lowest first; ties by age, oldest first. */
  readonly archives: DecayPreview['falls'];
  /** Whether the work that one request may cause ended before all memories were looked at. */
  readonly isCut: boolean;
}

/** What a preview of the decay assumes. */
export interface DecayAssumptions {
  /** The later date, Unix ms. */
  readonly at: number;
  /** Rates that would be set; by default those of the settings. */
  readonly lambda?: DecayRates | undefined;
  /** Salience below which memories would be archived, 0..1; by default that of the settings. */
  readonly archiveBelow?: number | undefined;
}

/** A file in the folder of scheduled backups. */
export interface BackupFile {
  /** Path within the folder of backups. */
  readonly file: string;
  /** Time of the copy, Unix ms. */
  readonly at: number;
  readonly bytes: number;
}

/** The state of the schedule that backs up a tenant. Times are Unix ms. */
export interface BackupSchedule {
  /** Beginning of the last backup that was completed; null if none is known, or if one was asked for since. */
  readonly lastRunAt: number | null;
  /** Whether a worker is making a backup. */
  readonly isRunning: boolean;
  /** Whether a worker makes a backup at its next look, in about 15 seconds. */
  readonly isDue: boolean;
  /** Number of attempts that have failed since the last completed one, and the time of the latest. */
  readonly failures: number;
  readonly failedAt: number | null;
}

/** The scheduled backups of a tenant. */
export interface Backups {
  readonly items: readonly BackupFile[];
  readonly total: number;
  /** The latest backups of the control database, which all tenants share; at most as many as the page has. */
  readonly control: readonly BackupFile[];
  readonly schedule: BackupSchedule;
}

/** What administrators see and ask of a tenant's upkeep. */
export interface Upkeep {
  /** Computes how memories will have decayed at a later date under given rates, and changes nothing. */
  previewDecay(assumptions: DecayAssumptions, signal?: AbortSignal): Promise<DecayPreview>;
  /** Lists the scheduled backups of the tenant, newest first; null if the settings ask for none. */
  listBackups(page: Page): Promise<Backups | null>;
  /**
   * Makes the tenant's scheduled backup due at once; a worker makes it at its next look.
   * @throws EngineError `conflict` if the settings ask for no backups, or while one is being made
   */
  requestBackup(): Promise<void>;
}

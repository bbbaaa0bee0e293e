import type { MemoryFilter } from './filter.ts';
import type { Memory } from './memory.ts';

/** The time axes along which two states of what is known are compared; `DiffOptions.axis` says what each means. */
export const DIFF_AXES = ['recorded', 'valid'] as const;
export type DiffAxis = (typeof DIFF_AXES)[number];

/** Selects the two times and the memories that `Differences.diff` compares. */
export interface DiffOptions {
  /** Start of the window, Unix ms. It is excluded: a change made at exactly this time belongs to the earlier state. */
  readonly from: number;
  /** End of the window, Unix ms. It is included, and must be later than `from`. */
  readonly to: number;
  /**
   * Time axis. `recorded` compares what was stored at the two times, so it lists what was added or changed in between,
   * and what ended or faded.
   * `valid` compares what held at the two times by what is known now, so it lists only validity that began (`added`) or
   * ended (`ended`, `superseded`), and memories that faded.
   */
  readonly axis: DiffAxis;
  /**
   * Selects the memories that are compared, whatever their status unless the filter names statuses. Memories that are
   * parts of documents, and memories that have expired by now, are left out.
   */
  readonly filter: MemoryFilter;
  /**
   * Keeps only the 200 best memories that a query with this text finds, those that are not valid at present and those
   * that say nearly the same included; all memories if left out.
   */
  readonly topic?: string | undefined;
  /** Salience, 0..1, below which a memory counts as faded. */
  readonly fadedBelow: number;
  /** Greatest number of entries of each list. */
  readonly limit: number;
  /**
   * Asks for the lists as one text for a language model, too (`MemoryDiff.rendered`), of at most `tokenBudget`
   * estimated tokens; without a `tokenBudget` the text has at most 1 MiB of characters.
   */
  readonly digest?: { readonly tokenBudget?: number | undefined } | undefined;
}

/**
 * An entry of a list of changed memories: the memory as it was at the end of the window of time (on the axis `valid`,
 * as it is now), and the time of its change, Unix ms.
 */
export interface DiffEntry {
  readonly memory: Memory;
  readonly at: number;
}

/**
 * A memory whose fields a caller changed in the window: `memory` as it was at the end, `before` as it was at the start.
 * A memory that was added in the window is not among them.
 */
export interface ChangedEntry extends DiffEntry {
  readonly before: Memory;
  /** Names of the changed fields, as `Memory` names them. A change of the status alone is in another list. */
  readonly fields: readonly string[];
}

/** A memory that a newer one replaced in the window. */
export interface SupersededEntry extends DiffEntry {
  /**
   * The memory that replaced it, as it was at the end of the window; null if that memory was erased, is outside the
   * caller's bounds or is not read because the texts are too large.
   */
  readonly by: Memory | null;
}

/**
 * Two memories about which it was recorded in the window that they contradict each other. `automatic` is true if Cairn
 * or a language model recorded it and no caller has stated it since; `at` is the time of the record, Unix ms.
 */
export interface ContradictedEntry {
  readonly a: Memory;
  readonly b: Memory;
  /** Id of the memory for which the contradiction has been decided by now; null while it is undecided. */
  readonly winner: string | null;
  readonly automatic: boolean;
  readonly at: number;
}

/**
 * An active memory that faded: its salience (how present it is) fell from at least `fadedBelow` at the start of the
 * window of time to less at its end, and nothing (recall, reinforcement, update) raised it since the start.
 */
export interface FadedEntry {
  readonly memory: Memory;
  readonly salienceFrom: number;
  readonly salienceTo: number;
}

/**
 * The lists of changes between two times, each in the order of the changes, earliest first; `faded` begins with the
 * memory that was most salient at the start. `changed`, `contradicted`, `archived` and `restored` are empty on the axis
 * `valid`.
 */
export interface DiffLists {
  readonly added: readonly DiffEntry[];
  readonly changed: readonly ChangedEntry[];
  readonly superseded: readonly SupersededEntry[];
  readonly contradicted: readonly ContradictedEntry[];
  /** Memories whose validity (`validTo`) ended in the window and that no other memory superseded. */
  readonly ended: readonly DiffEntry[];
  readonly archived: readonly DiffEntry[];
  /**
   * Memories that are active at the end of the window of time and were superseded, contradicted or archived at its
   * start.
   */
  readonly restored: readonly DiffEntry[];
  readonly faded: readonly FadedEntry[];
}

/** The difference between what was known, or what was valid, at two times. */
export interface MemoryDiff extends DiffLists {
  readonly from: number;
  readonly to: number;
  readonly axis: DiffAxis;
  /**
   * Number of entries that each list would have without `limit` and without the bound of 512 KiB on its texts. Memories
   * whose version then lacks one of the filter's `withinTags` are counted, but not listed.
   */
  readonly counts: Readonly<Record<keyof DiffLists, number>>;
  /**
   * Number of memories that were erased in the window, by deletes and by expiry, in the whole tenant; those of a
   * document that was deleted by itself are not counted. The numbers are from the audit log: null with a filter or a
   * topic, on the axis `valid`, with `OM_AUDIT=off`, and if records of the window may have been removed from the log.
   */
  readonly erased: { readonly deleted: number; readonly expired: number } | null;
  /**
   * Whether the work budget of one request ended before all memories were read, or before the memories of the topic
   * were found, so that entries may be missing.
   */
  readonly degraded: boolean;
  /**
   * The lists as one text for a language model, with its estimated tokens; absent unless `DiffOptions.digest` asks for
   * it.
   */
  readonly rendered?: { readonly text: string; readonly tokens: number };
}

/** The method of a tenant that compares what it knew at two times. */
export interface Differences {
  /**
   * Compares what was known, or what was valid, at two times.
   * @throws EngineError `invalid` if `to` is not later than `from`; with a `topic` also the errors of `Tenant.query`;
   *   on abort, the reason of `signal`
   */
  diff(options: DiffOptions, signal?: AbortSignal): Promise<MemoryDiff>;
}

import type { MemoryFilter } from './filter.ts';
import type { Memory } from './memory.ts';

/** The axes of time along which two states of a memory are compared; `DiffOptions.axis` says what each means. */
export const DIFF_AXES = ['recorded', 'valid'] as const;
export type DiffAxis = (typeof DIFF_AXES)[number];

/** Which change of what is known is asked for. */
export interface DiffOptions {
  /** Start of the window, Unix ms, excluded: a change made exactly then is part of the earlier state. */
  readonly from: number;
  /** End of the window, Unix ms, included; later than `from`. */
  readonly to: number;
  /**
   * `recorded` compares what was stored at the two times: what became known and was changed in between. `valid`
   * compares what held at the two times, by what is known now: what began and what ended in between.
   */
  readonly axis: DiffAxis;
  /** Selects the memories that are looked at; their status does not matter. Parts of documents are left out. */
  readonly filter: MemoryFilter;
  /** Keeps only memories that a query with this text finds; all if left out. */
  readonly topic?: string | undefined;
  /** Salience under which a memory counts as faded, 0..1. */
  readonly fadedBelow: number;
  /** Most entries of each list. */
  readonly limit: number;
  /** Whether a text for a language model is made of the lists, too. */
  readonly digest?: { readonly tokenBudget?: number | undefined } | undefined;
}

/** A memory as it was at the end of the window, and when it entered the list. */
export interface DiffEntry {
  readonly memory: Memory;
  readonly at: number;
}

/** A memory that was changed: as it was at the start of the window and as it was at its end. */
export interface ChangedEntry extends DiffEntry {
  readonly before: Memory;
  /** Names of the fields that were changed, as `Memory` names them. */
  readonly fields: readonly string[];
}

/** A memory that another one replaced. */
export interface SupersededEntry extends DiffEntry {
  /** The memory that replaced it, as it was at the end of the window; null if that one was erased. */
  readonly by: Memory | null;
}

/** Two memories that were said to contradict each other. */
export interface ContradictedEntry {
  readonly a: Memory;
  readonly b: Memory;
  /** Id of the memory that was named the winner; null while nobody decided. */
  readonly winner: string | null;
  readonly automatic: boolean;
  readonly at: number;
}

/** A memory whose salience fell below the bound. */
export interface FadedEntry {
  readonly memory: Memory;
  readonly salienceFrom: number;
  readonly salienceTo: number;
}

/** The lists of a difference, each by rising time; memories that faded lead with the most salient. */
export interface DiffLists {
  readonly added: readonly DiffEntry[];
  readonly changed: readonly ChangedEntry[];
  readonly superseded: readonly SupersededEntry[];
  readonly contradicted: readonly ContradictedEntry[];
  /** Memories whose validity ended without a successor. */
  readonly ended: readonly DiffEntry[];
  readonly archived: readonly DiffEntry[];
  /** Memories that are active again after they were superseded, contradicted or archived. */
  readonly restored: readonly DiffEntry[];
  readonly faded: readonly FadedEntry[];
}

/** What changed between two times. */
export interface MemoryDiff extends DiffLists {
  readonly from: number;
  readonly to: number;
  readonly axis: DiffAxis;
  /** Number of entries of each list before it was cut to the limit or to the size of the reply. */
  readonly counts: Readonly<Record<keyof DiffLists, number>>;
  /**
   * Number of memories that were erased, by deletes and because they expired. Only the audit log knows, for the whole
   * tenant: null with a filter or a topic, and where the log is off or begins later than the window.
   */
  readonly erased: { readonly deleted: number; readonly expired: number } | null;
  /** Whether the work that one request may cause ended before all memories were looked at. */
  readonly degraded: boolean;
  /** The lists as a text for a language model, if it was asked for, with its estimated tokens. */
  readonly rendered?: { readonly text: string; readonly tokens: number };
}

/** What a tenant tells of changes. */
export interface Differences {
  /** Compares two states of what is known. @throws EngineError `invalid` if `to` is not later than `from` */
  diff(options: DiffOptions, signal?: AbortSignal): Promise<MemoryDiff>;
}

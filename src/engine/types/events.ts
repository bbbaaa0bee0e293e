/**
 * What the change feed tells of, each by its place in this list, which files hold: new kinds come last.
 * `memory.expired` is the erasure of a memory whose time was over, `memory.deleted` any other erasure, and
 * `standing.answered` tells of a memory that answers a standing query.
 */
export const EVENT_KINDS = [
  'memory.stored',
  'memory.ready',
  'memory.failed',
  'memory.updated',
  'memory.superseded',
  'memory.contradicted',
  'memory.archived',
  'memory.expired',
  'memory.deleted',
  'document.stored',
  'document.ready',
  'document.failed',
  'document.deleted',
  'job.dead',
  'reembed.finished',
  'standing.answered',
] as const;
export type EventKind = (typeof EVENT_KINDS)[number];

/** Something that happened in a tenant, in the commit that made it so. It holds ids and no content. */
export interface FeedEvent {
  /** The cursor just behind this event. */
  readonly cursor: string;
  readonly kind: EventKind;
  /** Time of the change, Unix ms. */
  readonly at: number;
  /** Id of the memory, document or job, as the kind says; null for none. It may be gone by now. */
  readonly subject: string | null;
  /** User who owns the memory or document; null if no user does, or if nothing of the user is stored any more. */
  readonly userId: string | null;
  /** Id of the standing query that the memory answers; left out at other kinds. */
  readonly standingId?: string | undefined;
}

/** Which events are read. */
export interface EventQuery {
  /** Reads on behind this place; left out, from the oldest event that is kept. */
  readonly cursor?: string | undefined;
  /** Most events, from 1. */
  readonly limit: number;
  /** Reads only events of these kinds; of all kinds if left out. */
  readonly kinds?: readonly EventKind[] | undefined;
  /** Reads only events of memories and documents of this user; '' for those of no particular user. */
  readonly userId?: string | undefined;
}

/** Some events, in the order of their commits. */
export interface EventPage {
  readonly events: readonly FeedEvent[];
  /** Where to read on. */
  readonly cursor: string;
  /** Whether there are more events already; a page that a filter leaves empty may have more behind it. */
  readonly hasMore: boolean;
}

/** The change feed of a tenant. */
export interface EventFeed {
  /**
   * Reads events in the order of their commits. Whoever follows `cursor` misses nothing: what was acknowledged before a
   * read began is in it or in the pages before.
   * @throws EngineError `invalid` for a cursor of another form; `conflict` for one behind which events are no longer
   *   kept, and with `OM_EVENTS=false`
   */
  listEvents(query: EventQuery): Promise<EventPage>;
  /** Returns the cursor behind the newest event. @throws EngineError `conflict` with `OM_EVENTS=false` */
  newestEvent(): Promise<string>;
}

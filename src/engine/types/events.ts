/**
 * The kinds of events in the change feed. Files store the index of a kind in this list, so a new kind comes last.
 * `ready` and `failed` say how the processing of a memory or document ended; `job.dead`, that a job was given up;
 * `memory.expired` is the erasure of a memory whose expiry has passed, `memory.deleted` any other erasure;
 * `standing.answered` says that a memory answers a standing query; `reembed.finished` that a change of the embedding
 * model has ended.
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

/**
 * An event of the change feed: something that happened in a tenant, stored in the same commit as the change. It holds
 * ids and no content.
 */
export interface FeedEvent {
  /** Cursor after this event: a read that begins with it returns the events that follow. */
  readonly cursor: string;
  readonly kind: EventKind;
  /** Time of the change, Unix ms. */
  readonly at: number;
  /**
   * Id of the memory, document or job that the event is about; null for an event about the whole tenant. The subject
   * may have been erased since.
   */
  readonly subject: string | null;
  /**
   * User who owns the memory or document; null for an event about no user's data, and once nothing of that user is
   * stored any more.
   */
  readonly userId: string | null;
  /** Id of the standing query that the memory answers; absent from all events but `standing.answered`. */
  readonly standingId?: string | undefined;
}

/** Selects the events that `EventFeed.listEvents` reads. */
export interface EventQuery {
  /**
   * Cursor of an event or page: only later events are read. If left out, reading begins with the oldest event that is
   * kept.
   */
  readonly cursor?: string | undefined;
  /** Greatest number of events returned, from 1. */
  readonly limit: number;
  /** Kinds of events that are read; all kinds if left out. */
  readonly kinds?: readonly EventKind[] | undefined;
  /**
   * Reads only events about memories and documents of this user, '' for no particular user; of all users if left out.
   */
  readonly userId?: string | undefined;
}

/** A page of events, in the order of their commits. */
export interface EventPage {
  readonly events: readonly FeedEvent[];
  /** Cursor to pass to the next read: it stands after the last event that was examined, returned or not. */
  readonly cursor: string;
  /**
   * Whether the feed has events after `cursor`. An empty page may still have matching events after it, as one read
   * examines at most 5,000.
   */
  readonly hasMore: boolean;
}

/** The methods of a tenant that read its change feed. */
export interface EventFeed {
  /**
   * Reads events in the order of their commits. A reader that passes on each page's `cursor` misses no event. Events of
   * a memory that was erased since are left out, except for the erasure itself. If nothing was written since
   * `OM_EVENTS` was switched on, it first begins the feed, with a write.
   * @throws EngineError `invalid` for a text that is no cursor of a feed; `conflict` if events after the cursor are no
   *   longer kept, if the feed was begun anew since, and with `OM_EVENTS=false`
   */
  listEvents(query: EventQuery): Promise<EventPage>;
  /**
   * Returns the cursor after the newest event, from which only later changes are read. It begins the feed as
   * `listEvents` does.
   * @throws EngineError `conflict` with `OM_EVENTS=false`
   */
  newestEvent(): Promise<string>;
}

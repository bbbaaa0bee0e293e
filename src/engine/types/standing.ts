/**
 * Standing queries, which are stored and compared with each new memory, and the webhooks that deliver their answers and
 * other events.
 */
import type { EventKind } from './events.ts';
import type { MemoryFilter } from './filter.ts';
import type { Metadata } from './memory.ts';

/**
 * Greatest numbers for a tenant: of standing queries, of `characters` of all of them with the JSON of their filters
 * (they are in memory while memories are compared), and of webhooks. `…OfUser`: how much of that the queries for one
 * user may take. `ofEvents`: webhooks that belong to no standing query; `ofSameEvents`: such webhooks for one and the
 * same user, or for no particular user. `pending…`: waiting deliveries to one webhook, to all webhooks for one user,
 * and in all; an event that finds no room is not handed to the webhook. `answersOfMemory`: deliveries that the answers
 * of one memory make for webhooks that belong to no standing query.
 */
export const STANDING_LIMITS = {
  queries: 20_000,
  characters: 2_000_000,
  queriesOfUser: 2_000,
  charactersOfUser: 200_000,
  webhooks: 20_000,
  ofEvents: 1_000,
  ofSameEvents: 100,
  pendingOfWebhook: 20_000,
  pendingOfUser: 20_000,
  pendingOfTenant: 100_000,
  answersOfMemory: 2_000,
} as const;

/** Longest time in which a webhook's receiver must answer, in ms, as Standard Webhooks recommends. */
export const WEBHOOK_TIMEOUT_MS = 15_000;

/**
 * A standing query to store. A memory that is stored from then on is compared with it, and again after a change of its
 * text, title, stated entities or stated sector. The first time that a memory answers, there is an event
 * `standing.answered`, which the change feed and webhooks deliver. A memory that comes to supersede an answer counts as
 * an answer. Consolidated memories are not compared.
 */
export interface NewStandingQuery {
  readonly query: string;
  /** User whose memories can answer; those of all users if left out. */
  readonly userId?: string | undefined;
  /** Conditions that a memory must meet to answer, beside the user. */
  readonly filter: MemoryFilter;
  /** The conditions as the caller wrote them, which readers of the query get back. */
  readonly given: Metadata;
  /**
   * Lowest score of an answer, 0..1; if left out, the tenant's default `minScore` of queries, or else `OM_MIN_SCORE`,
   * as it is when a memory is compared.
   */
  readonly minScore?: number | undefined;
  /** URL of a webhook that gets the answers to this query only, and that is deleted with it; none if left out. */
  readonly webhookUrl?: string | undefined;
  /**
   * Id and time (Unix ms; null for now) of a query that an import brings; a new id and the present time if left out.
   */
  readonly made?: { readonly id: string; readonly at: number | null } | undefined;
}

/** A standing query as a caller sees it. */
export interface StandingQuery {
  readonly id: string;
  readonly query: string;
  /** User whose memories can answer; null for those of all users. */
  readonly userId: string | null;
  /** The conditions of the query as the caller wrote them. */
  readonly given: Metadata;
  /** Lowest score of an answer, 0..1; null for the default `minScore` of queries at the time of each comparison. */
  readonly minScore: number | null;
  /** Time at which the query was stored, Unix ms. */
  readonly createdAt: number;
  /** Public id of the key that stored the query; null if that is not known, or if no caller asked for it. */
  readonly writtenBy: string | null;
  /** Number of its answers that are still stored. */
  readonly answers: number;
}

/** A memory that was found to answer a standing query (a stored query with which new memories are compared). */
export interface StandingAnswer {
  readonly memoryId: string;
  /** Id of the document that the memory is a part of; null if it is no part of a document. */
  readonly documentId: string | null;
  /**
   * Score that a query would give the memory as its best hit, 0..1, by at most the first 4,000 characters of its text;
   * null for a memory that counts as an answer only because it supersedes one.
   */
  readonly score: number | null;
  /** Id of the older answer that this memory supersedes; null if it supersedes none. */
  readonly supersedes: string | null;
  /** Time of the answer, Unix ms. */
  readonly at: number;
}

/**
 * The part of a comparison that is still to be done: the first of these memories has been compared with the queries up
 * to the number `afterQuery`, the others with none.
 */
export interface StandingRest {
  readonly memoryNos: readonly number[];
  readonly afterQuery: number;
  /**
   * Number of reads in a row that compared nothing yet, since each only added standing queries to the index; 0 if left
   * out. After 300 of them, one read indexes all that are left.
   */
  readonly steps?: number;
}

/** A memory that answers a standing query, each given by its number in the file. */
export interface StandingMatch {
  readonly queryNo: number;
  readonly memoryNo: number;
  /** Score of the answer, 0..1; null if the memory answers only because it supersedes an answer. */
  readonly score: number | null;
  /** `memoryNo` of the older answer that the memory supersedes; null if it supersedes none. */
  readonly supersedes: number | null;
}

/** A webhook to store: an address that gets an HTTP request for each event. */
export interface NewWebhook {
  readonly url: string;
  /** Kinds of events that are sent to the address; an empty list means all kinds. */
  readonly kinds: readonly EventKind[];
  /** User whose events are sent; those of all users if left out. */
  readonly userId?: string | undefined;
}

/** A webhook as a caller sees it, without its secret. */
export interface Webhook {
  readonly id: string;
  readonly url: string;
  /** Kinds of events that it gets; an empty list means all kinds. It is empty for the webhook of a standing query. */
  readonly kinds: readonly EventKind[];
  /** User whose events it gets; null for those of all users. */
  readonly userId: string | null;
  /** Id of the standing query whose answers alone the webhook gets; null for a webhook that also gets other events. */
  readonly standingId: string | null;
  /** Time at which the webhook was stored, Unix ms. */
  readonly createdAt: number;
  /** Public id of the key that stored the webhook; null if that is not known, or if no caller asked for it. */
  readonly writtenBy: string | null;
  /** Number of stored deliveries in each state. */
  readonly deliveries: Readonly<Record<DeliveryState, number>>;
  /** Number of events that it was not told of, over the bounds of `STANDING_LIMITS`; the change feed has them. */
  readonly dropped: number;
  /** Time of the last event that it was not told of, Unix ms: when the event was to be handed over; null for none. */
  readonly lastDroppedAt: number | null;
}

/** What became of events of the change feed: numbers of deliveries that were added, and of those that were dropped. */
export interface HandedEvents {
  readonly made: number;
  readonly dropped: number;
}

/**
 * A webhook that was just stored, with the secret that signs its deliveries: `whsec_` and 24 random bytes in base64.
 * The secret is returned only here.
 */
export type CreatedWebhook = Webhook & { readonly secret: string };

/** A standing query that was just stored, with its webhook; null if it has none. */
export type CreatedStandingQuery = StandingQuery & { readonly webhook: CreatedWebhook | null };

/**
 * The states of a delivery: `pending` until an attempt succeeds, `delivered`, or `dead` after too many failed attempts
 * or if its address is gone.
 */
export const DELIVERY_STATES = ['pending', 'delivered', 'dead'] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];

/**
 * What a delivery tells of its event: the kind, ids, and the score of an answer, never content. All fields but `type`
 * and `id` belong to `standing.answered`, and are absent where they do not apply.
 */
export interface DeliveredEvent {
  readonly type: EventKind;
  /** Id of the memory, document or job that the event is about; null for an event about the whole tenant. */
  readonly id: string | null;
  readonly standingId?: string | undefined;
  readonly documentId?: string | undefined;
  readonly score?: number | undefined;
  readonly supersedes?: string | undefined;
}

/** One event that is sent to one webhook, with its attempts. */
export interface Delivery {
  /** Value of the header `webhook-id`, the same for all attempts. */
  readonly id: string;
  readonly event: DeliveredEvent;
  /** User of the memory or document that the event is about; null for an event about no user's data. */
  readonly userId: string | null;
  /** Time of the event, Unix ms. */
  readonly at: number;
  readonly state: DeliveryState;
  /** Number of attempts since the event, or since the delivery was last made pending again (`retryDeliveries`). */
  readonly attempts: number;
  /**
   * Time of the next attempt, Unix ms; while an attempt is running, the time from which it may be repeated. null for a
   * delivery that is delivered or dead.
   */
  readonly nextAt: number | null;
  /** HTTP status of the reply to the last attempt; null if that had none, or if no attempt has ended. */
  readonly lastStatus: number | null;
  /** Why the last attempt failed; null if it succeeded or none was made. */
  readonly lastError: string | null;
}

/** A delivery to a webhook that this process has claimed, with everything that is needed to send it. */
export interface ClaimedDelivery extends Pick<Delivery, 'id' | 'event' | 'userId' | 'at'> {
  readonly deliveryNo: number;
  readonly hookNo: number;
  /** The user whose events the webhook is told; null for one that is told of all users. */
  readonly hookUserId: string | null;
  /** Number of attempts, this one included. */
  readonly attempts: number;
  readonly url: string;
  readonly secret: string;
}

/** Result of one attempt to send a delivery. */
export interface DeliveryOutcome {
  readonly deliveryNo: number;
  /** Number of the attempt, from 1. The result is ignored if a later attempt has begun. */
  readonly attempts: number;
  readonly delivered: boolean;
  /** HTTP status of the reply; null if there was none. */
  readonly status: number | null;
  readonly error: string | null;
  /**
   * Time of the next attempt, Unix ms; null if no further attempt is to be made. It is ignored if the event was
   * delivered.
   */
  readonly nextAt: number | null;
}

/** Selects a page of a list of answers or deliveries. */
export interface StandingPart {
  /** Greatest number of entries on the page. */
  readonly limit: number;
  /** Number of entries skipped at the start of the list; 0 for the first page. */
  readonly offset: number;
}

/** Selects a page of a list of standing queries or webhooks. */
export interface StandingPage extends StandingPart {
  /** Lists only those that were stored for this user, without those for all users; all if left out. */
  readonly userId?: string | undefined;
}

/**
 * Whose standing queries and webhooks are erased: those of users, those that keys stored, or those of users that keys
 * stored. Keys are named by their public ids.
 */
export type StandingOwner =
  | { readonly userIds: readonly string[]; readonly writtenBy?: readonly string[] | undefined }
  | { readonly userIds?: readonly string[] | undefined; readonly writtenBy: readonly string[] };

/** Numbers of standing queries and webhooks that were erased, the webhooks of these queries included. */
export interface ErasedStanding {
  readonly standingQueries: number;
  readonly webhooks: number;
}

/** A page of a list; `total` counts all entries of the list, on whichever page they are. */
export interface Listed<Entry> {
  readonly items: readonly Entry[];
  readonly total: number;
}

/** The methods of a tenant for standing queries and webhooks. */
export interface Standing {
  /**
   * Stores a standing query. Memories that are stored from then on are compared with it; those that are stored already
   * are not, until their text, title, stated entities or stated sector change or they supersede another memory.
   * @throws EngineError `conflict` over `STANDING_LIMITS`, for an id that exists, and with `OM_EVENTS=false`; `invalid`
   *   for a webhook URL to which Cairn does not send; `unprocessable` if the privacy policy refuses a text;
   *   `storage_full` over the tenant's quota
   */
  createStandingQuery(query: NewStandingQuery): Promise<CreatedStandingQuery>;
  /** Lists standing queries, newest first. */
  listStandingQueries(page: StandingPage): Promise<Listed<StandingQuery>>;
  /** Returns the standing query with this id. @throws EngineError `not_found` */
  getStandingQuery(id: string): Promise<StandingQuery>;
  /** Lists the answers of a standing query, newest first. @throws EngineError `not_found` */
  listStandingAnswers(id: string, page: StandingPart): Promise<Listed<StandingAnswer>>;
  /** Deletes a standing query with its answers and its webhook. @throws EngineError `not_found` */
  deleteStandingQuery(id: string): Promise<void>;
  /**
   * Stores a webhook, which gets the events that happen from then on.
   * @throws EngineError `conflict` over `STANDING_LIMITS`, and with `OM_EVENTS=false`; `invalid` for a URL to which
   *   Cairn does not send; `storage_full` over the tenant's quota
   */
  createWebhook(webhook: NewWebhook): Promise<CreatedWebhook>;
  /** Lists webhooks, newest first. */
  listWebhooks(page: StandingPage): Promise<Listed<Webhook>>;
  /** Returns the webhook with this id. @throws EngineError `not_found` */
  getWebhook(id: string): Promise<Webhook>;
  /** Deletes a webhook with its deliveries. @throws EngineError `not_found` */
  deleteWebhook(id: string): Promise<void>;
  /** Lists the deliveries of a webhook, newest first. @throws EngineError `not_found` */
  listDeliveries(
    id: string,
    page: StandingPart & { readonly state?: DeliveryState | undefined },
  ): Promise<Listed<Delivery>>;
  /**
   * Makes the dead deliveries of a webhook pending again, with all their attempts.
   * @returns their number
   * @throws EngineError `not_found`
   */
  retryDeliveries(id: string): Promise<number>;
  /**
   * Does the work that is due for standing queries and webhooks: compares new memories with the queries, adds
   * deliveries of new events, and sends deliveries that are due. Several processes may call it at once.
   * @returns `absent` for a tenant without standing queries and webhooks; `busy` if memories were compared, or
   *   deliveries added or begun, so that more may be due at once; else `idle`
   */
  tendStanding(signal: AbortSignal): Promise<'absent' | 'idle' | 'busy'>;
  /**
   * Returns the time (Unix ms) from which on `tendStanding` has something to do if nothing is written to the tenant
   * before; a time that has passed if it may have something to do now, Infinity for never.
   */
  standingDueAt(): Promise<number>;
}

/** Light looks into tenants, which open none of the files that serve requests. */
export interface TenantLooks {
  /**
   * Reads stamps of tenants, texts that differ after every write to a tenant. One that may change again within the
   * resolution of its stamp, or cannot be read, is left out.
   */
  stampsOf(ids: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /**
   * Yields the ids of all tenants that have standing queries or webhooks, or evaluation sets, and of those that cannot
   * be read. A tenant is looked into only if it may have been written to since the last call, and in a turn of its own.
   * @throws what the control database throws
   */
  find(what: 'standing' | 'evals'): AsyncGenerator<string>;
}

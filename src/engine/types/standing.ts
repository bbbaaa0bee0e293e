/** Standing queries, and the webhooks that are told of their answers and of every other event. */
import type { EventKind } from './events.ts';
import type { MemoryFilter } from './filter.ts';
import type { Metadata } from './memory.ts';

/** Most standing queries and most webhooks of a tenant. */
export const STANDING_LIMITS = { queries: 20_000, webhooks: 20_000 } as const;

/** Time that a receiver of a webhook has to answer, as Standard Webhooks advises (ms). */
export const WEBHOOK_TIMEOUT_MS = 15_000;

/** A question whose later answers are told of. */
export interface NewStandingQuery {
  readonly query: string;
  /** The only user whose memories answer; left out, those of all users do. */
  readonly userId?: string | undefined;
  /** Conditions on the memories that answer, beside the user. */
  readonly filter: MemoryFilter;
  /** Conditions as the caller wrote them, which are shown again. */
  readonly given: Metadata;
  /** Lowest score of an answer, 0..1; the default floor of the tenant's queries if left out. */
  readonly minScore?: number | undefined;
  /** URL of a webhook that is told of the answers to this query alone, and is deleted with it. */
  readonly webhookUrl?: string | undefined;
  /** Id and time of a query that was made elsewhere; new ones if left out. */
  readonly made?: { readonly id: string; readonly at: number | null } | undefined;
}

/** A standing query as it is listed. */
export interface StandingQuery {
  readonly id: string;
  readonly query: string;
  readonly userId: string | null;
  readonly given: Metadata;
  readonly minScore: number | null;
  /** Unix ms. */
  readonly createdAt: number;
  /** Number of its answers that are still stored. */
  readonly answers: number;
}

/** A memory that answered a standing query. */
export interface StandingAnswer {
  readonly memoryId: string;
  /** Document of which the memory is a part; null for none. */
  readonly documentId: string | null;
  /** Score of the memory, as the best hit of a query has it; null where it only supersedes an answer. */
  readonly score: number | null;
  /** Id of the answer that it supersedes; null for none. */
  readonly supersedes: string | null;
  /** Unix ms. */
  readonly at: number;
}

/** A memory that answers a query, by their numbers. */
export interface StandingMatch {
  readonly queryNo: number;
  readonly memoryNo: number;
  readonly score: number | null;
  /** Number of the answer that the memory supersedes; null for none. */
  readonly supersedes: number | null;
}

/** An address that is to be told of events. */
export interface NewWebhook {
  readonly url: string;
  /** Kinds of events that are told; all kinds if empty. */
  readonly kinds: readonly EventKind[];
  /** The only user whose events are told; left out, those of all users are. */
  readonly userId?: string | undefined;
}

/** A webhook as it is listed, without its secret. */
export interface Webhook {
  readonly id: string;
  readonly url: string;
  readonly kinds: readonly EventKind[];
  readonly userId: string | null;
  /** Id of the only standing query whose answers are told; null for none. */
  readonly standingId: string | null;
  /** Unix ms. */
  readonly createdAt: number;
  /** Number of kept deliveries by state. */
  readonly deliveries: Readonly<Record<DeliveryState, number>>;
}

/** A webhook that was just made, with the secret that signs its deliveries: `whsec_` and 24 bytes in base64. */
export type CreatedWebhook = Webhook & { readonly secret: string };

/** A standing query that was just made, with its webhook if it has one. */
export type CreatedStandingQuery = StandingQuery & { readonly webhook: CreatedWebhook | null };

/** States of a delivery. A pending one is tried again; a dead one failed too often, or its address is gone. */
export const DELIVERY_STATES = ['pending', 'delivered', 'dead'] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];

/** What a delivery tells: a kind of event and ids, never content. Ids that say nothing are left out. */
export interface DeliveredEvent {
  readonly type: EventKind;
  /** Id of the memory, document or job, as the kind says; null for none. */
  readonly id: string | null;
  readonly standingId?: string | undefined;
  readonly documentId?: string | undefined;
  readonly score?: number | undefined;
  readonly supersedes?: string | undefined;
}

/** One event on its way to one webhook. */
export interface Delivery {
  /** The header `webhook-id`, which stays the same at each attempt. */
  readonly id: string;
  readonly event: DeliveredEvent;
  readonly userId: string | null;
  /** Time of the event, Unix ms. */
  readonly at: number;
  readonly state: DeliveryState;
  readonly attempts: number;
  /** Time of the next attempt, Unix ms; null for a delivery that ended. */
  readonly nextAt: number | null;
  /** HTTP status of the last reply; null where none came. */
  readonly lastStatus: number | null;
  /** What was wrong at the last attempt; null for nothing. */
  readonly lastError: string | null;
}

/** A delivery that this process has claimed, with all that sending it takes. */
export interface ClaimedDelivery extends Pick<Delivery, 'id' | 'event' | 'userId' | 'at'> {
  readonly deliveryNo: number;
  readonly hookNo: number;
  /** Attempts so far, this one included. */
  readonly attempts: number;
  readonly url: string;
  readonly secret: string;
}

/** What came of an attempt. */
export interface DeliveryOutcome {
  readonly deliveryNo: number;
  /** The attempt that ended; an outcome of an earlier attempt than the last changes nothing. */
  readonly attempts: number;
  readonly delivered: boolean;
  /** HTTP status; null where no reply came. */
  readonly status: number | null;
  readonly error: string | null;
  /** Time of the next attempt, Unix ms; null to give up. It says nothing where the event was delivered. */
  readonly nextAt: number | null;
}

/** Which rows of a list are read. */
export interface StandingPage {
  readonly limit: number;
  readonly offset: number;
  /** Lists only what belongs to this user; everything if left out. */
  readonly userId?: string | undefined;
}

/** A part of a list, and the number of all its entries. */
export interface Listed<Entry> {
  readonly items: readonly Entry[];
  readonly total: number;
}

/** Standing queries and webhooks of a tenant. */
export interface Standing {
  /**
   * Stores a standing query. What is stored or changed from then on is compared with it.
   * @throws EngineError `conflict` for too many, for an id that is taken, and with `OM_EVENTS=false`; `invalid` for a
   *   URL that is not delivered to
   */
  createStandingQuery(query: NewStandingQuery): Promise<CreatedStandingQuery>;
  /** Lists standing queries, newest first. */
  listStandingQueries(page: StandingPage): Promise<Listed<StandingQuery>>;
  /** Returns a standing query. @throws EngineError `not_found` */
  getStandingQuery(id: string): Promise<StandingQuery>;
  /** Lists the answers of a standing query, newest first. @throws EngineError `not_found` */
  listStandingAnswers(id: string, page: StandingPage): Promise<Listed<StandingAnswer>>;
  /** Deletes a standing query, its answers and its webhook. @throws EngineError `not_found` */
  deleteStandingQuery(id: string): Promise<void>;
  /**
   * Stores a webhook, which is told of events from then on.
   * @throws EngineError `conflict` for too many, and with `OM_EVENTS=false`; `invalid` for a URL that is not delivered
   *   to
   */
  createWebhook(webhook: NewWebhook): Promise<CreatedWebhook>;
  /** Lists webhooks, newest first. */
  listWebhooks(page: StandingPage): Promise<Listed<Webhook>>;
  /** Returns a webhook. @throws EngineError `not_found` */
  getWebhook(id: string): Promise<Webhook>;
  /** Deletes a webhook with its deliveries. @throws EngineError `not_found` */
  deleteWebhook(id: string): Promise<void>;
  /** Lists the deliveries of a webhook, newest first. @throws EngineError `not_found` */
  listDeliveries(
    id: string,
    page: StandingPage & { readonly state?: DeliveryState | undefined },
  ): Promise<Listed<Delivery>>;
  /** Makes the dead deliveries of a webhook pending again. @returns how many @throws EngineError `not_found` */
  retryDeliveries(id: string): Promise<number>;
  /**
   * Does what standing queries and webhooks owe at present: compares new memories with the queries, hands new events to
   * webhooks, and sends deliveries that are due. Several processes may do it at once.
   * @returns `absent` for a tenant with neither, `busy` where something was done, else `idle`
   */
  tendStanding(signal: AbortSignal): Promise<'absent' | 'idle' | 'busy'>;
}

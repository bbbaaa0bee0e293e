/**
 * Types of the requests that the console sends and of the replies that it gets. All are derived from the schemas of the
 * API, so that a change of the API that the console does not follow is a compiler error. Field names are those of the
 * API, and times are Unix ms.
 */
import type { z } from 'zod';
import type { activityReply, backupsReply, decayReply, settingsReply, tenantPage } from '../api/schemas/admin.ts';
import type { sessionReply, signedOutReply } from '../api/schemas/console.ts';
import type { consolidationEnded, consolidationList, consolidationProposals } from '../api/schemas/consolidations.ts';
import type { diffReply } from '../api/schemas/diff.ts';
import type { documentPage, receiptReply } from '../api/schemas/document-replies.ts';
import type { entityDetails, entityPage } from '../api/schemas/entities.ts';
import type { jobPage } from '../api/schemas/jobs.ts';
import type { deletedReply } from '../api/schemas/deleted-reply.ts';
import type { historyReply, timelineReply } from '../api/schemas/memory-replies.ts';
import type { federatedAnswer, serverList } from '../api/schemas/federation.ts';
import type { evalList, evalRunReply, evalRuns, storedEvalSet } from '../api/schemas/evals.ts';
import type { graphReply } from '../api/schemas/graph.ts';
import type { madeKey } from '../api/schemas/keys.ts';
import type { learningReply } from '../api/schemas/learned.ts';
import type { linkList, nearDuplicateList, proposalList } from '../api/schemas/links.ts';
import type { memoryListReply, nameListReply } from '../api/schemas/lists.ts';
import type { providerCallPage, providerUsageReply } from '../api/schemas/providers.ts';
import type { recallListReply, recallReply, replayReply } from '../api/schemas/recalls.ts';
import type { createdStanding } from '../api/schemas/standing.ts';
import type { QueryReplyBody } from '../api/schemas/query-replies.ts';
import type { querySchema } from '../api/schemas/query.ts';
import type { sectorsReply, statsReply } from '../api/schemas/service.ts';
import type { Wire } from '../api/schemas/values.ts';

export type { AuditItem } from '../api/schemas/audit.ts';
export type { ChunkItem, DocumentItem } from '../api/schemas/document-replies.ts';
export type { JobItem } from '../api/schemas/jobs.ts';
export type { KeyItem } from '../api/schemas/keys.ts';
export type { LinkItem, MemoryItem, RevisionItem } from '../api/schemas/memory-replies.ts';
export type { Problem } from '../api/schemas/problem.ts';
export type { ErasureItem, ErasureReply } from '../api/schemas/erasures.ts';
export type { LearnedItem } from '../api/schemas/learned.ts';
export type {
  CreatedWebhookItem,
  DeliveryItem,
  NewWebhookInput,
  StandingAnswerItem,
  StandingItem,
  WebhookItem,
} from '../api/schemas/standing.ts';
export type { ConsolidationItem } from '../api/schemas/consolidations.ts';
export type { ServerItem } from '../api/schemas/federation.ts';
export type { ProviderCallItem, ReembedItem } from '../api/schemas/providers.ts';
export type { ExplanationItem, MatchItem } from '../api/schemas/query-replies.ts';

/** Reply to `GET /console/session`: the caller and its session. `caller` is null until somebody signs in. */
export type SessionItem = Wire<typeof sessionReply>;
/** Reply to `DELETE /console/session`: the session after signing out. */
export type SignedOut = Wire<typeof signedOutReply>;
/** Role of a key: `admin`, `write`, `read` or `add`. */
export type Role = NonNullable<SessionItem['caller']>['role'];
/** A page of memories that match a filter: `POST /memory/list`. */
export type MemoryList = Wire<typeof memoryListReply>;
/** A page of users, sessions, types or tags, each with its number of memories: `GET /sessions` and the like. */
export type NameList = Wire<typeof nameListReply>;
/** Memories that changed between two times, in one list for each kind of change: `GET /diff`. */
export type Diff = Wire<typeof diffReply>;
/**
 * Memories and entities with their links: `GET /users/{id}/graph`, or up to three hops from a memory: `GET
 * /memory/{id}/neighbourhood`.
 */
export type Graph = Wire<typeof graphReply>;
/** A page of documents: `GET /documents`. */
export type DocumentPage = Wire<typeof documentPage>;
/** A page of entities (names that memories mention): `GET /entities`. */
export type EntityPage = Wire<typeof entityPage>;
/**
 * One entity (a name that memories mention), with its relations to others and the memories that mention it: `GET
 * /entities/{name}`.
 */
export type EntityDetails = Wire<typeof entityDetails>;
/** A page of jobs, with the number of all jobs in each state and the backlog of each step: `GET /jobs`. */
export type JobPage = Wire<typeof jobPage>;
/**
 * Reply to every `DELETE` of memories or documents: the numbers of removed rows by kind, and the token of the receipt.
 */
export type Deleted = Wire<typeof deletedReply>;
/** The revisions of a memory with the values that they replaced: `GET /memory/{id}/history`. */
export type History = Wire<typeof historyReply>;
/** The memories before and after a memory, by event time: `GET /memory/{id}/timeline`. */
export type Timeline = Wire<typeof timelineReply>;
/** The links from and to a memory: `GET /memory/{id}/links`. */
export type LinkList = Wire<typeof linkList>;
/** A page of calls to providers: `GET /embeddings/log`. */
export type ProviderCalls = Wire<typeof providerCallPage>;
/** Calls to providers with their tokens and cost, summed up by day, model and purpose: `GET /embeddings/stats`. */
export type ProviderUsage = Wire<typeof providerUsageReply>;
/** Numbers of memories, jobs and vectors of the tenant, and the size of its file: `GET /stats`. */
export type Stats = Wire<typeof statsReply>;
/** Body of `POST /memory/query`, as it is sent. */
export type QueryBody = z.input<typeof querySchema>;
/** The answer to a query with matches instead of a text: `POST /memory/query`. */
export type Answer = Extract<QueryReplyBody, { readonly matches: unknown }>;
/** Name of a sector (kind of memory): episodic, semantic, procedural, emotional or reflective. */
export type Sector = Wire<typeof sectorsReply>['sectors'][number];
/** Requests, jobs and cost of the whole service in each minute of the last hour: `GET /admin/activity`. */
export type Activity = Wire<typeof activityReply>;
/** The scheduled backups of the tenant: `GET /admin/backups`. */
export type Backups = Wire<typeof backupsReply>;
/** Preview of the decay of salience by a date under assumed rates: `POST /admin/decay/preview`. */
export type DecayPreview = Wire<typeof decayReply>;
/** One setting of the service, with its value and where it comes from: `GET /admin/settings`. */
export type SettingItem = Wire<typeof settingsReply>['items'][number];
/** A page of tenants: `GET /tenants`. */
export type TenantPage = Wire<typeof tenantPage>;
/** A new key, with its secret, which no later reply shows: `POST /admin/keys`. */
export type MadeKey = Wire<typeof madeKey>;
/** An evaluation set, which is a list of queries with known answers: `GET /evals/{name}`. */
export type EvalSet = Wire<typeof storedEvalSet>;
/** An evaluation set with the figures of its last run: an item of `GET /evals`. */
export type EvalSummary = Wire<typeof evalList>['items'][number];
/** One run of an evaluation set with its figures: an item of `GET /evals/{name}/runs`. */
export type EvalRun = Wire<typeof evalRuns>['items'][number];
/** A run with the result of each query: `POST /evals/{name}/run`. */
export type EvalOutcomes = Wire<typeof evalRunReply>;
/** Pairs of memories that may contradict each other: `GET /memory/contradictions`. */
export type Proposals = Wire<typeof proposalList>;
/** Pairs of memories that say nearly the same: `GET /memory/duplicates`. */
export type NearDuplicates = Wire<typeof nearDuplicateList>;
/** A page of answers that were given: `GET /recalls`. */
export type RecallList = Wire<typeof recallListReply>;
/** Receipt that says which memory contains which characters of a document: `GET /documents/{id}/receipt`. */
export type TextReceipt = Wire<typeof receiptReply>;
/** Weights that were learned from feedback and are proposed, or why there are none: `POST /learned`. */
export type Learning = Wire<typeof learningReply>;
/** A new standing query, with its webhook and the webhook's secret: `POST /standing`. */
export type CreatedStanding = Wire<typeof createdStanding>;
/** A page of consolidations: `GET /consolidations`. */
export type ConsolidationList = Wire<typeof consolidationList>;
/** Proposals of a dry run of a consolidation, which changes nothing: `POST /consolidations` with `dry_run`. */
export type ConsolidationProposals = Wire<typeof consolidationProposals>;
/** Result of a consolidation that ended while the request waited: `POST /consolidations`. */
export type ConsolidationEnded = Wire<typeof consolidationEnded>;
/** The best matches of several tenants and servers: `POST /federation/query`. */
export type FederatedAnswer = Wire<typeof federatedAnswer>;
/** The other servers to which a query may be sent: `GET /federation/servers`. */
export type ServerList = Wire<typeof serverList>;
/** One logged answer, with the details of how it was found: `GET /recalls/{id}`. */
export type Recall = Wire<typeof recallReply>;
/** An earlier query that was repeated, with the differences: `POST /recalls/{id}/replay`. */
export type Replay = Wire<typeof replayReply>;
/** Model, rate of decay, weight and patterns of each sector: the field `configs` of `GET /sectors`. */
export type SectorConfigs = Wire<typeof sectorsReply>['configs'];
